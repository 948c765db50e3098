"""A file that gcloud takes for a custom job is the job that it says, whichever way it is spelled."""

import copy
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import Scheduling

from tests.core.roles import TARGET
from tests.core.vertex_files import job, job_spec, package_pool, plain, snake, sound, spec_of, told
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.reading import VERTEX_CUSTOM
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainmaster.orchestrator.core.requests.vertex.dialect import DEPRECATED


def meant(document: dict[str, Any], *, name: str | None = None) -> Any:
    """The job's body."""
    return submission_of("run-1", spec_of(document, name), TARGET).body


def as_submitted(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec with its output below the run's own prefix, and without what says nothing."""
    whole = copy.deepcopy(spec)
    whole["baseOutputDirectory"]["outputUriPrefix"] += "/flowers/run-1"
    del whole["scheduling"]["disableRetries"]
    return whole


@pytest.mark.parametrize("spelling", [copy.deepcopy, snake], ids=["camelCase", "snake_case"])
def test_everything_in_a_job_reaches_the_service_as_it_was_written(spelling: Any) -> None:
    body = meant(spelling(job()))
    assert body["jobSpec"] == as_submitted(job_spec())
    assert body["encryptionSpec"] == job()["encryptionSpec"]
    assert body["labels"] == {
        "team": "vision", "trainmaster_run_id": "run-1", "trainmaster_model": "flowers",
    }  # fmt: skip
    assert not VERTEX_CUSTOM.in_own(spelling(job()), None).faults


def test_packages_reach_the_service_as_they_were_written() -> None:
    spec = {**job_spec(), "workerPoolSpecs": [package_pool(index) for index in range(4)]}
    assert meant({"displayName": "flowers", "jobSpec": spec})["jobSpec"] == as_submitted(spec)


def test_the_spec_alone_is_the_same_job() -> None:
    bare = {key: value for key, value in job().items() if key != "jobSpec"} | job_spec()
    assert meant(bare) == meant(job())
    mixed = {**snake(bare), "workerPoolSpecs": job_spec()["workerPoolSpecs"]}
    del mixed["worker_pool_specs"]
    assert meant(mixed) == meant(job())


@pytest.mark.parametrize("empty", [{}, None])
def test_an_empty_pool_keeps_the_places_of_those_after_it(empty: object) -> None:
    (small,) = plain()["workerPoolSpecs"]
    pools = meant(plain(workerPoolSpecs=[small, empty, empty, {**small, "replicaCount": 2}]))["jobSpec"]
    assert [pool.get("replicaCount") for pool in pools["workerPoolSpecs"]] == ["1", None, None, "2"]
    after = meant(plain(workerPoolSpecs=[small, empty, empty, empty]))["jobSpec"]["workerPoolSpecs"]
    assert len(after) == 1


def test_an_unspecified_accelerator_is_none() -> None:
    (small,) = plain()["workerPoolSpecs"]
    machine = {"machineType": "n1-standard-4", "acceleratorType": "ACCELERATOR_TYPE_UNSPECIFIED"}
    chief = spec_of(plain(workerPoolSpecs=[{**small, "machineSpec": machine}])).cluster.chief
    assert chief.accelerator is None


@pytest.mark.parametrize("name", Scheduling.Strategy.__members__)
def test_every_strategy_of_the_client_is_known(name: str) -> None:
    today = DEPRECATED.get(name, name)
    expected = {} if today in ("STANDARD", "STRATEGY_UNSPECIFIED") else {"strategy": today}
    document = plain(scheduling={"strategy": name})
    assert meant(document)["jobSpec"].get("scheduling", {}) == expected
    warnings = [str(each) for each in VERTEX_CUSTOM.in_own(document, None).warnings]
    assert [f"write {today}" in each for each in warnings] == [True] * (name in DEPRECATED)


def test_the_number_of_an_enum_is_refused_with_the_way_to_its_name() -> None:
    (small,) = plain()["workerPoolSpecs"]
    machine = {"machineType": "n1-standard-4", "acceleratorType": 5, "acceleratorCount": 1}
    document = plain(workerPoolSpecs=[{**small, "machineSpec": machine}], scheduling={"strategy": 4})
    faults = VERTEX_CUSTOM.in_own(document, None).faults
    assert [fault.path.rpartition(".")[2] for fault in faults] == ["strategy", "acceleratorType"]
    assert all("use_integers_for_enums=False" in fault.repair for fault in faults)


@pytest.mark.parametrize(
    ("scheduling", "submitted", "warned"),
    [
        ({"strategy": "SPOT", "maxWaitDuration": "60s"}, {"strategy": "SPOT"}, "maxWaitDuration"),
        ({"maxWaitDuration": "0s"}, {}, "maxWaitDuration"),
        (
            {"restartJobOnWorkerRestart": True, "disableRetries": True},
            {"disableRetries": True},
            "restartJobOnWorkerRestart",
        ),
    ],
)
def test_what_the_service_ignores_is_warned_about(
    scheduling: dict[str, Any], submitted: dict[str, Any], warned: str
) -> None:
    document = plain(scheduling=scheduling)
    (warning,) = (each for each in sound(document).warnings if each.problem.endswith("; ignored"))
    assert warning.path == f"$.scheduling.{warned}"
    assert meant(document)["jobSpec"].get("scheduling", {}) == submitted


@pytest.mark.parametrize(
    ("written", "name", "expected"),
    [
        ({"labels": {"model_name": "by-label"}}, "by-file", "by-label"),
        ({"displayName": "by-display"}, "by-file", "by-display"),
        ({"displayName": "My Flowers (2)"}, "by-file", "my-flowers-2"),
        ({"displayName": "2nd"}, None, "model-2nd"),
        ({"labels": {"model_name": "by-label"}, "displayName": "shown"}, None, "by-label"),
        ({}, "by-file", "by-file"),
        ({"displayName": ""}, "by-file", "by-file"),
        ({"displayName": None, "labels": {"team": "a"}}, "by-file", "by-file"),
        ({"displayName": None, "labels": {"model_name": ""}}, "by-file", "by-file"),
    ],
)
def test_label_display_name_or_file_names_the_model(
    written: dict[str, Any], name: str | None, expected: str
) -> None:
    bare = {**{key: value for key, value in plain().items() if key != "displayName"}, **written}
    assert sound(bare, name=name).spec.model_name == expected
    whole = {"jobSpec": {"workerPoolSpecs": bare["workerPoolSpecs"]}, **written}
    assert sound(whole, name=name).spec.model_name == expected


def test_a_nameless_job_is_refused_with_ways_to_name_it() -> None:
    nameless = {key: value for key, value in plain().items() if key != "displayName"}
    (fault,) = told(nameless).items()
    assert fault[0] == "$.displayName"
    assert "displayName, or the label model_name; a dropped file is a name" in fault[1]


def test_a_display_name_that_is_not_a_model_name_is_changed_with_a_warning() -> None:
    (warning,) = sound({**plain(), "displayName": "My flowers"}).warnings
    assert "the model is called my-flowers" in str(warning)


def test_a_label_of_the_model_is_no_label_of_the_job() -> None:
    request = sound({**plain(), "labels": {"model_name": "horses", "team": "a"}})
    assert request.spec.labels == {"team": "a"}
    assert ["this name is ignored" in str(each) for each in request.warnings] == [True]


def described(document: dict[str, Any]) -> dict[str, Any]:
    """What `gcloud ai custom-jobs describe` prints of it."""
    return {
        "createTime": "2026-11-21T03:34:43.612701Z",
        **document,
        "endTime": "2026-11-21T03:34:45.846313Z",
        "error": {"code": 1, "message": "CANCELED"},
        "name": "projects/1/locations/us-central1/customJobs/1234567890123456804",
        "startTime": "2026-11-21T03:34:45.115436Z",
        "state": "JOB_STATE_CANCELLED",
        "updateTime": "2026-11-21T03:34:43.612708Z",
        "webAccessUris": {"workerpool0-0": "https://x"},
        "satisfiesPzs": False,
        "satisfiesPzi": False,
    }


def test_a_described_job_is_a_request_again() -> None:
    whole = {"displayName": "flowers", "jobSpec": {"workerPoolSpecs": plain()["workerPoolSpecs"]}}
    request = sound(described(whole))
    assert request.spec == sound(whole).spec
    (warning,) = request.warnings
    assert warning.path == "$"
    assert warning.problem == "output of the service about an earlier job; ignored"
    assert set(described({})) == set(warning.found.split(", "))


def test_kinds_of_files_are_told_apart() -> None:
    (small,) = plain()["workerPoolSpecs"]
    spec = {"workerPoolSpecs": [small]}
    assert sound({"displayName": "a", "jobSpec": spec}).spec.kind is JobKind.CUSTOM
    assert sound({"display_name": "a", "job_spec": spec}).spec.kind is JobKind.CUSTOM
    assert sound({"worker_pool_specs": [small]}, name="a").spec.kind is JobKind.CUSTOM
    study = {
        "metrics": [{"metricId": "m"}],
        "parameters": [{"parameterId": "p", "integerValueSpec": {"minValue": 1, "maxValue": 2}}],
    }
    one = sound({"studySpec": study, "trialJobSpec": spec}, name="a")
    assert one.spec.kind is JobKind.TUNING
    (warning,) = [fault for fault in one.warnings if fault.path == "$.maxTrialCount"]
    assert warning.problem == "missing, so the study has one trial"
    assert "--max-trial-count" in warning.repair
    more = sound({"studySpec": study, "trialJobSpec": spec, "maxTrialCount": 3}, name="a")
    assert "$.maxTrialCount" not in {fault.path for fault in more.warnings}
