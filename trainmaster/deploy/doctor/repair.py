"""The commands that repair what a check found."""

import shlex

from trainmaster.deploy.doctor.deployment import ExaminedDeployment, GrantTarget
from trainmaster.deploy.doctor.questions import condition_of

_GROUPS = {
    "account": "iam service-accounts",
    "bucket": "storage buckets",
    "folder": "storage managed-folders",
    "function": "run services",
    "object": "storage buckets",
    "project": "projects",
    "secret": "secrets",
    "subscription": "pubsub subscriptions",
    "topic": "pubsub topics",
}
"""gcloud's command group by kind of resource. Source: https://cloud.google.com/sdk/gcloud/reference"""
_WITHOUT_PROJECT = {"bucket", "folder", "object", "project"}


def bind(deployment: ExaminedDeployment, thing: GrantTarget, member: str, role: str) -> str:
    """The command that grants the role."""
    name = f"gs://{thing.name}" if thing.kind == "bucket" else thing.name
    region = ["--region", deployment.region] if thing.kind == "function" else []
    project = [] if thing.kind in _WITHOUT_PROJECT else ["--project", deployment.project]
    condition: list[str] = []
    if thing.kind == "object":  # an object has no policy: its bucket's has a condition
        bucket, part = thing.parts
        name = f"gs://{bucket}"
        condition = [f"--condition=title=only {part},expression={condition_of(thing)}"]
    words = [*_GROUPS[thing.kind].split(), "add-iam-policy-binding", name, *region, *project]
    return shlex.join(["gcloud", *words, f"--member={member}", f"--role={role}", *condition])


def redeploy(deployment: ExaminedDeployment) -> str:
    named = f" --name {deployment.name}" if deployment.name else ""
    return f"trainmaster deploy --project {deployment.project} --region {deployment.region}{named}"
