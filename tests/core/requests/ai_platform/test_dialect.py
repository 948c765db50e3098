"""A job of AI Platform Training becomes the job of Vertex AI that does the same."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.core.ai_platform_cases import CASES
from tests.core.ai_platform_jobs import IMAGE, Case, custom, with_image, with_packages
from tests.core.parsed import answer_to, faults_of, sound_request
from tests.core.roles import TARGET
from tests.core.shipped import REQUEST_RULES, ROOT
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.names import MODEL_LABEL, RUN_LABEL
from trainmaster.orchestrator.core.requests.ai_platform.job import MASTER
from trainmaster.orchestrator.core.requests.ai_platform.machines import (
    ACCELERATORS,
    MACHINES,
    RETIRED_ACCELERATORS,
    TIERS,
    LegacyMachine,
)
from trainmaster.orchestrator.core.requests.ai_platform.programs import EXECUTOR, RUNTIMES
from trainmaster.orchestrator.core.requests.checks.cluster import FLEX_START_ACCELERATORS
from trainmaster.orchestrator.core.requests.checks.programs import container_of
from trainmaster.orchestrator.core.requests.reading import AI_PLATFORM, OWN, dialect_of
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.spec import spec_from
from trainmaster.orchestrator.core.requests.submission import submission_of

OFFERED_RUNTIMES = [version for version, row in RUNTIMES.items() if not row.is_gone]


def body_of(document: Mapping[str, Any], *, name: str | None = None) -> Mapping[str, Any]:
    return submission_of("run-1", sound_request(document, name=name).spec, TARGET).body


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_legacy_job_becomes_its_vertex_ai_job_with_its_warnings_and_is_read_back(
    case: Case,
) -> None:
    request = sound_request(case.written)
    body = dict(submission_of("run-1", request.spec, TARGET).body)
    assert body.pop("displayName") == "run-1"
    assert body.pop("labels") == {RUN_LABEL: "run-1", MODEL_LABEL: "census"}
    becomes = dict(case.becomes) if "studySpec" in case.becomes else {"jobSpec": case.becomes}
    key = "trialJobSpec" if "studySpec" in becomes else "jobSpec"
    assert body == {**becomes, key: ends_after_a_day(becomes[key])}
    assert tuple(sorted(warning.path for warning in request.warnings)) == case.told
    again = spec_from(request.document)
    assert (again.cluster, again.tuning) == (request.spec.cluster, request.spec.tuning)


def ends_after_a_day(job_spec: Mapping[str, Any]) -> dict[str, Any]:
    """The job with the shipped policy's timeout, if it has none."""
    return {**job_spec, "scheduling": {"timeout": "86400s", **job_spec.get("scheduling", {})}}


def test_a_legacy_job_is_known_by_its_training_input_or_its_id() -> None:
    for key in ("trainingInput", "training_input", "jobId", "job_id"):
        assert dialect_of({key: 1}) is AI_PLATFORM
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
def test_label_job_id_or_file_names_the_model(job: dict[str, Any], dropped: str | None, name: str) -> None:
    document = {"trainingInput": custom()["trainingInput"], **job}
    assert sound_request(document, name=dropped).spec.model_name == name


def test_labels_are_the_jobs() -> None:
    document = custom() | {"labels": {"model_name": "census", "team": "a"}}
    assert body_of(document)["labels"] == {"team": "a", RUN_LABEL: "run-1", MODEL_LABEL: "census"}


def test_the_encryption_key_is_the_jobs() -> None:
    key = "projects/my-project/locations/us-central1/keyRings/ring/cryptoKeys/key"
    body = body_of(custom(encryptionConfig={"kmsKeyName": key}))
    assert body["encryptionSpec"] == {"kmsKeyName": key}


def test_access_to_running_replicas_is_asked_of_the_policy() -> None:
    document = custom(enableWebAccess=True)
    assert list(faults_of(document)) == ["$.trainingInput.enableWebAccess"]
    request = instance_of(Request, answer_to(document, request_rules=replace(REQUEST_RULES, policy=None)))
    assert request.spec.settings["web_access"] is True


def test_an_image_that_says_neither_chief_nor_master_is_warned() -> None:
    document = custom()
    del document["trainingInput"]["useChiefInTfConfig"]
    (warning,) = sound_request(document).warnings
    assert warning.path == "$.trainingInput.useChiefInTfConfig"
    assert "useChiefInTfConfig: false" in warning.repair


def test_a_package_that_asks_for_master_in_tf_config_is_warned_that_it_gets_chief() -> None:
    warnings = sound_request(with_packages(useChiefInTfConfig=False)).warnings
    (problem,) = [each.problem for each in warnings if each.path == "$.trainingInput.useChiefInTfConfig"]
    assert "TF_CONFIG says chief" in problem


def test_a_row_that_is_unverified_is_named() -> None:
    (warning,) = sound_request(with_image(scaleTier="STANDARD_1")).warnings
    assert "unverified" in warning.problem
    assert "workerType: n1-standard-8, workerCount: 4" in warning.repair
    assert "scaleTier: CUSTOM, masterType: n1-standard-8, workerType: n1-standard-8" in warning.repair


def every_row() -> list[LegacyMachine]:
    return [*(machine for tier in TIERS.values() for _, machine in tier.values()), *MACHINES.values()]


def test_every_row_is_a_machine_that_takes_its_accelerators() -> None:
    policy = present(REQUEST_RULES.policy)
    for row in every_row():
        if row.tpu_topology:
            continue
        machines = policy.machines_of(row.machine)
        assert machines is not None, row
        assert not row.accelerator or row.count in (machines.accelerators or {})[row.accelerator], row


@pytest.mark.parametrize("name", [name for name, row in MACHINES.items() if not row.retired])
def test_every_legacy_machine_is_taken(name: str) -> None:
    (warning,) = sound_request(custom(masterType=name)).warnings
    assert MACHINES[name].machine in warning.repair


@pytest.mark.parametrize("runtime", OFFERED_RUNTIMES)
def test_every_runtime_of_tensorflow_2_runs_in_todays_container(runtime: str) -> None:
    request = sound_request(
        with_packages(scaleTier="CUSTOM", masterType="n1-standard-4", runtimeVersion=runtime)
    )
    assert request.spec.cluster.chief.program.image.endswith("tf-cpu.2-17.py310:latest")
    assert [warning.path for warning in request.warnings] == ["$.trainingInput.runtimeVersion"]


def test_no_table_has_a_word_twice() -> None:
    assert not set(ACCELERATORS) & set(RETIRED_ACCELERATORS)
    assert set(FLEX_START_ACCELERATORS) & set(ACCELERATORS) == {"NVIDIA_TESLA_A100"}


def test_resilience_to_worker_restarts_restarts_the_whole_job_however_it_is_written() -> None:
    for value in (True, False):
        request = sound_request(custom(scheduling={"resilientToWorkerRestart": value}))
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
    cluster = sound_request(document).spec.cluster
    assert "tf-cpu" in cluster.chief.program.image
    assert "tf-gpu" in present(cluster.workers).program.image


def test_a_missing_label_is_reported_beside_the_training_input() -> None:
    assert AI_PLATFORM.in_own(with_image(), "census").written_path("$.labels.team") == "$.labels.team"


def test_a_policy_that_allows_no_job_dir_leaves_the_record_where_it_is() -> None:
    request = sound_request(custom(jobDir="gs://elsewhere/jobs"))
    assert request.spec.output_prefix_uri is None
    assert any("the policy does not allow it" in warning.problem for warning in request.warnings)
    assert sound_request(custom(jobDir="gs://models/jobs")).spec.output_prefix_uri == "gs://models/jobs"


def test_a_disallowed_image_is_refused_at_its_place_in_the_text() -> None:
    document = custom(masterConfig={"imageUri": IMAGE.replace("gcr.io", "docker.io")})
    assert list(faults_of(document)) == ["$.trainingInput.masterConfig.imageUri"]


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
    container = present(container_of(EXECUTOR.format(kind="cpu")))
    assert f"{container.patched_until}" in guide
    assert f"{container.available_until}" in guide
