"""Whether whoever runs the doctor may make its checks; what they may not is said before checks stay open for it."""

from console.self_test.deployment import Deployment
from console.self_test.finding import Finding, ok, unknown
from console.self_test.questions import Questions

_ON_PROJECT = (
    "logging.logEntries.create",
    "logging.logEntries.list",
    "logging.sinks.get",
    "pubsub.subscriptions.create",
    "pubsub.subscriptions.list",
)


def caller_finding(deployment: Deployment, questions: Questions) -> Finding:
    """Of the caller's own permissions. Lacking one is no fault of the deployment.

    Raises:
        AskRefusedError: the project, a topic or the ledger cannot be asked about.
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
    check = "your own permissions"
    if not lacks:
        return ok(check, "enough for every check")
    return unknown(check, f"you lack {', '.join(lacks)}", "docs/deploy.md, section Self-test, has the roles")
