"""A tuning is written in our own dialect or the API's; every fault is reported before anything is submitted."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud.aiplatform_v1.types import StudySpec

from tests.core.parsed import sound_request, told
from tests.core.roles import TARGET
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.study import ALGORITHMS, MEASUREMENTS, SCALES
from trainmaster.orchestrator.core.requests.submission import Submission, submission_of

ROOT = Path(__file__).resolve().parents[3]
OWN = (ROOT / "examples" / "tuning.yaml").read_text()
OTHER_IMAGE = "us-central1-docker.pkg.dev/my-project/other/image"
POOL = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": "1",
    "containerSpec": {"imageUri": OTHER_IMAGE, "args": ["--a"], "env": [{"name": "A", "value": "1"}]},
}
_WRITTEN: dict[str, Any] = {
    "displayName": "horses",
    "labels": {"team": "vision"},
    "maxTrialCount": 6,
    "parallelTrialCount": 2,
    "maxFailedTrialCount": 1,
    "studySpec": {
        "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
        "parameters": [
            {
                "parameterId": "lr",
                "doubleValueSpec": {"minValue": 0.0001, "maxValue": 0.1},
                "scaleType": "UNIT_LOG_SCALE",
            },
            {
                "parameterId": "layers",
                "integerValueSpec": {"minValue": "1", "maxValue": "4"},
                "conditionalParameterSpecs": [
                    {
                        "parentIntValues": {"values": ["3", "4"]},
                        "parameterSpec": {
                            "parameterId": "dropout",
                            "discreteValueSpec": {"values": [0.1, 0.5]},
                        },
                    }
                ],
            },
            {"parameterId": "optimizer", "categoricalValueSpec": {"values": ["sgd", "adam"]}},
        ],
        "algorithm": "RANDOM_SEARCH",
        "measurementSelectionType": "BEST_MEASUREMENT",
        "observationNoise": "HIGH",
        "convexAutomatedStoppingSpec": {"maxStepCount": "100", "learningRateParameterName": "lr"},
        "studyStoppingConfig": {
            "maximumRuntimeConstraint": {"maxDuration": "3600s"},
            "minimumRuntimeConstraint": {"endTime": "2026-03-01T12:00:00Z"},
            "maxNumTrialsNoProgress": 5,
            "maxDurationNoProgress": "600s",
        },
    },
    "trialJobSpec": {
        "workerPoolSpecs": [POOL, {**POOL, "replicaCount": "2"}],
        "scheduling": {"timeout": "600s", "strategy": "SPOT"},
    },
}
API: dict[str, Any] = json.loads(json.dumps(_WRITTEN))
"""Each part is a separate object: YAML would write a shared one as an alias, which requests must not contain."""


def submitted(text: str) -> Submission:
    return submission_of("run-1", sound_request(text).spec, TARGET)


def own(parameters: str = "", **tuning: Any) -> str:
    document: dict[str, Any] = yaml.safe_load(OWN)
    document["image"] = OTHER_IMAGE
    if parameters:
        document["tuning"]["parameters"] = yaml.safe_load(parameters)
    document["tuning"] |= tuning
    return yaml.safe_dump(document, sort_keys=False)


def test_the_example_becomes_the_tuning_job_it_describes() -> None:
    body: Any = submitted(OWN).body
    assert submitted(OWN).kind is JobKind.TUNING
    assert (body["maxTrialCount"], body["parallelTrialCount"], body["maxFailedTrialCount"]) == (6, 2, 2)
    assert body["displayName"] == body["labels"]["trainmaster_run_id"] == "run-1"
    assert body["trialJobSpec"]["baseOutputDirectory"] == {
        "outputUriPrefix": "gs://models/horses-tuned/run-1"
    }
    assert body["studySpec"] == {
        "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
        "parameters": [
            {
                "parameterId": "learning_rate",
                "doubleValueSpec": {"minValue": 0.0001, "maxValue": 0.1},
                "scaleType": "UNIT_LOG_SCALE",
            },
            {
                "parameterId": "momentum",
                "doubleValueSpec": {"minValue": 0.0, "maxValue": 0.9},
                "scaleType": "UNIT_LINEAR_SCALE",
            },
            {"parameterId": "num_units", "discreteValueSpec": {"values": [64, 128, 512]}},
        ],
        "algorithm": "ALGORITHM_UNSPECIFIED",
        "measurementSelectionType": "BEST_MEASUREMENT",
    }


def test_the_apis_own_form_reaches_the_service_as_it_was_written() -> None:
    body: Any = submitted(yaml.safe_dump(API, sort_keys=False)).body
    assert body["studySpec"] == API["studySpec"]
    assert body["trialJobSpec"]["workerPoolSpecs"] == API["trialJobSpec"]["workerPoolSpecs"]
    assert body["trialJobSpec"]["scheduling"] == API["trialJobSpec"]["scheduling"]
    assert {key: body[key] for key in API if key.startswith(("max", "parallel"))} == {
        "maxTrialCount": 6,
        "parallelTrialCount": 2,
        "maxFailedTrialCount": 1,
    }
    assert body["labels"]["trainmaster_model"] == "horses"


def test_every_word_of_the_service_has_one_of_ours() -> None:
    services = StudySpec
    assert set(ALGORITHMS.values()) == set(services.Algorithm.__members__)
    unspecified = {"MEASUREMENT_SELECTION_TYPE_UNSPECIFIED"}
    assert set(MEASUREMENTS.values()) == set(services.MeasurementSelectionType.__members__) - unspecified
    scales = services.ParameterSpec.ScaleType.__members__
    assert set(SCALES.values()) == set(scales) - {"SCALE_TYPE_UNSPECIFIED"}


@pytest.mark.parametrize(
    ("parameters", "path", "words"),
    [
        ("a: {type: double, min: 2, max: 1}", "a.min", "swap them"),
        ("a: {type: double, min: 0, max: 1, scale: log}", "a.scale", "start above 0"),
        ("a: {type: discrete, values: [0, 1], scale: reverse_log}", "a.scale", "only values above 0"),
        ("a: {type: categorical, values: []}", "a.values", "too few entries"),
        ("a: {type: categorical, values: [x, y, x]}", "a.values[2]", "duplicate"),
        ("a: {type: discrete, values: [1, 1]}", "a.values[1]", "duplicate"),
        ("a: {type: discrete, values: [2, 1]}", "a.values[1]", "sort the values"),
        ("a: {type: discrete, values: [x]}", "a.values[0]", "type: categorical"),
        ("a: {type: categorical, values: [1]}", "a.values[0]", 'quote it: "1"'),
        ("a: {type: float, min: 0, max: 1}", "a.type", "did you mean 'double'?"),
        ("a: {type: INT, min: 0, max: 1}", "a.type", "found 'INT'; allowed: double, integer"),
        ("a: {type: categorical, values: [x], scale: log}", "a.scale", "remove it"),
        ("a: {type: integer, min: 0.5, max: 2}", "a.min", "type: double"),
        ("a: {type: integer, min: -1.0e+308, max: 2}", "a.min", "64-bit"),
        ("a: {type: integer, max: 2}", "a.min", "needs it"),
        ("a: {type: integer, values: [1]}", "a.values", "has no values"),
        ("a: {type: categorical, values: [x], min: 1}", "a.min", "list the values instead"),
        ("a: {type: double, min: 0, max: 1, default: 2}", "a.default", "0 to 1"),
        ("a: {type: doubble, min: 0, max: 1}", "a.type", "did you mean 'double'?"),
        ("workload: {type: categorical, values: [x, y]}", "workload", "args already has this flag"),
        (
            (
                "a: {type: categorical, values: [sgd], conditional: "
                "[{when: [sdg], parameters: {b: {type: double, min: 2, max: 1}}}]}"
            ),
            "a.conditional[0].when[0]",
            "did you mean 'sgd'?",
        ),
        (
            (
                "a: {type: categorical, values: [sgd], conditional: "
                "[{when: [sgd], parameters: {b: {type: double, min: 2, max: 1}}}]}"
            ),
            "a.conditional[0].parameters.b.min",
            "min is above max",
        ),
        (
            (
                "a: {type: double, min: 0, max: 1, conditional: "
                "[{when: [1], parameters: {b: {type: double, min: 0, max: 1}}}]}"
            ),
            "a.conditional",
            "nothing can depend on a double",
        ),
    ],
)
def test_each_faulty_parameter_names_its_place_and_its_repair(parameters: str, path: str, words: str) -> None:
    assert words in told(own(parameters))[f"$.tuning.parameters.{path}"]


def test_all_faults_of_a_tuning_come_in_one_report() -> None:
    faults = told(
        own(
            "a: {type: double, min: 2, max: 1}",
            metrics=[{"id": "accuracy", "goal": "maximise"}],
            max_trials=2,
            parallel_trials=3,
            max_failed_trials=4,
            algorithm="grid",
        )
    )
    assert list(faults) == [
        "$.tuning.max_failed_trials",
        "$.tuning.metrics[0].goal",
        "$.tuning.parallel_trials",
        "$.tuning.parameters.a.min",
        "$.tuning.parameters.a.type",
    ]
    assert "did you mean 'maximize'?" in faults["$.tuning.metrics[0].goal"]


def test_other_counts_are_not_compared_with_a_wrong_number_of_trials() -> None:
    faults = told(own("a: {type: double, min: 1, max: 2}", max_trials=0, parallel_trials=1))
    assert list(faults) == ["$.tuning.max_trials"]


def test_a_metric_is_measured_once() -> None:
    metric = {"id": "accuracy", "goal": "maximize"}
    faults = told(own("a: {type: double, min: 1, max: 2}", metrics=[metric, {**metric, "goal": "minimize"}]))
    assert "duplicate metric" in faults["$.tuning.metrics[1].id"]


def test_a_flag_that_the_known_image_does_not_take_is_refused() -> None:
    text = OWN.replace("num_units", "num_unit")
    assert "did you mean 'num_units'?" in told(text)["$.tuning.parameters.num_unit"]


def test_faults_in_the_apis_form_have_the_paths_of_the_text() -> None:
    document = yaml.safe_load(yaml.safe_dump(API))
    document["parallelTrialCount"] = 9
    document["displayName"] = 12
    study = document["studySpec"]
    study["parameters"][0]["doubleValueSpec"]["minValue"] = 0
    study["parameters"][1]["integerValueSpec"]["minValue"] = "9"
    study["metrics"][0]["goal"] = "MAXIMISE"
    study["algoritm"] = "GRID_SEARCH"
    pool = document["trialJobSpec"]["workerPoolSpecs"][1]
    pool["machineSpec"]["machineType"] = "n1-standard-3"
    faults = told(yaml.safe_dump(document))
    assert {
        "$.displayName",
        "$.parallelTrialCount",
        "$.studySpec.algoritm",
        "$.studySpec.metrics[0].goal",
        "$.studySpec.parameters[0].scaleType",
        "$.studySpec.parameters[1].integerValueSpec.minValue",
        "$.trialJobSpec.workerPoolSpecs[1].machineSpec.machineType",
    } <= set(faults)
    assert "did you mean 'algorithm'?" in faults["$.studySpec.algoritm"]
