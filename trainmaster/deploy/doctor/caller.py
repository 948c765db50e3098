"""Checks the permissions of the doctor's user first, because the other checks need them."""

from trainmaster.deploy.doctor.deployment import ExaminedDeployment
from trainmaster.deploy.doctor.finding import DoctorFinding, failed_finding, ok, unknown
from trainmaster.deploy.doctor.questions import AskRefusedError, Questions

USE_QUOTA = "roles/serviceusage.serviceUsageConsumer"
_ON_PROJECT = (
    "logging.logEntries.create",
    "logging.logEntries.list",
    "logging.sinks.get",
    "pubsub.subscriptions.create",
    "pubsub.subscriptions.list",
)


def refused_project(project: str, refused: AskRefusedError) -> DoctorFinding:
    """The finding on a project that the user cannot read.

    A request is charged to one project, not always this one. If that cannot be used, or lacks the API, the answer says
    nothing about this one. Source: https://cloud.google.com/docs/authentication/troubleshoot-adc (read 2026-11-26)
    """
    charged = refused.metadata.get("consumer", "").removeprefix("projects/") or project
    match refused.reason:
        case "USER_PROJECT_DENIED":
            return failed_finding(
                "your quota project",
                f"you may not charge requests to {charged}: {refused}",
                f"gcloud projects add-iam-policy-binding {charged} --member=user:YOU --role={USE_QUOTA}",
            )
        case "SERVICE_DISABLED" | "CONSUMER_INVALID":
            api = refused.metadata.get("service", "cloudresourcemanager.googleapis.com")
            return failed_finding(
                "your quota project",
                f"your requests are charged to {charged}, which does not have the API: {refused}",
                f"charge them to this deployment's project: export GOOGLE_CLOUD_QUOTA_PROJECT={project}",
                f"or enable the API: gcloud services enable {api} --project={charged}",
            )
    return failed_finding(
        f"project {project}",
        f"it does not exist, or you may not see it: {refused}",
        "run gcloud auth application-default login, or check the project id",
    )


def caller_finding(deployment: ExaminedDeployment, questions: Questions) -> DoctorFinding:
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
        for permission in sorted(set(permissions) - questions.held_permissions(thing, permissions))
    ]
    check = "your permissions"
    if not lacks:
        return ok(check, "enough for every check")
    return unknown(
        check, f"you lack {', '.join(lacks)}", "docs/how-to/deploy.md, section Self-test, has the roles"
    )
