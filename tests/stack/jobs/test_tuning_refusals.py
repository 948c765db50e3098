"""The faults of a study, all at once and each with its path, without a socket."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from trainstack.errors import InvalidArgumentError
from trainstack.tuning.tuning_job import TuningJob

from .conftest import container

GOOD: dict[str, Any] = {
    "displayName": "s",
    "maxTrialCount": 4,
    "parallelTrialCount": 2,
    "studySpec": {
        "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
        "parameters": [{"parameterId": "x", "discreteValueSpec": {"values": [1, 2]}}],
    },
    "trialJobSpec": {"workerPoolSpecs": [container("tell")]},
}


def parsed(body: object) -> TuningJob:
    return TuningJob.parse(body, project="1", location="us-central1", job_id="1", at=datetime.now(UTC))


def faults(counts: dict[str, int] | None = None, **study: Any) -> list[str]:
    body = copy.deepcopy(GOOD) | (counts or {})
    body["studySpec"] |= study
    try:
        parsed(body)
    except InvalidArgumentError as error:
        return str(error).splitlines()
    return []


def test_all_faults_of_a_study_are_reported_at_once() -> None:
    parameters = [
        {"parameterId": "x", "doubleValueSpec": {"minValue": 2, "maxValue": 1}},
        {
            "parameterId": "y",
            "integerValueSpec": {"minValue": 0, "maxValue": 3},
            "scaleType": "UNIT_LOG_SCALE",
        },
        {"parameterId": "z", "categoricalValueSpec": {"values": ["a", "a"]}},
    ]
    message = "\n".join(faults({"parallelTrialCount": 9}, algorithm="GRID_SEARCH", parameters=parameters))
    for part in ("parallel_trial_count", "above max_value", "GRID_SEARCH does not support a double",
                 "parameters[1].integer_value_spec.min_value", "duplicate value 'a'"):  # fmt: skip
        assert part in message


@pytest.mark.parametrize(
    "study",
    [
        {"observationNoise": "HIGH"},
        {"measurementSelectionType": "BEST_MEASUREMENT"},
        {"medianAutomatedStoppingSpec": {"useElapsedDuration": True}},
        {"decayCurveStoppingSpec": {}},
        {"convexAutomatedStoppingSpec": {"maxStepCount": "9", "learningRateParameterName": "x"}},
        {"studyStoppingConfig": {"maxNumTrials": 3, "maximumRuntimeConstraint": {"maxDuration": "60s"}}},
        {"metrics": [{"metricId": "a", "goal": "MINIMIZE"}, {"metricId": "b", "safetyConfig": {"safetyThreshold": 1}}]},
        {"parameters": [{"parameterId": "x", "doubleValueSpec": {"minValue": 1, "maxValue": 2, "defaultValue": 1.5}}]},
    ],
)  # fmt: skip
def test_every_field_of_a_study_spec_is_accepted_and_kept(study: dict[str, Any]) -> None:
    assert faults(**study) == []
    body = copy.deepcopy(GOOD)
    body["studySpec"] |= study
    shown = parsed(body).to_json(enums_as_integers=False)["studySpec"]
    assert isinstance(shown, dict)
    assert study.items() <= shown.items()


@pytest.mark.parametrize(
    ("study", "path"),
    [
        ({"transferLearningConfig": {}}, "Unknown name 'transferLearningConfig' at 'hyperparameter_tuning_job.study_spec'"),
        ({"metrics": [{"metricId": "a b"}]}, "study_spec.metrics[0].metric_id: must not have white space, found 'a b'"),
        ({"metrics": [{"metricId": "a", "safetyConfig": {}}]}, "study_spec.metrics: a metric without safety_config"),
        ({"observationNoise": 7}, "study_spec.observation_noise: unknown enum value 7"),
        ({"measurementSelectionType": 3}, "study_spec.measurement_selection_type: unknown enum value 3"),
    ],
)  # fmt: skip
def test_an_invalid_field_is_refused_with_its_path(study: dict[str, Any], path: str) -> None:
    found = faults(**study)
    assert any(path in fault for fault in found), found
    assert len(found) == 1


def test_a_condition_names_a_value_of_its_parent() -> None:
    child = {"parameterId": "y", "integerValueSpec": {"minValue": 1, "maxValue": 2}}
    condition = {"parameterSpec": child, "parentDiscreteValues": {"values": [0.1001]}}
    parent = {
        "parameterId": "x",
        "discreteValueSpec": {"values": [0.1, 0.2]},
        "conditionalParameterSpecs": [condition],
    }
    (fault,) = faults(parameters=[parent])
    assert "0.1001 is not a value of the parent 'x'" in fault
