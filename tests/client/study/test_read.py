"""A study is read from the job as JobService's own client gives it."""

from typing import Any

from google.cloud.aiplatform_v1.types import HyperparameterTuningJob

from trainmaster.client.study.read import merged_parameters, study_of
from trainmaster.client.study.study import Choices, Interval, Scale, StudyMeasurement
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.job import TrialState


def job(**more: Any) -> HyperparameterTuningJob:
    momentum = {
        "parent_categorical_values": {"values": ["sgd"]},
        "parameter_spec": {
            "parameter_id": "momentum",
            "double_value_spec": {"min_value": 0.1, "max_value": 0.9},
            "scale_type": "UNIT_REVERSE_LOG_SCALE",
        },
    }
    document: dict[str, Any] = {
        "name": "projects/1/locations/us-central1/hyperparameterTuningJobs/12",
        "display_name": "horses",
        "max_trial_count": 4,
        "study_spec": {
            "metrics": [
                {"metric_id": "loss", "goal": "MINIMIZE"},
                {"metric_id": "speed", "goal": "MAXIMIZE"},
            ],
            "parameters": [
                {
                    "parameter_id": "optimizer",
                    "categorical_value_spec": {"values": ["sgd", "adam"]},
                    "conditional_parameter_specs": [momentum],
                },
                {
                    "parameter_id": "layers",
                    "integer_value_spec": {"min_value": 1, "max_value": 8},
                    "scale_type": "UNIT_LOG_SCALE",
                },
                {"parameter_id": "units", "discrete_value_spec": {"values": [512, 64]}},
            ],
        },
        **more,
    }
    return HyperparameterTuningJob(document)


def test_parameters_keep_their_scales_and_conditional_ones_follow_their_parent() -> None:
    study = study_of(job())
    assert study.parameters == (
        Choices(name="optimizer", values=("sgd", "adam")),
        Interval(name="momentum", low=0.1, high=0.9, scale=Scale.REVERSE_LOG),
        Interval(name="layers", low=1, high=8, scale=Scale.LOG),
        Choices(name="units", values=(64.0, 512.0)),
    )
    assert (study.metric, study.goal, study.title, study.max_trials) == ("loss", Goal.MINIMIZE, "horses", 4)
    assert study.best is None


def trial(id_: str, *, loss: float, state: str = "SUCCEEDED") -> dict[str, Any]:
    metrics = [{"metric_id": "speed", "value": 9.0}, {"metric_id": "loss", "value": loss}]
    return {
        "id": id_,
        "state": state,
        "parameters": [
            {"parameter_id": "optimizer", "value": "adam"},
            {"parameter_id": "units", "value": 64.0},
        ],
        "measurements": [{"step_count": 2, "metrics": metrics}, {"metrics": metrics}],
        "final_measurement": {"step_count": 2, "metrics": metrics},
        "start_time": "2026-01-01T00:00:00Z",
    }


def test_trials_come_in_the_order_of_their_ids_with_the_first_metric() -> None:
    study = study_of(job(trials=[trial("10", loss=0.5), trial("9", loss=0.25), trial("2", loss=0.25)]))
    assert [each.id for each in study.trials] == ["2", "9", "10"]
    first = study.trials[0]
    assert first.parameters == {"optimizer": "adam", "units": 64.0}
    assert first.measurements == (StudyMeasurement(value=0.25, step=2), StudyMeasurement(value=0.25, step=2))
    assert (first.final, first.state) == (0.25, TrialState.SUCCEEDED)
    assert first.end_time is None
    assert study.best is first  # of equal ones the first


def test_the_first_measurement_may_be_at_step_0_and_those_without_steps_are_counted() -> None:
    def steps(*counts: int) -> list[int]:
        metrics = [{"metric_id": "loss", "value": 0.5}]
        measurements = [{"step_count": count, "metrics": metrics} for count in counts]
        (found,) = study_of(job(trials=[trial("1", loss=0.5) | {"measurements": measurements}])).trials
        return [each.step for each in found.measurements]

    assert steps(0, 1, 2) == [0, 1, 2]
    assert steps(0, 0, 0) == [1, 2, 3]


def test_values_that_are_not_finite_are_not_measurements() -> None:
    study = study_of(job(trials=[trial("1", loss=float("nan")), trial("2", loss=float("inf"))]))
    assert [each.measurements for each in study.trials] == [(), ()]
    assert study.best is None


def test_an_infeasible_or_running_trial_is_never_best() -> None:
    better = [trial("1", loss=0.1, state="INFEASIBLE"), trial("2", loss=0.2, state="STOPPING")]
    best = study_of(job(trials=[*better, trial("3", loss=0.3)])).best
    assert best is not None
    assert best.id == "3"


def test_one_name_below_two_parents_is_one_axis_over_both_ranges() -> None:
    wide = merged_parameters([Interval(name="x", low=1, high=2), Interval(name="x", low=0, high=1.5)])
    assert wide == (Interval(name="x", low=0, high=2),)
    mixed = merged_parameters([Interval(name="x", low=1, high=2), Choices(name="x", values=("a", 3.0))])
    assert mixed == (Interval(name="x", low=1, high=2),), "of other kinds the first"
