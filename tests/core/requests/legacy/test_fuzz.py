"""No mapping that calls itself a job of AI Platform Training breaks its reading."""

from collections.abc import Mapping
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.core.legacy_jobs import IMAGE
from tests.core.standards import STANDARDS
from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.faults import json_path
from trainmaster.orchestrator.core.requests.legacy.tables import MACHINES, TIERS
from trainmaster.orchestrator.core.requests.reading import checked_request
from trainmaster.orchestrator.core.requests.request import Refused, Request

KEYS = st.sampled_from(
    [
        *("scaleTier", "masterType", "masterConfig", "workerType", "workerCount", "workerConfig"),
        *("parameterServerType", "parameterServerCount", "parameterServerConfig", "evaluatorType"),
        *("evaluatorCount", "evaluatorConfig", "packageUris", "pythonModule", "runtimeVersion", "args"),
        *("pythonVersion", "region", "jobDir", "hyperparameters", "scheduling", "useChiefInTfConfig"),
        *("network", "serviceAccount", "encryptionConfig", "enableWebAccess", "nasJobSpec", "imageUri"),
        *("acceleratorConfig", "containerCommand", "containerArgs", "diskConfig", "tpuTfVersion", "count"),
        *("type", "bootDiskType", "bootDiskSizeGb", "goal", "params", "maxTrials", "maxParallelTrials"),
        *("maxFailedTrials", "hyperparameterMetricTag", "enableTrialEarlyStopping", "algorithm"),
        *("resumePreviousJobId", "parameterName", "minValue", "maxValue", "categoricalValues", "scaleType"),
        *("discreteValues", "maxRunningTime", "maxWaitTime", "priority", "strategy", "kmsKeyName", "a.b"),
        *("resilientToWorkerRestart", "master_type", "odd key", "image_uri"),
    ]
)
WORDS = st.sampled_from(
    [
        *TIERS,
        *MACHINES,
        *("CUSTOM", "n1-standard-4", "a2-highgpu-1g", IMAGE, "us-central1", "europe-west4", "gs://models/x"),
        *("NVIDIA_TESLA_T4", "NVIDIA_TESLA_K80", "NVIDIA_TESLA_A100", "2.11", "1.15", "3.7", "2.7", "3600s"),
        *("DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE", "UNIT_LOG_SCALE", "NONE", "MAXIMIZE", "LOW_COST"),
        *("POPULATION_BASED_TRAINING", "trainer.task", "gs://packages/a.tar.gz", "", "\u00e9", "2"),
    ]
)
LEAVES = st.one_of(
    WORDS, st.none(), st.booleans(), st.integers(-1, 2000), st.floats(-1, 10), st.text(max_size=5)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(KEYS, st.text(max_size=4)), inner, max_size=6)
    ),
    max_leaves=20,
)
JOBS = st.fixed_dictionaries(
    {"trainingInput": st.one_of(st.dictionaries(KEYS, VALUES, max_size=12), VALUES)},
    optional={"jobId": LEAVES, "labels": VALUES, "state": LEAVES, "odd": LEAVES},
)


def checked(document: Mapping[str, Any], *, name: str | None = "census") -> Request | Refused:
    return checked_request(Document(value=dict(document)), STANDARDS, name=name)


def places(value: object, path: str = "$") -> set[str]:
    """Every place of the document, as paths spell them."""
    found = {path}
    inside: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        inside = list(value.items())
    elif isinstance(value, list):
        inside = list(enumerate(value))
    for key, part in inside:
        found |= places(part, path + json_path([key])[1:])
    return found


def parent(path: str) -> str:
    if path.endswith("']"):
        return path[: path.rindex("['")]
    return path[: max(path.rfind("."), path.rfind("["))]


@given(JOBS)
@settings(max_examples=120, deadline=None)
@example({"trainingInput": {}, "jobId": None})
@example({"trainingInput": None})
@example({"trainingInput": {"masterConfig": {"imageUri": IMAGE}, "workerConfig": {"imageUri": 3}, "args": 7}})
@example(
    {"trainingInput": {"scaleTier": ["BASIC"], "runtimeVersion": ["2.1"], "hyperparameters": {"params": [3]}}}
)
@example({"trainingInput": {"masterType": "a2-highgpu-1g", "scaleTier": "CUSTOM", "scheduling": {"maxWaitTime": "1800s"},
                           "masterConfig": {"acceleratorConfig": {"type": ["NVIDIA_L4"], "count": 1}}}})  # fmt: skip
def test_whatever_a_job_says_it_is_taken_or_refused_at_places_of_the_text(document: dict[str, Any]) -> None:
    read = checked(document)
    there = places(document)
    faults = read.faults if isinstance(read, Refused) else read.warnings
    assert faults or isinstance(read, Request)
    for fault in faults:
        assert fault.path in there or parent(fault.path) in there, fault
        assert fault.problem
