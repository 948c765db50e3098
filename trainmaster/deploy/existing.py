"""Finds the resources that exist in a project, and which of them an earlier deployment created."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

from trainmaster.deploy.gcloud import GcloudFailed, describe_resource, gcloud, list_resources
from trainmaster.deploy.names import Names

STATE_OBJECT = "trainmaster/default.tfstate"
AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class ExistingBucket:
    """A bucket of this name, in any project. `project_number` None: access is denied, so it is not ours."""

    name: str
    location: str = ""
    project_number: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExistingRole:
    """A custom role, a workload identity pool, or the provider of one, of the project.

    A deleted role can be undeleted for 7 days, and keeps its id for 37; the others can be for the 30 days that they keep it.
    Sources: https://cloud.google.com/iam/docs/creating-custom-roles#deleting-custom-role and
    https://cloud.google.com/iam/docs/manage-workload-identity-pools-providers
    """

    title: str
    deleted: bool = False


@dataclass(frozen=True, kw_only=True)
class Existing:
    """`named` and `made` hold names by kind of resource; `made` are those in Terraform's state.

    `named` has the display name of each, empty for most kinds.
    """

    project_number: str
    buckets: Mapping[str, ExistingBucket]
    roles: Mapping[str, ExistingRole]
    pools: Mapping[str, ExistingRole]
    named: Mapping[str, Mapping[str, str]]
    made: Mapping[str, frozenset[str]]


# The command that lists each kind of resource, and the field with its name: a full resource name, or the last part of one.
_LISTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "topic": (("pubsub", "topics", "list"), "name"),
    "subscription": (("pubsub", "subscriptions", "list"), "name"),
    "log sink": (("logging", "sinks", "list"), "name"),
    "log metric": (("logging", "metrics", "list"), "name"),
    "Cloud Run service": (("run", "services", "list", "--region={region}"), "metadata.name"),
    "Eventarc trigger": (("eventarc", "triggers", "list", "--location={region}"), "name"),
    "schedule": (("scheduler", "jobs", "list", "--location={scheduler_region}"), "name"),
    "repository": (("artifacts", "repositories", "list", "--location={region}"), "name"),
    "service account": (("iam", "service-accounts", "list"), "email"),
}

# The same kinds in Terraform's state, and the attribute with the name.
_RESOURCES: Mapping[str, tuple[str, str]] = {
    "google_storage_bucket": ("bucket", "name"),
    "google_pubsub_topic": ("topic", "name"),
    "google_pubsub_subscription": ("subscription", "name"),
    "google_logging_project_sink": ("log sink", "name"),
    "google_logging_metric": ("log metric", "name"),
    "google_cloudfunctions2_function": ("Cloud Run service", "name"),
    "google_cloud_run_v2_service": ("Cloud Run service", "name"),
    "google_eventarc_trigger": ("Eventarc trigger", "name"),
    "google_cloud_scheduler_job": ("schedule", "name"),
    "google_artifact_registry_repository": ("repository", "repository_id"),
    "google_service_account": ("service account", "email"),
    "google_project_iam_custom_role": ("role", "role_id"),
    "google_iam_workload_identity_pool": ("workload identity pool", "name"),
    "google_iam_workload_identity_pool_provider": ("workload identity pool", "name"),
}


def find_existing(names: Names, project_number: str) -> Existing:
    """Look up everything whose name the deployment uses. Changes nothing.

    Raises:
        GcloudFailed: something cannot be listed or read, so collisions cannot be detected.
    """
    wanted = [*names.buckets.values(), names.state_bucket]
    # Each query is a process that takes a second or two.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(_bucket, wanted)
        roles = pool.submit(_with_deleted, names, "roles")
        pools = pool.submit(_pools, names)
        named = pool.map(lambda how: _names(names, *how), _LISTS.values())
        buckets = {name: bucket for name, bucket in zip(wanted, answers, strict=True) if bucket is not None}
        kept_in = buckets.get(names.state_bucket)
        # A bucket of another project does not hold our state.
        state = _state(names) if kept_in is not None and kept_in.project_number == project_number else []
    return Existing(
        project_number=project_number,
        buckets=buckets,
        roles=roles.result(),
        pools=pools.result(),
        named=dict(zip(_LISTS, named, strict=True)),
        made=_made_resources(state),
    )


def _names(names: Names, command: tuple[str, ...], path: str) -> Mapping[str, str]:
    words = [word.format(region=names.region, scheduler_region=names.scheduler_region) for word in command]
    found = list_resources(*words, f"--project={names.project}")
    return {
        _last_part(str(reduce(getitem, path.split("."), each))): str(each.get("displayName", ""))
        for each in found
    }


def _last_part(name: str) -> str:
    return name.rpartition("/")[2] if name.startswith("projects/") else name


def _pools(names: Names) -> dict[str, ExistingRole]:
    """The project's pools, and the providers of ours; not asked for without CI."""
    group, place = "workload-identity-pools", "--location=global"
    found = _with_deleted(names, group, place) if names.pools else {}
    for name in [name for name in names.pools if name in found and not found[name].deleted]:
        found |= _with_deleted(names, f"{group} providers", place, f"--workload-identity-pool={name}")
    return found


def _with_deleted(names: Names, group: str, *flags: str) -> dict[str, ExistingRole]:
    command = ("iam", *group.split(), "list", "--show-deleted", *flags, f"--project={names.project}")
    return {
        _id_of(each["name"]): ExistingRole(
            title=each.get("title") or each.get("displayName", ""),
            deleted=bool(each.get("deleted", False)) or each.get("state") == "DELETED",
        )
        for each in list_resources(*command)
    }


def _id_of(name: str) -> str:
    """The id in a role's or pool's full name; any other name as it is. A provider's begins with its pool's."""
    return name.rpartition("/roles/")[2].rpartition("/workloadIdentityPools/")[2]


def _bucket(name: str) -> ExistingBucket | None:
    try:
        # Only the raw form has the project's number.
        found = describe_resource("storage", "buckets", "describe", f"gs://{name}", "--raw")
    except GcloudFailed as failed:
        if failed.absent:
            return None
        if failed.forbidden:
            return ExistingBucket(name=name)
        raise
    return ExistingBucket(name=name, location=found["location"], project_number=str(found["projectNumber"]))


def _state(names: Names) -> list[dict[str, Any]]:
    """The resources in Terraform's state; none before the first deployment.

    Raises:
        GcloudFailed: the state cannot be read, so the deployment's own resources are unknown.
    """
    try:
        text = gcloud("storage", "cat", f"gs://{names.state_bucket}/{STATE_OBJECT}")
    except GcloudFailed as failed:
        if failed.absent or "matched no objects" in failed.said:
            return []
        raise
    resources: list[dict[str, Any]] = json.loads(text)["resources"]
    return [resource for resource in resources if resource["mode"] == "managed"]


def _made_resources(state: list[dict[str, Any]]) -> Mapping[str, frozenset[str]]:
    made: dict[str, set[str]] = {}
    for resource in state:
        kind, attribute = _RESOURCES.get(resource["type"], ("", ""))
        if kind:
            for instance in resource["instances"]:
                made.setdefault(kind, set()).add(_id_of(instance["attributes"][attribute]))
    return {kind: frozenset(found) for kind, found in made.items()}
