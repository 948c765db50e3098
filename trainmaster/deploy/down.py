"""Remove a deployment from a project. By default buckets stay, and with them every record and model.

Roles and accounts stay too: a deleted role's id is taken for 37 days, and an account made again under its old
name has none of the grants that users gave the first. Google's own accounts serve the whole project, so their
roles stay.
"""

import sys

from trainmaster.client.submission.source import UnusableFile
from trainmaster.deploy.existing import Existing, find_existing
from trainmaster.deploy.gcloud import GcloudFailed, describe_resource, gcloud
from trainmaster.deploy.names import Names
from trainmaster.deploy.preflight import SHARED_TOPIC, PreflightResult, conclusions_from, valid_names
from trainmaster.deploy.terraform_cli import TerraformFailed, terraform_for, version_fault
from trainmaster.deploy.up import refuse

BUCKETS = "google_storage_bucket.bucket"
LEFT = (
    "google_project_iam_custom_role.role[",
    "google_service_account.account[",
    "google_iam_workload_identity_pool",
    "google_project_iam_member.agent",
    "google_project_service_identity.",
    "google_kms_crypto_key_iam_member.agent",
    f'google_pubsub_topic.topic["{SHARED_TOPIC}"]',
)
"""Resources that leave Terraform's state but stay in the project. The id of a deleted role is reserved for 37 days, which
would block deployments, so the roles stay and `deploy` imports them; likewise the pool and provider of CI, for 30 days, which
let no job do anything without the grants on accounts. So do the accounts, without their roles: an account
that is made again under a deleted one's name is another identity, which has none of the roles that users granted to the
first: https://cloud.google.com/iam/docs/service-accounts-delete-undelete. The roles of Google's service agents serve the
whole project. Without the grants on the key, Cloud Storage could not read the buckets that stay. Others may subscribe to
the topic of image pushes, which has one name in every project; `deploy` uses an existing one."""


def undeploy(project: str, region: str, deployment: str, *, delete_buckets: bool) -> int:
    """Return the exit status: 0 done, 1 failed halfway (run it again), 2 refused before anything was removed."""
    unchanged = "Nothing was removed."
    try:
        names = valid_names(project, region, deployment)
        existing = find_existing(
            names, str(describe_resource("projects", "describe", names.project)["projectNumber"])
        )
    except UnusableFile as unusable:
        return refuse([str(unusable)], unchanged)
    except GcloudFailed as failed:
        return refuse([f"the deployed resources could not be determined: {failed}"], unchanged)
    if fault := version_fault() or _fault(names, existing):
        return refuse([fault], unchanged)
    try:
        _remove(names, conclusions_from(names, existing), delete_buckets=delete_buckets)
    except (GcloudFailed, TerraformFailed) as failed:
        print(f"{failed}\nRun the same command again to remove the rest.", file=sys.stderr)
        return 1
    print(
        f"Kept: the custom roles, the service accounts tm-{names.deployment and f'{names.deployment}-'}… with the roles that others granted them, and the topic "
        f"{names.topics[SHARED_TOPIC]}{', and the workload identity pool' if names.pools else ''}. docs/how-to/deploy.md, section Remove, says why and how to delete them."
    )
    if not delete_buckets:
        kept = [*names.buckets.values(), names.state_bucket]
        print(
            f"Kept: {', '.join(f'gs://{name}' for name in kept)}. --delete-buckets (with make, BUCKETS=delete) removes them too."
        )
    return 0


def _fault(names: Names, existing: Existing) -> str | None:
    bucket = existing.buckets.get(names.state_bucket)
    if bucket is None or bucket.project_number != existing.project_number:
        return f"nothing was deployed to {names.project!r} from here: it has no bucket {names.state_bucket!r}"
    made = existing.buckets.keys() & existing.made.get("bucket", frozenset())
    if elsewhere := {existing.buckets[name].location.lower() for name in made} - {names.region}:
        return f"the deployment is in {', '.join(sorted(elsewhere))}, not in {names.region!r}: give that as --region"
    return None


def _remove(names: Names, clearance: PreflightResult, *, delete_buckets: bool) -> None:
    terraform = terraform_for(names)
    terraform.init()
    if delete_buckets:
        # Terraform deletes a bucket with its contents only if force_destroy is in the state before.
        variables = terraform.variables(clearance, delete_buckets=True)
        terraform.run("apply", "-input=false", "-auto-approve", f"-target={BUCKETS}", *variables)
    forgotten = [
        address
        for address in terraform.addresses()
        if address.startswith(LEFT) or (not delete_buckets and address.startswith(f"{BUCKETS}["))
    ]
    if forgotten:
        terraform.run("state", "rm", *forgotten)
    # Terraform before 1.9 runs imports even to destroy, and so would remove what an earlier attempt left:
    # https://github.com/hashicorp/terraform/pull/35262
    imports_nothing = PreflightResult(faults=(), foreign_topics=clearance.foreign_topics)
    variables = terraform.variables(imports_nothing, delete_buckets=delete_buckets)
    terraform.run("destroy", "-input=false", "-auto-approve", *variables)
    if delete_buckets:
        gcloud("storage", "rm", "--recursive", f"gs://{names.state_bucket}")
