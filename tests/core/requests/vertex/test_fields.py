"""Every field of the client's messages is read, ignored or refused by name: none is forgotten."""

from typing import Any

import pytest
from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import StudySpec

from tests.core.vertex_files import Path, job_spec, package_pool
from trainmaster.orchestrator.core.requests.dialects import dialect_of
from trainmaster.orchestrator.core.requests.vertex.study import (
    ALGORITHM_NUMBERS,
    GOAL_NUMBERS,
    MEASUREMENT_NUMBERS,
    NOISE_NUMBERS,
    SCALE_NUMBERS,
)

FOREIGN = "this key is not allowed in a request"
NO_PLACE = {
    "gpuPartitionSize", "reservationAffinity", "lustreMounts", "models", "protectedArtifactLocationId",
    "pscInterfaceConfig",
}  # fmt: skip
POOL: Path = ("jobSpec", "workerPoolSpecs", 0)
PACKAGES: Path = ("jobSpec", "workerPoolSpecs", 1)
STUDY: Path = ("studySpec",)
PARAMETER: Path = ("studySpec", "parameters", 0)
CONDITION: Path = (*PARAMETER, "conditionalParameterSpecs", 0, "parentIntValues")
PLACES: list[tuple[Any, Path]] = [
    (types.CustomJob, ()),
    (types.CustomJobSpec, ("jobSpec",)),
    (types.Scheduling, ("jobSpec", "scheduling")),
    (types.GcsDestination, ("jobSpec", "baseOutputDirectory")),
    (types.EncryptionSpec, ("encryptionSpec",)),
    (types.WorkerPoolSpec, POOL),
    (types.MachineSpec, (*POOL, "machineSpec")),
    (types.DiskSpec, (*POOL, "diskSpec")),
    (types.NfsMount, (*POOL, "nfsMounts", 0)),
    (types.ContainerSpec, (*POOL, "containerSpec")),
    (types.EnvVar, (*POOL, "containerSpec", "env", 0)),
    (types.PythonPackageSpec, (*PACKAGES, "pythonPackageSpec")),
    (types.HyperparameterTuningJob, ()),
    (types.CustomJobSpec, ("trialJobSpec",)),
    (StudySpec, STUDY),
    (StudySpec.MetricSpec, (*STUDY, "metrics", 0)),
    (StudySpec.ParameterSpec, PARAMETER),
    (StudySpec.ParameterSpec.ConditionalParameterSpec.IntValueCondition, CONDITION),
    (StudySpec.StudyStoppingConfig, (*STUDY, "studyStoppingConfig")),
    (StudySpec.MedianAutomatedStoppingSpec, (*STUDY, "medianAutomatedStoppingSpec")),
]


def base(path: Path, message: Any) -> Any:
    spec = job_spec()
    spec["workerPoolSpecs"][1] = package_pool(1)
    if message is types.HyperparameterTuningJob or path[:1] in {("studySpec",), ("trialJobSpec",)}:
        parameter = {"parameterId": "p", "conditionalParameterSpecs": [{"parentIntValues": {}}]}
        study: dict[str, Any] = {"metrics": [{}], "parameters": [parameter]}
        study |= {"studyStoppingConfig": {}, "medianAutomatedStoppingSpec": {}}
        return {"displayName": "x", "studySpec": study, "trialJobSpec": spec}
    return {"displayName": "x", "jobSpec": spec, "encryptionSpec": {}}


def homeless(document: Any) -> dict[str, str]:
    """Unsupported keys, by the problem reported."""
    faults = dialect_of(document).in_own(document, "x").faults
    return {
        fault.path.rpartition(".")[2]: fault.problem
        for fault in faults
        if fault.problem == FOREIGN or "do not support it yet" in fault.problem
    }


@pytest.mark.parametrize(("message", "path"), PLACES, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("spelling", ["json_name", "name"])
def test_every_field_of_the_client_is_known(message: Any, path: Path, spelling: str) -> None:
    document = base(path, message)
    place = document
    for part in path:
        place = place[part]
    names = {field.json_name: getattr(field, spelling) for field in message.pb().DESCRIPTOR.fields}
    for json_name, name in names.items():
        if json_name not in place:
            place[name] = {"junk": 1}
    place["noSuchKey"] = 1
    written = {*names.values(), "noSuchKey"}
    found = {key: problem for key, problem in homeless(document).items() if key in written}
    expected = {names[key] for key in NO_PLACE if key in names}
    assert set(found) == {*expected, "noSuchKey"}
    assert found["noSuchKey"] == FOREIGN
    assert all("do not support it yet" in found[key] for key in expected)


@pytest.mark.parametrize(
    ("numbers", "enum"),
    [
        (GOAL_NUMBERS, StudySpec.MetricSpec.GoalType),
        (SCALE_NUMBERS, StudySpec.ParameterSpec.ScaleType),
        (ALGORITHM_NUMBERS, StudySpec.Algorithm),
        (MEASUREMENT_NUMBERS, StudySpec.MeasurementSelectionType),
        (NOISE_NUMBERS, StudySpec.ObservationNoise),
    ],
)
def test_numbers_of_a_study_are_the_clients(numbers: dict[int, str], enum: Any) -> None:
    assert {member.value: name for name, member in enum.__members__.items()} == numbers
