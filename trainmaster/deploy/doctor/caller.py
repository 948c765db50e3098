"""Checks the permissions of the doctor's user first, because the other checks need them."""

from trainmaster.deploy.doctor.deployment import Deployment
from trainmaster.deploy.doctor.finding import Finding, ok, unknown
from trainmaster.deploy.doctor.questions import Questions

_ON_PROJECT = (
    "logging.logEntries.create",
    "logging.logEntries.list",
    "logging.sinks.get",
    "pubsub.subscriptions.create",
    "pubsub.subscriptions.list",
)


def caller_finding(deployment: Deployment, questions: Questions) -> Finding:
    """The finding on the user's own permissions: unknown where one is missing, because the deployment is not at fault.

    Raises:
        AskRefusedError: the permissions on the project, a topic or the ledger cannot be tested.
    """
    needed = {
        deployment.project_thing: _ON_PROJECT,
        deployment.topic("requests"): ("pubsub.topics.publish",),
        deployment.topic("job_logs"): ("pubsub.topics.attachSubscription",),
        deployment.bucket("ledger"): ("storage.objects.get",),
    }
    lacks = [
        f"{permission} on {thing.kind} {thing.name}"
        for thing, permissions in needed.items()
        for permission in sorted(set(permissions) - questions.held(thing, permissions))
    ]
    check = "your permissions"
    if not lacks:
        return ok(check, "enough for every check")
    return unknown(
        check, f"you lack {', '.join(lacks)}", "docs/how-to/deploy.md, section Self-test, has the roles"
    )
