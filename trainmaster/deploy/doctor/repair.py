"""The commands that repair what a check found."""

import shlex

from trainmaster.deploy.doctor.deployment import Deployment, GrantTarget

_GROUPS = {
    "account": "iam service-accounts",
    "bucket": "storage buckets",
    "function": "run services",
    "project": "projects",
    "subscription": "pubsub subscriptions",
    "topic": "pubsub topics",
}
"""gcloud's command group by kind of resource. Source: https://cloud.google.com/sdk/gcloud/reference"""


def bind(deployment: Deployment, thing: GrantTarget, member: str, role: str) -> str:
    """The command that grants the role."""
    name = f"gs://{thing.name}" if thing.kind == "bucket" else thing.name
    region = ["--region", deployment.region] if thing.kind == "function" else []
    project = [] if thing.kind in {"bucket", "project"} else ["--project", deployment.project]
    words = [*_GROUPS[thing.kind].split(), "add-iam-policy-binding", name, *region, *project]
    return shlex.join(["gcloud", *words, f"--member={member}", f"--role={role}"])


def redeploy(deployment: Deployment) -> str:
    return f"trainmaster deploy --project {deployment.project} --region {deployment.region}"
