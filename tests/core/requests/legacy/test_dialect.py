"""A job of AI Platform Training becomes the job of Vertex AI that does the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.core.legacy_cases import CASES
from tests.core.legacy_jobs import IMAGE, Case, custom, with_image, with_packages
from tests.core.parsed import parse_request
from tests.core.shipped import REQUEST_RULES, ROOT
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.names import MODEL_LABEL, RUN_LABEL
from trainmaster.orchestrator.core.requests.checks.cluster import FLEX_START_ACCELERATORS
from trainmaster.orchestrator.core.requests.checks.programs import container_of
from trainmaster.orchestrator.core.requests.legacy.job import MASTER
from trainmaster.orchestrator.core.requests.legacy.machines import (
    ACCELERATORS,
    MACHINES,
    RETIRED_ACCELERATORS,
    TIERS,
    Machine,
)
from trainmaster.orchestrator.core.requests.legacy.programs import EXECUTOR, RUNTIMES
from trainmaster.orchestrator.core.requests.reading import LEGACY, OWN, dialect_of
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.spec import spec_from
from trainmaster.orchestrator.core.requests.submission import Target, submission_of

OFFERED_RUNTIMES = [version for version, row in RUNTIMES.items() if not row.is_gone]
TARGET = Target(project="my-project", region="us-central1", models_bucket="models")


def request_of(document: Mapping[str, Any], *, name: str | None = None) -> Request:
    text = yaml.safe_dump(dict(document)).encode()
    request = parse_request(text, as_json=False, request_rules=REQUEST_RULES, name=name)
    assert isinstance(request, Request), request
    return request


def body_of(document: Mapping[str, Any], *, name: str | None = None) -> Mapping[str, Any]:
    return submission_of("run-1", request_of(document, name=name).spec, TARGET).body


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_job_becomes_this_one_of_vertex_ai(case: Case) -> None:
    body = dict(body_of(case.written))
    assert body.pop("displayName") == "run-1"
    assert body.pop("labels") == {RUN_LABEL: "run-1", MODEL_LABEL: "census"}
    becomes = dict(case.becomes) if "studySpec" in case.becomes else {"jobSpec": case.becomes}
    key = "trialJobSpec" if "studySpec" in becomes else "jobSpec"
    assert body == {**becomes, key: ends_after_a_day(becomes[key])}


def ends_after_a_day(job_spec: Mapping[str, Any]) -> dict[str, Any]:
    """The job with the shipped policy's timeout, if it has none."""
    return {**job_spec, "scheduling": {"timeout": "86400s", **job_spec.get("scheduling", {})}}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_user_is_told_what_is_not_quite_the_same(case: Case) -> None:
    assert tuple(sorted(warning.path for warning in request_of(case.written).warnings)) == case.told


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_run_on_record_gives_the_job_again(case: Case) -> None:
    request = request_of(case.written)
    again = spec_from(request.document)
    assert again.cluster == request.spec.cluster
    assert again.tuning == request.spec.tuning


def test_a_legacy_job_is_known_by_its_training_input_or_its_id() -> None:
    for key in ("trainingInput", "training_input", "jobId", "job_id"):
        assert dialect_of({key: 1}) is LEGACY
    assert dialect_of({"model_name": "census"}) is OWN


@pytest.mark.parametrize(
    ("job", "dropped", "name"),
    [
        ({"jobId": "Census_2020"}, "file", "census_2020"),
        ({"jobId": "x" * 128}, None, "x" * 63),
        ({"jobId": "census_7", "labels": {"model_name": "census"}}, "file", "census"),
        ({"labels": {"model_name": "census"}}, "file", "census"),
        ({"labels": {"model_name": ""}}, "file", "file"),
        ({}, "file", "file"),
    ],
)
def test_the_model_is_named_by_label_then_job_id_then_file(
    job: dict[str, Any], dropped: str | None, name: str
) -> None:
    document = {"trainingInput": custom()["trainingInput"], **job}
    assert request_of(document, name=dropped).spec.model_name == name


def test_labels_are_the_jobs() -> None:
    document = custom() | {"labels": {"model_name": "census", "team": "a"}}
    assert body_of(document)["labels"] == {"team": "a", RUN_LABEL: "run-1", MODEL_LABEL: "census"}


def test_the_encryption_key_is_the_jobs() -> None:
    key = "projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key"
    body = body_of(custom(encryptionConfig={"kmsKeyName": key}))
    assert body["encryptionSpec"] == {"kmsKeyName": key}


def test_access_to_running_replicas_is_asked_of_the_policy() -> None:
    text = yaml.safe_dump(custom(enableWebAccess=True)).encode()
    refused = parse_request(text, as_json=False, request_rules=REQUEST_RULES)
    assert isinstance(refused, Refused)
    assert [fault.path for fault in refused.faults] == ["$.trainingInput.enableWebAccess"]
    request = parse_request(text, as_json=False, request_rules=replace(REQUEST_RULES, policy=None))
    assert isinstance(request, Request)
    assert request.spec.settings["web_access"] is True


def test_an_image_that_says_neither_chief_nor_master_is_warned() -> None:
    document = custom()
    del document["trainingInput"]["useChiefInTfConfig"]
    (warning,) = request_of(document).warnings
    assert warning.path == "$.trainingInput.useChiefInTfConfig"
    assert "useChiefInTfConfig: false" in warning.repair


def test_a_package_that_asks_for_master_in_tf_config_is_warned_that_it_gets_chief() -> None:
    warnings = request_of(with_packages(useChiefInTfConfig=False)).warnings
    (problem,) = [each.problem for each in warnings if each.path == "$.trainingInput.useChiefInTfConfig"]
    assert "TF_CONFIG says chief" in problem


def test_a_row_that_is_unverified_is_named() -> None:
    (warning,) = request_of(with_image(scaleTier="STANDARD_1")).warnings
    assert "unverified" in warning.problem
    assert "workerType: n1-standard-8, workerCount: 4" in warning.repair
    assert "scaleTier: CUSTOM, masterType: n1-standard-8, workerType: n1-standard-8" in warning.repair


def every_row() -> list[Machine]:
    return [*(machine for tier in TIERS.values() for _, machine in tier.values()), *MACHINES.values()]


def test_every_row_is_a_machine_that_takes_its_accelerators() -> None:
    policy = REQUEST_RULES.policy
    assert policy is not None
    for row in every_row():
        if row.tpu_topology:
            continue
        machines = policy.machines_of(row.machine)
        assert machines is not None, row
        assert not row.accelerator or row.count in (machines.accelerators or {})[row.accelerator], row


@pytest.mark.parametrize("name", [name for name, row in MACHINES.items() if not row.retired])
def test_every_legacy_machine_is_taken(name: str) -> None:
    (warning,) = request_of(custom(masterType=name)).warnings
    assert MACHINES[name].machine in warning.repair


@pytest.mark.parametrize("runtime", OFFERED_RUNTIMES)
def test_every_runtime_of_tensorflow_2_runs_in_todays_container(runtime: str) -> None:
    request = request_of(
        with_packages(scaleTier="CUSTOM", masterType="n1-standard-4", runtimeVersion=runtime)
    )
    assert request.spec.cluster.chief.program.image.endswith("tf-cpu.2-17.py310:latest")
    assert [warning.path for warning in request.warnings] == ["$.trainingInput.runtimeVersion"]


def test_no_table_has_a_word_twice() -> None:
    assert not set(ACCELERATORS) & set(RETIRED_ACCELERATORS)
    assert set(FLEX_START_ACCELERATORS) & set(ACCELERATORS) == {"NVIDIA_TESLA_A100"}


def test_resilience_to_worker_restarts_restarts_the_whole_job_however_it_is_written() -> None:
    for value in (True, False):
        request = request_of(custom(scheduling={"resilientToWorkerRestart": value}))
        assert request.spec.scheduling.restart_on_worker_restart
        assert [warning.path.rpartition(".")[2] for warning in request.warnings] == [
            "resilientToWorkerRestart"
        ]


def test_a_role_with_gpus_beside_one_without_has_a_container_of_its_own() -> None:
    document = with_packages(
        scaleTier="CUSTOM",
        masterType="n1-standard-8",
        workerType="n1-standard-8",
        workerCount=1,
        workerConfig={"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}},
    )
    cluster = request_of(document).spec.cluster
    assert cluster.workers is not None
    assert "tf-cpu" in cluster.chief.program.image
    assert "tf-gpu" in cluster.workers.program.image


def test_a_label_that_is_missing_is_missed_beside_the_training_input() -> None:
    assert LEGACY.in_own(with_image(), "census").written_path("$.labels.team") == "$.labels.team"


def test_a_policy_that_allows_no_job_dir_leaves_the_record_where_it_is() -> None:
    request = request_of(custom(jobDir="gs://elsewhere/jobs"))
    assert request.spec.output_prefix_uri is None
    assert any("the policy does not allow it" in warning.problem for warning in request.warnings)
    assert request_of(custom(jobDir="gs://models/jobs")).spec.output_prefix_uri == "gs://models/jobs"


def test_an_image_of_the_policys_no_place_is_refused_at_its_place_in_the_text() -> None:
    document = custom(masterConfig={"imageUri": IMAGE.replace("gcr.io", "docker.io")})
    refused = parse_request(yaml.safe_dump(document).encode(), as_json=False, request_rules=REQUEST_RULES)
    assert isinstance(refused, Refused)
    assert [fault.path for fault in refused.faults] == ["$.trainingInput.masterConfig.imageUri"]


def test_the_migration_guide_has_every_row_as_the_tables_have_it() -> None:
    guide = (ROOT / "docs" / "how-to" / "ai-platform.md").read_text()
    rows = {line.split("|")[1].strip(" `"): line for line in guide.splitlines() if line.startswith("| `")}
    machines = {**MACHINES, **{name: tier[MASTER][1] for name, tier in TIERS.items()}}
    for name, machine in machines.items():
        today = f"{machine.machine} with {machine.count} {machine.accelerator}" if machine.count else ""
        assert (today or machine.machine) in rows[name], name
        assert ("fault" in rows[name]) == bool(machine.retired), name
    for name, tier in TIERS.items():
        for role, (count, machine) in tier.items():
            assert role is MASTER or f"{count} × {machine.machine}" in rows[name]
    retired = [version for version, row in RUNTIMES.items() if row.is_gone]
    assert f"{OFFERED_RUNTIMES[0]} to {OFFERED_RUNTIMES[-1]}" in guide
    assert f"{retired[0]} to {retired[-1]}" in guide
    assert EXECUTOR.format(kind="cpu") in guide
    container = container_of(EXECUTOR.format(kind="cpu"))
    assert container is not None
    assert f"{container.patched_until}" in guide
    assert f"{container.available_until}" in guide
