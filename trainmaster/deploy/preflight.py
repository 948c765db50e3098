"""Checks before a deployment creates anything; faults are reported together, without those that others cause."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

from trainmaster.client.context import context_in_cloud
from trainmaster.client.submission.source import UnusableFile
from trainmaster.client.submission.terms import read_policy
from trainmaster.deploy.existing import Existing, ExistingRole, find_existing
from trainmaster.deploy.gcloud import GcloudFailed, describe_resource, gcloud
from trainmaster.deploy.names import (
    POLICY,
    SETTINGS,
    Names,
    names_of,
    regions,
    setting,
    setting_list,
    shipped_policy,
)
from trainmaster.deploy.organisation import policy_findings
from trainmaster.orchestrator.core.policy.receivers import LOOPBACK_HOST
from trainmaster.resources import DEPLOY
from trainstack.find import is_state

SHARED_TOPIC = "images"
"""Role of the topic whose id Artifact Registry dictates: an existing one is used and kept."""
_OTHERS = {
    "data_buckets": "storage buckets describe --raw gs://",
    "watched_buckets": "storage buckets describe --raw gs://",
    "job_keys": "kms keys describe ",
}
"""Settings that name resources of others, and how the command begins that describes each."""


@dataclass(frozen=True, kw_only=True)
class PreflightResult:
    """Ready to deploy if `faults` is empty; `warnings` say what may still fail. The other fields are Terraform's variables."""

    faults: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    project_number: str = ""
    kept_buckets: dict[str, str] = field(default_factory=dict)
    kept_roles: tuple[str, ...] = ()
    kept_pools: tuple[str, ...] = ()
    kept_accounts: tuple[str, ...] = ()
    foreign_topics: tuple[str, ...] = ()
    state_bucket_exists: bool = False


def valid_names(project: str, region: str, deployment: str) -> Names:
    """The deployment's names, which depend on the policy and the settings. Asks no service.

    Raises:
        UnusableFile: the policy is wrong, and the message has every fault; or the settings are no text.
    """
    read_policy(POLICY, context_in_cloud(project, region, deployment))
    try:
        return names_of(project, region, deployment)
    except (OSError, UnicodeError) as error:
        raise UnusableFile(f"{SETTINGS} cannot be read as UTF-8: {error}") from error


def clearance_of(names: Names) -> PreflightResult:
    """Look up what exists, and check it. Creates nothing."""
    faults = [*_of_the_words(names), *receiver_faults(shipped_policy().get("notify") or ())]
    if which("gcloud") is None:
        return PreflightResult(faults=(*faults, "gcloud is not on PATH: https://cloud.google.com/sdk"))
    if is_state(Path(os.environ.get("CLOUDSDK_CONFIG", os.devnull)).parents[1]):
        of_stack = "this shell's gcloud works on a local stack (CLOUDSDK_CONFIG): use a shell without the variables of `trainmaster stack env`"
        return PreflightResult(faults=(*faults, of_stack))
    faults += _of_the_credentials()
    number, unknown = _project_number(names.project)
    faults += unknown
    if number is None:
        return PreflightResult(faults=tuple(faults))
    faults += _of_billing(names.project)
    try:
        existing = find_existing(names, number)
    except GcloudFailed as failed:
        fault = f"the existing resources could not be determined: {failed}{_elsewhere(failed)}"
        return PreflightResult(faults=(*faults, fault))
    stopped, warnings = policy_findings(names)
    faults += [*secret_faults(names), *named_faults(names.region), *stopped]
    return conclusions_from(names, existing, tuple(faults), (*_of_builds(names), *warnings))


def _elsewhere(failed: GcloudFailed) -> str:
    """The repair where a region lacks Cloud Scheduler, the only service that may be in another region."""
    if "scheduler" not in failed.command or "is not a valid location" not in failed.said:
        return ""
    return f'; name another region for the schedule, scheduler_region = "…" in {SETTINGS}'


def conclusions_from(
    names: Names, existing: Existing, before: tuple[str, ...] = (), warnings: tuple[str, ...] = ()
) -> PreflightResult:
    """The conclusions from what exists, after the faults found `before`. Pure."""
    shared = names.topics[SHARED_TOPIC]
    kept = existing.buckets.keys() - existing.made.get("bucket", frozenset())
    foreign = shared in existing.named.get("topic", ()) and shared not in existing.made.get("topic", ())
    return PreflightResult(
        faults=(
            *before,
            *_bucket_faults(names, existing),
            *_role_faults(names, existing),
            *_collisions(names, existing),
        ),
        warnings=warnings,
        project_number=existing.project_number,
        kept_buckets={role: name for role, name in names.buckets.items() if name in kept},
        kept_roles=tuple(sorted(_others("role", names.roles, existing.roles, existing))),
        kept_pools=tuple(_others("workload identity pool", names.pools, existing.pools, existing)),
        kept_accounts=tuple(sorted(_left_accounts(names, existing))),
        foreign_topics=(SHARED_TOPIC,) if foreign else (),
        state_bucket_exists=names.state_bucket in existing.buckets,
    )


def _of_the_words(names: Names) -> Iterator[str]:
    if names.region not in regions("training"):
        yield (
            f"--region is {names.region!r}: Vertex AI trains in {', '.join(sorted(regions('training')))}; "
            f"{DEPLOY / 'regions.yaml'} has the source of this list; add new regions there"
        )


def _of_builds(names: Names) -> Iterator[str]:
    if names.region not in regions("building") and setting("build_worker_pool") is None:
        yield (
            f"some projects may not run builds in {names.region!r}, and then none of the functions can be built: deploy to "
            f"{', '.join(sorted(regions('building')))}, or name a private pool, build_worker_pool = "
            f'"projects/P/locations/{names.region}/workerPools/W" in {SETTINGS}; '
            "https://cloud.google.com/build/docs/locations"
        )


def _of_the_credentials() -> Iterator[str]:
    try:
        gcloud("auth", "application-default", "print-access-token")
    except GcloudFailed as failed:
        yield (
            f"Terraform would not find credentials ({failed.said}): run `gcloud auth application-default login`, "
            "or set GOOGLE_APPLICATION_CREDENTIALS"
        )


def _project_number(project: str) -> tuple[str | None, list[str]]:
    try:
        found = describe_resource("projects", "describe", project)
    except GcloudFailed as failed:
        if "gcloud auth login" in failed.said:
            return None, [f"gcloud has no login that works: run `gcloud auth login` ({failed.said})"]
        fault = (
            f"project {project!r} does not exist, or you may not see it ({failed.said}): create it with "
            f"`gcloud projects create {project}`, or ask its owner for roles/viewer"
        )
        return None, [fault]
    if found.get("lifecycleState") != "ACTIVE":
        state = found.get("lifecycleState")
        return None, [
            f"project {project!r} is {state}: deploy needs an ACTIVE project; `gcloud projects undelete {project}`"
        ]
    return str(found["projectNumber"]), []


def _of_billing(project: str) -> Iterator[str]:
    try:
        billing = describe_resource("billing", "projects", "describe", project)
    except GcloudFailed:
        return  # a user who may not see the billing account may still deploy
    if billing.get("billingEnabled") is False:
        yield (
            f"project {project!r} has no billing account: link one, "
            "https://cloud.google.com/billing/docs/how-to/modify-project"
        )


def receiver_faults(receivers: Iterable[Mapping[str, Mapping[str, str]]]) -> Iterator[str]:
    """The receivers of notices that only a local stack has."""
    for number, receiver in enumerate(receivers):
        if receiver.get("webhook", {}).get("url", "").startswith(f"http://{LOOPBACK_HOST}"):
            yield f"the policy's notify[{number}].webhook.url is the local stack's receiver: name a public https:// URL"


def secret_faults(names: Names) -> Iterator[str]:
    """The secrets of receivers of notices that have no value: a function that mounts one would not start."""
    for secret in sorted({each["secret"] for each in names.notify.values() if "secret" in each}):
        try:
            gcloud(
                "secrets",
                "versions",
                "describe",
                "latest",
                f"--secret={secret}",
                f"--project={names.project}",
            )
        except GcloudFailed as failed:
            enable = f"gcloud services enable secretmanager.googleapis.com --project={names.project}; "
            yield (
                f"the policy's notify names the secret {secret!r}, which has no value ({failed.said}): "
                f"`{enable if failed.switched_off else ''}gcloud secrets create {secret} --project={names.project} "
                "--replication-policy=automatic --data-file=FILE`, the value in FILE"
            )


def named_faults(region: str) -> Iterator[str]:
    """The buckets and keys of the settings' lists that are not there, or that the user may not see, let alone grant roles on."""
    for variable, command in _OTHERS.items():
        *words, before = command.split(" ")
        for name in setting_list(variable):
            said = f"{variable} in {SETTINGS} names {name!r}, which"
            try:
                found = describe_resource(*words, f"{before}{name}")
            except GcloudFailed as failed:
                yield f"{said} does not exist, or you may not see it: correct the name, create it, or ask its owner ({failed.said})"
                continue
            if variable == "watched_buckets" and (there := found["location"].lower()) != region:
                yield f"{said} is in {there!r}: rules watch buckets in {region!r} only"


def _bucket_faults(names: Names, existing: Existing) -> Iterator[str]:
    for bucket in existing.buckets.values():
        if bucket.project_number is None:
            yield (
                f"bucket {bucket.name!r} exists, and you may not see it: bucket names are global, and another project "
                "owns this one; deploy to a project whose id is free as a bucket prefix"
            )
        elif bucket.project_number != existing.project_number:
            yield (
                f"bucket {bucket.name!r} belongs to project number {bucket.project_number}, not to {names.project!r} "
                f"({existing.project_number}): bucket names are global; rename or delete that one"
            )
        elif bucket.location.lower() != names.region and bucket.name != names.state_bucket:
            there = bucket.location.lower()
            yield (
                f"bucket {bucket.name!r} is in {there!r}, and triggers need it in {names.region!r}: "
                f"{f'deploy with --region {there}, or ' if there in regions('training') else ''}"
                "move its objects and delete it"
            )


def _others(
    kind: str, wanted: Mapping[str, str], there: Mapping[str, ExistingRole], existing: Existing
) -> dict[str, ExistingRole]:
    """What of our names is there and not in the state: by their titles, an earlier undeploy left the roles and pools."""
    made = existing.made.get(kind, frozenset())
    return {name: there[name] for name in wanted if name in there and name not in made}


def _role_faults(names: Names, existing: Existing) -> Iterator[str]:
    roles = _others("role", names.roles, existing.roles, existing)
    pools = _others("workload identity pool", names.pools, existing.pools, existing)
    for name, role in roles.items():
        if role.deleted:
            yield (
                f"role {name!r} was deleted in the last 7 days, and its id stays reserved for 37: "
                f"`gcloud iam roles undelete {name} --project={names.project}`, then deploy again"
            )
        elif role.title != names.roles[name]:
            yield _collision("role", name, names.project)
    for name, found in pools.items():
        if found.deleted:
            pool, _, provider = name.partition("/providers/")
            words = (
                f"providers undelete {provider} --workload-identity-pool={pool}"
                if provider
                else f"undelete {pool}"
            )
            yield (
                f"workload identity pool {name!r} was deleted in the last 30 days, in which its id stays reserved: `gcloud iam "
                f"workload-identity-pools {words} --location=global --project={names.project}`, then deploy again"
            )
        elif found.title != names.pools[name]:
            yield _collision("workload identity pool", name, names.project)


def _left_accounts(names: Names, existing: Existing) -> dict[str, str]:
    """Emails of accounts that are there and not in the state: by their titles, an earlier undeploy left them."""
    there = existing.named.get("service account", {})
    made = existing.made.get("service account", frozenset())
    return {
        name: email
        for name, email in names.accounts.items()
        if there.get(email, "").startswith(f"{names.title}: ") and email not in made
    }


def _collisions(names: Names, existing: Existing) -> Iterator[str]:
    adopted = {names.topics[SHARED_TOPIC], *_left_accounts(names, existing).values()}
    for kind, wanted in names.taken.items():
        there = wanted & existing.named.get(kind, {}).keys() - existing.made.get(kind, frozenset())
        for name in sorted(there - adopted):
            yield _collision(kind, name, names.project)


def _collision(kind: str, name: str, project: str) -> str:
    return (
        f"{kind} {name!r} already exists in {project!r} but was not created by Trainmaster: "
        "rename or delete it, or deploy to another project"
    )
