"""A request reaches the service whole, in messages that the service's own types take without a word unknown."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob
from google.protobuf import json_format

from tests.core.roles import (
    EXECUTOR,
    L4,
    MACHINE,
    OTHER,
    PACKAGE,
    T4,
    TARGET,
    TUNING,
    accepted,
    cluster,
    pools,
    request,
    submitted,
)
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.submission import Submission, submission_of

KEY = "projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key"
NETWORK = "projects/1/global/networks/n"
OURS = "tm-trainer@my-project.iam.gserviceaccount.com"
OTHERS = "others-trainer@my-project.iam.gserviceaccount.com"
EXPERIMENT = "projects/my-project/locations/us-central1/metadataStores/default/contexts/e"


def message_of(submission: Submission) -> Any:
    """The service's own message; json_format refuses fields and values that it does not know."""
    kind = CustomJob if submission.kind is JobKind.CUSTOM else HyperparameterTuningJob
    return json_format.ParseDict(submission.body, kind.pb()())


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({}, "job_spec.worker_pool_specs[0].machine_spec.machine_type", "n1-standard-4"),
        ({}, "job_spec.worker_pool_specs[0].replica_count", 1),
        ({}, "job_spec.worker_pool_specs[0].container_spec.image_uri", OTHER),
        ({}, "job_spec.base_output_directory.output_uri_prefix", "gs://models/m/run-1"),
        ({"command": ["a"]}, "job_spec.worker_pool_specs[0].container_spec.command[0]", "a"),
        ({"args": ["--a"]}, "job_spec.worker_pool_specs[0].container_spec.args[0]", "--a"),
        ({"env": {"A": "1"}}, "job_spec.worker_pool_specs[0].container_spec.env[0].value", "1"),
        (
            {"cluster": {"chief": {**MACHINE, "accelerator": T4}}},
            "job_spec.worker_pool_specs[0].machine_spec.accelerator_type",
            5,
        ),
        (
            {"cluster": {"chief": {"machine": "ct5lp-hightpu-4t", "tpu_topology": "4x4"}}},
            "job_spec.worker_pool_specs[0].machine_spec.tpu_topology",
            "4x4",
        ),
        (
            {"cluster": {"chief": {**MACHINE, "disk": {"type": "pd-standard", "size_gb": 200}}}},
            "job_spec.worker_pool_specs[0].disk_spec.boot_disk_size_gb",
            200,
        ),
        (
            {
                "network": NETWORK,
                "cluster": {
                    "chief": {
                        **MACHINE,
                        "nfs_mounts": [{"server": "10.0.0.2", "path": "/data", "mount_point": "d"}],
                    }
                },
            },
            "job_spec.worker_pool_specs[0].nfs_mounts[0].mount_point",
            "d",
        ),
        (
            {"image": None, "python_package": PACKAGE},
            "job_spec.worker_pool_specs[0].python_package_spec.executor_image_uri",
            EXECUTOR,
        ),
        (
            {"image": None, "python_package": PACKAGE},
            "job_spec.worker_pool_specs[0].python_package_spec.package_uris[0]",
            "gs://my-project-data/code/trainer-1.0.tar.gz",
        ),
        (
            {"image": None, "python_package": PACKAGE, "args": ["--a"], "env": {"A": "1"}},
            "job_spec.worker_pool_specs[0].python_package_spec.env[0].name",
            "A",
        ),
        (
            {"cluster": cluster(replica_environment="ai_platform")},
            "job_spec.worker_pool_specs[0].container_spec.env[0].name",
            "TRAINMASTER_REPLICA_ENVIRONMENT",
        ),
        ({"scheduling": {"timeout_s": 60}}, "job_spec.scheduling.timeout.seconds", 60),
        (
            {"scheduling": {"restart_on_worker_restart": True}},
            "job_spec.scheduling.restart_job_on_worker_restart",
            True,
        ),
        ({"scheduling": {"disable_retries": True}}, "job_spec.scheduling.disable_retries", True),
        ({"scheduling": {"spot": True}}, "job_spec.scheduling.strategy", 4),
        ({"scheduling": {"flex_start": True}, "cluster": {"chief": L4}}, "job_spec.scheduling.strategy", 6),
        (
            {"scheduling": {"flex_start": True, "max_wait_s": 7}, "cluster": {"chief": L4}},
            "job_spec.scheduling.max_wait_duration.seconds",
            7,
        ),
        ({"network": NETWORK}, "job_spec.network", NETWORK),
        ({"network": NETWORK, "reserved_ip_ranges": ["r"]}, "job_spec.reserved_ip_ranges[0]", "r"),
        ({"experiment": EXPERIMENT}, "job_spec.experiment", EXPERIMENT),
        ({"experiment": EXPERIMENT, "experiment_run": "r"}, "job_spec.experiment_run", f"{EXPERIMENT}-r"),
        ({"encryption_key": KEY}, "encryption_spec.kms_key_name", KEY),
        ({"labels": {"team": "vision"}}, "labels[team]", "vision"),
        ({"tuning": TUNING}, "trial_job_spec.worker_pool_specs[0].replica_count", 1),
        ({"tuning": TUNING, "encryption_key": KEY}, "encryption_spec.kms_key_name", KEY),
    ],
)
def test_each_key_reaches_a_field_of_the_service(
    changes: Mapping[str, Any], field: str, value: object
) -> None:
    found: Any = message_of(submitted(request(**changes)))
    for part in field.replace("[", ".[").split("."):
        if not part.startswith("["):
            found = getattr(found, part)
        else:
            found = found[int(part[1:-1]) if part[1:-1].isdecimal() else part[1:-1]]
    assert found == value


@pytest.mark.parametrize(
    ("changes", "policy", "field"),
    [
        ({"web_access": True}, {"web_access": True}, "enable_web_access"),
        ({"dashboard_access": True}, {"dashboard_access": True}, "enable_dashboard_access"),
        ({"persistent_resource": "r"}, {"persistent_resources": ("*",)}, "persistent_resource_id"),
    ],
)
def test_what_another_policy_allows_is_sent(
    changes: Mapping[str, Any], policy: Mapping[str, Any], field: str
) -> None:
    (value,) = changes.values()
    assert getattr(message_of(submitted(request(**changes), **policy)).job_spec, field) == value


def test_a_wait_without_end_is_said_and_not_left_out() -> None:
    document = request(scheduling={"flex_start": True, "max_wait_s": 0}, cluster={"chief": L4})
    job: Any = submitted(document).body["jobSpec"]
    wait = {"strategy": "FLEX_START", "maxWaitDuration": "0s", "timeout": "86400s"}
    assert job["scheduling"] == wait


@pytest.mark.parametrize(
    ("roles", "counts"),
    [
        ({}, [1]),
        ({"workers": {**MACHINE, "count": 3}}, [1, 3]),
        ({"evaluators": {**MACHINE, "count": 1}}, [1, 0, 0, 1]),
        ({"workers": {**MACHINE, "count": 2}, "evaluators": {**MACHINE, "count": 1}}, [1, 2, 0, 1]),
        (
            {
                "evaluators": {**MACHINE, "count": 2},
                "parameter_servers": {**MACHINE, "count": 3},
                "workers": {**MACHINE, "count": 4},
            },
            [1, 4, 3, 2],
        ),
    ],
)
def test_each_role_has_a_pool_even_an_absent_one(roles: Mapping[str, Any], counts: list[int]) -> None:
    document = request(cluster=cluster(**roles))
    assert [pool == {} for pool in pools(document)] == [count == 0 for count in counts]
    specs = message_of(submitted(document)).job_spec.worker_pool_specs
    assert [spec.replica_count for spec in specs] == counts


def test_every_role_is_told_whose_environment_it_reads() -> None:
    roles = {role: {**MACHINE, "count": 1} for role in ("workers", "parameter_servers", "evaluators")}
    roles["evaluators"] |= {"image": OTHER, "env": {"A": "1"}}
    for pool in pools(request(cluster=cluster(**roles, replica_environment="ai_platform"))):
        said = {"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "ai_platform"}
        assert said in pool["containerSpec"]["env"]


@pytest.mark.parametrize("work", [{}, {"tuning": TUNING}])
@pytest.mark.parametrize(
    ("named", "deployed", "runs_as"),
    [(None, OURS, OURS), (OTHERS, OURS, OTHERS), (OTHERS, None, OTHERS), (None, None, "")],
)
def test_a_job_runs_as_the_account_of_its_request_or_else_of_the_deployment(
    work: Mapping[str, Any], named: str | None, deployed: str | None, runs_as: str
) -> None:
    spec = accepted(request(**work, service_account=named)).spec
    message = message_of(submission_of("run-1", spec, replace(TARGET, service_account=deployed)))
    assert (message.trial_job_spec if work else message.job_spec).service_account == runs_as
