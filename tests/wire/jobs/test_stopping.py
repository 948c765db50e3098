"""Judging trials and studies, without any I/O."""

from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud.aiplatform_v1.types import StudySpec

from trainmaster.local.tuning.stopping import Point, Rule, Stopping, should_stop
from trainmaster.local.tuning.study import Progress, has_enough, stopping_of, unheeded

START = datetime(2026, 1, 1, tzinfo=UTC)


def curve(*values: float) -> list[Point]:
    return [Point(x=at, value=value) for at, value in enumerate(values)]


GOOD = [
    curve(0.5, 0.8, 0.9, 0.95, 0.96),
    curve(0.4, 0.7, 0.9, 0.95, 0.96),
    curve(0.5, 0.7, 0.9, 0.94, 0.95),
]


def test_stopping_waits_for_three_completed_trials_and_needs_a_worse_curve() -> None:
    for rule in (Rule.MEDIAN, Rule.DECAY_CURVE):
        assert should_stop(Stopping(rule=rule), curve(0.0, 0.0, 0.0), GOOD)
        assert not should_stop(Stopping(rule=rule), curve(0.6, 0.9, 0.95), GOOD)
        assert not should_stop(Stopping(rule=rule), curve(0.0, 0.0, 0.0), GOOD[:2])


def test_the_median_rule_compares_with_running_averages_up_to_the_same_step() -> None:
    # Up to step 1 the averages are 0.65, 0.55 and 0.6; later values of the completed trials do not count.
    median = Stopping(rule=Rule.MEDIAN)
    assert not should_stop(median, curve(0.1, 0.6), GOOD)
    assert should_stop(median, curve(0.1, 0.59), GOOD)


def test_the_decay_curve_lets_a_late_starter_that_rises_go_on() -> None:
    late = [curve(0.0, 0.1, 0.3, 0.6, 0.9), curve(0.0, 0.1, 0.2, 0.6, 0.9), curve(0.0, 0.0, 0.3, 0.5, 0.8)]
    assert not should_stop(Stopping(rule=Rule.DECAY_CURVE), curve(0.0, 0.1, 0.3), late)


def test_the_convex_rule_keeps_its_limits() -> None:
    rising = curve(*(1 - 0.5**at for at in range(10)))
    convex = Stopping(rule=Rule.CONVEX, measurements=2, first=1)
    assert should_stop(convex, curve(0.0, 0.01, 0.02), [rising] * 3)
    assert not should_stop(convex, curve(0.0, 0.2, 0.4), [rising] * 3)  # the line reaches far above 1
    assert not should_stop(convex, curve(0.0, 0.01), [rising] * 3)  # not above minStepCount
    assert not should_stop(convex, curve(0.0, 0.0, 0.0), [rising] * 3)  # flat: no prediction
    assert not should_stop(Stopping(rule=Rule.CONVEX), curve(0.0, 0.01, 0.02), [rising] * 9)  # 5 by default
    longer = Stopping(rule=Rule.CONVEX, measurements=2, first=1, last=1000)
    assert not should_stop(longer, curve(0.0, 0.01, 0.02), [rising] * 3)


def test_a_study_spec_says_which_rule_holds_and_over_what() -> None:
    spec = StudySpec.pb(StudySpec())
    assert stopping_of(spec) is None
    spec.decay_curve_stopping_spec.use_elapsed_duration = True
    assert stopping_of(spec) == Stopping(rule=Rule.DECAY_CURVE, by_time=True)
    spec.convex_automated_stopping_spec.max_step_count = 9
    assert stopping_of(spec) == Stopping(rule=Rule.CONVEX, last=9)


def config(**fields: Any) -> Any:
    return StudySpec.pb(StudySpec({"study_stopping_config": fields})).study_stopping_config


def progress(*values: float, completed: int = 0) -> Progress:
    results = [(START + timedelta(minutes=at), value) for at, value in enumerate(values)]
    return Progress(created=START, suggested=len(values), completed=completed or len(values), results=results)


def test_a_study_ends_by_the_first_condition_that_applies() -> None:
    later = START + timedelta(hours=1)
    assert not has_enough(config(), progress(1, 1, 1), now=later)
    long = {"max_duration": timedelta(minutes=30)}
    assert has_enough(config(maximum_runtime_constraint=long), progress(1), now=later)
    assert not has_enough(
        config(maximum_runtime_constraint=long), progress(1), now=START + timedelta(minutes=29)
    )
    assert not has_enough(config(maximum_runtime_constraint=long, min_num_trials=2), progress(1), now=later)
    assert not has_enough(
        config(maximum_runtime_constraint=long, minimum_runtime_constraint={"end_time": later}),
        progress(1),
        now=later - timedelta(seconds=1),
    )
    assert has_enough(config(max_num_trials=3), progress(1, 2, 3), now=START)
    assert not has_enough(config(max_num_trials=4), progress(1, 2, 3), now=START)


def test_a_study_ends_when_nothing_improves() -> None:
    assert has_enough(config(max_num_trials_no_progress=2), progress(1, 5, 5, 4), now=START)
    assert not has_enough(config(max_num_trials_no_progress=2), progress(1, 5, 4), now=START)
    assert not has_enough(config(max_num_trials_no_progress=2), progress(), now=START)
    hour = config(max_duration_no_progress=timedelta(hours=1))
    assert has_enough(hour, progress(1, 5, 4), now=START + timedelta(minutes=61))
    assert not has_enough(hour, progress(1, 5, 4), now=START + timedelta(minutes=60))


def test_what_has_no_effect_is_named_with_its_path() -> None:
    inner = {"parameter_id": "b", "discrete_value_spec": {"values": [1], "default_value": 1}}
    outer: dict[str, object] = {
        "parameter_id": "a",
        "integer_value_spec": {"min_value": 0, "max_value": 1, "default_value": 0},
    }
    outer["conditional_parameter_specs"] = [{"parameter_spec": inner, "parent_int_values": {"values": [0]}}]
    spec = {
        "parameters": [outer, {"parameter_id": "c", "categorical_value_spec": {"values": ["x"]}}],
        "metrics": [{"metric_id": "m"}, {"metric_id": "s", "safety_config": {"safety_threshold": 1}}],
        "observation_noise": "HIGH",
        "convex_automated_stopping_spec": {"learning_rate_parameter_name": "a"},
    }
    found = unheeded(StudySpec.pb(StudySpec(spec)))
    assert [sentence.split(" ")[0] for sentence in found] == [
        "study_spec.parameters[0].integer_value_spec.default_value",
        "study_spec.parameters[0].conditional_parameter_specs[0].discrete_value_spec.default_value",
        "study_spec.observation_noise",
        "study_spec.metrics[1].safety_config:",
        "study_spec.convex_automated_stopping_spec.learning_rate_parameter_name",
    ]
    assert unheeded(StudySpec.pb(StudySpec())) == []
