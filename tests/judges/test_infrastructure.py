"""Terraform's provider sends for our resources what their APIs take, by Google's discovery documents."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.deploy.plan import TERRAFORM_BINARY
from tests.judges.discovery import api
from tests.judges.infrastructure import bodies
from tests.judges.provider import DATA, SINGULAR

pytestmark = pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")

SETTINGS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "everything": {
        "kms_key": "projects/p/locations/r/keyRings/k/cryptoKeys/c",
        "vpc_connector": "projects/p/locations/r/connectors/c",
        "vpc_all_traffic": "true",
        "console": '{"image": "console:1", "members": ["group:vision@example.com"]}',
        "policy_keys": '["console"]',
        "alert_emails": '["ops@example.com"]',
        "watched_buckets": '["watched"]',
        "teams": '{"vision": {"members": ["group:vision@example.com"], "requests_topic": "requests-vision"}}',
        "notify": '{"ops": {"secret": "hmac"}, "chat": {"secret": "hmac"}, "mail": {"to": ["a@example.com"]}}',
        "ci": '{"repository_id": "42", "environments": {"submit": "main", "build": "images", "deploy": "production"}}',
    },
}
IN_THE_PATH = ("project", "location", "region")
NO_BODIES = ("_iam_member", "_bucket_object", "google_project_service", "google_project_service_identity")
"""Grants change a policy that is read first, objects have bytes, and services are enabled by name."""


PROVIDERS_OWN: Mapping[str, str] = {
    "deletion_policy": "whether a removal deletes the resource, is refused, or leaves it",
    "deletion_protection": "whether a removal deletes the resource or is refused",
    "force_destroy": "whether a removal deletes what is in the bucket or folder first",
}
"""Arguments of any resource that the provider reads itself and sends to no API, and what they settle.

Source: https://github.com/hashicorp/terraform-provider-google, website/docs/r (read 2026-11)
"""


def _unchanged(body: dict[str, Any]) -> dict[str, Any]:
    return body


def _bucket(body: dict[str, Any]) -> dict[str, Any]:
    access = {
        "uniformBucketLevelAccess": {"enabled": body.pop("uniformBucketLevelAccess")},
        "publicAccessPrevention": body.pop("publicAccessPrevention"),
    }
    rules = body.pop("lifecycleRule")
    for rule in rules:
        if state := rule["condition"].pop("withState", ""):
            rule["condition"]["isLive"] = state == "LIVE"
    return {**body, "iamConfiguration": access, "lifecycle": {"rule": rules}}


def _repository(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "cleanupPolicies": {each["id"]: each for each in body["cleanupPolicies"]}}


def _subscription(body: dict[str, Any]) -> dict[str, Any]:
    """An empty `ttl` is the provider's word for a subscription that never expires, which has none."""
    assert body.pop("expirationPolicy") == {"ttl": ""}
    return {**body, "expirationPolicy": {}}


@dataclass(frozen=True, kw_only=True)
class Sent:
    """How the provider sends a resource: to which API, as which schema, and what it renames, moves and leaves out.

    A mistake here is a fault, too, for the API knows no other name.
    """

    api: str
    schema: str
    names: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    moved: Callable[[dict[str, Any]], dict[str, Any]] = _unchanged


SENT: Mapping[str, Sent] = {
    "google_artifact_registry_repository": Sent(
        api="artifactregistry.v1", schema="Repository", left_out=("repository_id",), moved=_repository
    ),
    "google_cloud_run_v2_service": Sent(api="run.v2", schema="GoogleCloudRunV2Service"),
    "google_cloud_scheduler_job": Sent(api="cloudscheduler.v1", schema="Job"),
    "google_cloudfunctions2_function": Sent(api="cloudfunctions.v2", schema="Function"),
    "google_eventarc_trigger": Sent(
        api="eventarc.v1",
        schema="Trigger",
        names={"matching_criteria": "eventFilters", "cloud_run_service": "cloudRun"},
    ),
    "google_iam_workload_identity_pool": Sent(
        api="iam.v1", schema="WorkloadIdentityPool", left_out=("workload_identity_pool_id",)
    ),
    "google_iam_workload_identity_pool_provider": Sent(
        api="iam.v1",
        schema="WorkloadIdentityPoolProvider",
        left_out=("workload_identity_pool_id", "workload_identity_pool_provider_id"),
    ),
    "google_logging_metric": Sent(api="logging.v2", schema="LogMetric"),
    "google_logging_project_sink": Sent(
        api="logging.v2", schema="LogSink", left_out=("unique_writer_identity",)
    ),
    "google_monitoring_alert_policy": Sent(api="monitoring.v3", schema="AlertPolicy"),
    "google_monitoring_dashboard": Sent(
        api="monitoring.v1", schema="Dashboard", moved=lambda body: dict(json.loads(body["dashboardJson"]))
    ),
    "google_monitoring_notification_channel": Sent(api="monitoring.v3", schema="NotificationChannel"),
    "google_project_iam_custom_role": Sent(
        api="iam.v1", schema="Role", names={"permissions": "includedPermissions"}, left_out=("role_id",)
    ),
    "google_pubsub_subscription": Sent(api="pubsub.v1", schema="Subscription", moved=_subscription),
    "google_pubsub_topic": Sent(api="pubsub.v1", schema="Topic"),
    "google_service_account": Sent(api="iam.v1", schema="ServiceAccount", left_out=("account_id",)),
    "google_storage_bucket": Sent(api="storage.v1", schema="Bucket", moved=_bucket),
    "google_storage_managed_folder": Sent(api="storage.v1", schema="ManagedFolder"),
}


def body_of(kind: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The body that the provider makes of a resource's arguments."""
    sent = SENT[kind]
    unsent = {*IN_THE_PATH, *PROVIDERS_OWN, *sent.left_out}
    written = {name: each for name, each in arguments.items() if name not in unsent}
    return sent.moved(_in_camel_case(written, DATA["resources"][kind], sent.names))


def _in_camel_case(
    value: Mapping[str, Any], taken: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, Any]:
    """Names of arguments, and none of a map's own keys."""
    found: dict[str, Any] = {}
    for name, each in value.items():
        first, *rest = name.split("_")
        key = names.get(name, first + "".join(map(str.capitalize, rest)))
        inner = taken[SINGULAR.get(name, name)].get("block")
        if inner is None:
            found[key] = each
        elif isinstance(each, list):
            found[key] = [_in_camel_case(one, inner, names) for one in each]
        else:
            found[key] = _in_camel_case(each, inner, names)
    return found


def faults_of(kind: str, body: object) -> list[str]:
    return api(SENT[kind].api).faults(SENT[kind].schema, body)


def judged(settings: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for address, each in bodies(**settings).items():
        kind = address.partition(".")[0]
        if not kind.endswith(NO_BODIES):
            yield from ((f"{address}[{key}]", body_of(kind, arguments)) for key, arguments in each.items())


@pytest.mark.slow(seconds=2)
@pytest.mark.parametrize("settings", SETTINGS)
def test_every_resource_is_one_that_its_api_takes(settings: str) -> None:
    found = dict(judged(SETTINGS[settings]))
    assert len(found) > 50
    faults = [
        f"{address}: {fault}"
        for address, body in found.items()
        for fault in faults_of(address.partition(".")[0], body)
    ]
    assert not faults, faults
