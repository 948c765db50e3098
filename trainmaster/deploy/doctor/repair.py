"""The commands that mend what a check found."""

import shlex

from trainmaster.deploy.doctor.deployment import Deployment, Thing


def bind(deployment: Deployment, thing: Thing, member: str, role: str) -> str:
    """The command that grants the role.

    Source: https://cloud.google.com/sdk/gcloud/reference, each group's add-iam-policy-binding.
    """
    project = ["--project", deployment.project]
    match thing.kind:
        case "bucket":
            words = ["storage", "buckets", "add-iam-policy-binding", f"gs://{thing.name}"]
        case "topic":
            words = ["pubsub", "topics", "add-iam-policy-binding", thing.name, *project]
        case "subscription":
            words = ["pubsub", "subscriptions", "add-iam-policy-binding", thing.name, *project]
        case "account":
            words = ["iam", "service-accounts", "add-iam-policy-binding", thing.name, *project]
        case "function":
            region = ["--region", deployment.region]
            words = ["run", "services", "add-iam-policy-binding", thing.name, *region, *project]
        case _:
            words = ["projects", "add-iam-policy-binding", deployment.project]
    return shlex.join(["gcloud", *words, f"--member={member}", f"--role={role}"])


def redeploy(deployment: Deployment) -> str:
    return f"trainmaster deploy --project {deployment.project} --region {deployment.region}"
