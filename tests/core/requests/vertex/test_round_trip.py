"""A submission, dropped again as a file for gcloud, is the same job; so is one that gcloud itself once sent."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob, StudySpec

from tests.core.roles import TARGET
from tests.core.shipped import REQUEST_RULES
from tests.core.vertex_files import job, plain, snake, sound, spec_of
from trainmaster.orchestrator.adapters.job_messages import message_of
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.requests.reading import VERTEX_CUSTOM, VERTEX_TUNING, Dialect
from trainmaster.orchestrator.core.requests.spec import JobSpec, spec_from
from trainmaster.orchestrator.core.requests.submission import submission_of

ROOT = Path(__file__).resolve().parents[4]
SCHEMA = REQUEST_RULES.schemas["training_request.v1"]


def read_again(document: object, dialect: Dialect, *, name: str | None) -> JobSpec:
    """The job of a file with this content; both the file and its translation into our dialect must be valid."""
    text = yaml.dump(document, Dumper=WithoutAliases, sort_keys=False)
    read = parse_document(text.encode(), as_json=False)
    assert not read.faults
    assert isinstance(read.value, dict)
    meant = dialect.in_own(read.value, name)
    assert not meant.faults, meant.faults
    assert not schema_faults(SCHEMA, meant.document)
    return spec_from(meant.document)


class WithoutAliases(yaml.SafeDumper):
    """Files as people write them: what is there twice is written twice."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML calls it so
        return True


def assert_same(found: JobSpec, expected: JobSpec) -> None:
    assert found == expected
    # Mappings are equal in any order; what is submitted is a list of variables.
    assert submission_of("run-2", found, TARGET) == submission_of("run-2", expected, TARGET)


@pytest.mark.parametrize("spelling", [copy.deepcopy, snake], ids=["camelCase", "snake_case"])
@pytest.mark.parametrize(
    "example", ["examples/tuning.yaml", "schemas/examples/valid/training_request.v1.tuning.yaml"]
)
def test_a_tuning_as_it_is_described_is_the_same_tuning_again(example: str, spelling: Any) -> None:
    spec = spec_from(yaml.safe_load((ROOT / example).read_text()))
    body = dict(submission_of("run-1", spec, TARGET).body)
    described = {**body, "state": "JOB_STATE_SUCCEEDED", "trials": [{"id": "1", "parameters": []}]}
    expected = replace(spec, output_prefix_uri=spec.output_prefix_uri or "gs://models", champion=None)
    assert_same(read_again(spelling(described), VERTEX_TUNING, name=None), expected)


def test_a_job_as_the_client_prints_it_with_its_enums_by_name_is_the_same_job_again() -> None:
    """With a zero or an empty string for every missing field."""
    for document in (
        job(),
        plain(),
        EMPTY_MIDDLE,
        yaml.safe_load((ROOT / "examples/tuning.yaml").read_text()),
    ):
        spec = spec_of(document)
        message: Any = message_of(submission_of("run-1", spec, TARGET))
        printed = json.loads(type(message).to_json(message, use_integers_for_enums=False))
        found = read_again(printed, VERTEX_TUNING if "studySpec" in printed else VERTEX_CUSTOM, name=None)
        assert_same(found, replace(spec, output_prefix_uri=spec.output_prefix_uri or "gs://models"))


EMPTY_MIDDLE = plain(workerPoolSpecs=[*plain()["workerPoolSpecs"], {}, {}, *plain()["workerPoolSpecs"]])


# Bodies that gcloud 528 and google-cloud-aiplatform 1.162 sent, buckets renamed and enums by name; GCP_FACTS has how they were caught.
GCLOUD_CUSTOM = """
{"displayName": "d1", "jobSpec": {"baseOutputDirectory": {"outputUriPrefix": "gs://models/out"}, "scheduling":
{"maxWaitDuration": "1800s", "restartJobOnWorkerRestart": true, "strategy": "SPOT", "timeout": "3600s"},
"workerPoolSpecs": [{"containerSpec": {"args": ["--epochs=1"], "env": [{"name": "A", "value": "b"}], "imageUri":
"gcr.io/my-project/img:1"}, "machineSpec": {"acceleratorCount": 1, "acceleratorType": "NVIDIA_TESLA_T4", "machineType":
"n1-standard-4"}, "replicaCount": "1"}]}, "labels": {"team": "ml"}}
"""
CLIENT_CUSTOM = """
{"displayName": "d1", "jobSpec": {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4",
"acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 1}, "replicaCount": "1", "diskSpec": {"bootDiskType": "pd-ssd",
"bootDiskSizeGb": 100}, "containerSpec": {"imageUri": "gcr.io/my-project/img:1", "args": ["--epochs=1"], "env": [{"name":
"A", "value": "b"}]}}, {}, {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "2", "containerSpec":
{"imageUri": "gcr.io/my-project/img:1"}}], "scheduling": {"timeout": "3600s", "restartJobOnWorkerRestart": true, "strategy":
"SPOT", "maxWaitDuration": "1800s"}, "serviceAccount": "sa-trainer@my-project.iam.gserviceaccount.com", "baseOutputDirectory":
{"outputUriPrefix": "gs://models/out"}, "enableWebAccess": true}, "labels": {"k": "v"}}
"""
GCLOUD_TUNING = """
{"displayName": "h1", "maxTrialCount": 4, "parallelTrialCount": 2, "studySpec": {"algorithm": "RANDOM_SEARCH",
"metrics": [{"goal": "MAXIMIZE", "metricId": "accuracy"}], "parameters": [{"doubleValueSpec": {"maxValue": 0.1,
"minValue": 0.0001}, "parameterId": "lr", "scaleType": "UNIT_LOG_SCALE"}, {"integerValueSpec": {"maxValue": "4",
"minValue": "1"}, "parameterId": "layers"}]}, "trialJobSpec": {"workerPoolSpecs": [{"containerSpec": {"imageUri":
"gcr.io/my-project/img:1"}, "machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1"}]}}
"""
SDK_TUNING = """
{"displayName": "hlh", "studySpec": {"metrics": [{"metricId": "acc", "goal": "MAXIMIZE"}], "parameters": [{"parameterId":
"lr", "doubleValueSpec": {"minValue": 0.001, "maxValue": 0.1}, "scaleType": "UNIT_LOG_SCALE"}, {"parameterId": "bs",
"discreteValueSpec": {"values": [1.0, 2.0]}, "scaleType": "UNIT_LINEAR_SCALE"}, {"parameterId": "opt", "categoricalValueSpec":
{"values": ["a", "b"]}, "conditionalParameterSpecs": [{"parameterSpec": {"parameterId": "mom", "doubleValueSpec":
{"maxValue": 1.0}, "scaleType": "UNIT_LINEAR_SCALE"}, "parentCategoricalValues": {"values": ["a"]}}]}, {"parameterId": "n",
"integerValueSpec": {"minValue": "1", "maxValue": "3"}, "scaleType": "UNIT_LINEAR_SCALE"}], "algorithm": "RANDOM_SEARCH",
"measurementSelectionType": "BEST_MEASUREMENT"}, "maxTrialCount": 3, "parallelTrialCount": 2, "trialJobSpec": {"workerPoolSpecs":
[{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": {"imageUri":
"gcr.io/my-project/img:1", "args": ["--x=1"]}}], "baseOutputDirectory": {"outputUriPrefix": "gs://models/sdk"}}}
"""
SENT = {"gcloud custom": GCLOUD_CUSTOM, "client custom": CLIENT_CUSTOM,
        "gcloud tuning": GCLOUD_TUNING, "sdk tuning": SDK_TUNING}  # fmt: skip


@pytest.mark.parametrize("sent", SENT.values(), ids=SENT)
def test_what_a_client_sent_is_the_job_that_it_asked_for(sent: str) -> None:
    asked = json.loads(sent)
    message: Any = HyperparameterTuningJob if "studySpec" in asked else CustomJob
    dialect = VERTEX_TUNING if "studySpec" in asked else VERTEX_CUSTOM
    spec = read_again(asked, dialect, name=None)
    submitted: Any = submission_of("run-1", spec, TARGET).body
    # The client's own parser says what both mean: numbers or names, zeros or nothing.
    wanted, found = (message.to_dict(message.from_json(json.dumps(each))) for each in (asked, submitted))
    inner = "trial_job_spec" if "studySpec" in asked else "job_spec"
    for each in (wanted, found):
        each[inner].pop("base_output_directory", None)
    # It comes with SPOT, and the service reads it with FLEX_START alone.
    wanted[inner].get("scheduling", {}).pop("max_wait_duration", None)
    found[inner].get("scheduling", {}).pop("max_wait_duration", None)
    assert found[inner] == wanted[inner]
    if "study_spec" in wanted:
        # Unspecified means the last, says the service.
        wanted["study_spec"]["measurement_selection_type"] = (
            wanted["study_spec"]["measurement_selection_type"]
            or StudySpec.MeasurementSelectionType.LAST_MEASUREMENT
        )
    for key in ("study_spec", "max_trial_count", "parallel_trial_count", "max_failed_trial_count"):
        assert found.get(key) == wanted.get(key)
    assert {key: found["labels"][key] for key in wanted["labels"]} == wanted["labels"]
    assert spec.model_name == asked["displayName"]


SOUND = {name: sent for name, sent in SENT.items() if sent != CLIENT_CUSTOM}
"""The other one has parameter servers that no workers use, to show an empty pool."""


@pytest.mark.parametrize("sent", SOUND.values(), ids=SOUND)
def test_what_a_client_sent_is_a_sound_request(sent: str) -> None:
    document = json.loads(sent)
    # A policy need not open replicas to a shell.
    document.get("jobSpec", {}).pop("enableWebAccess", None)
    request = sound(document)
    assert (request.spec.tuning is None) is ("studySpec" not in document)
