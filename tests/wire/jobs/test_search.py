"""Searching and judging, without any I/O."""

from google.cloud.aiplatform_v1.types import StudySpec

from emulators.tuning.metrics import read_reports
from emulators.tuning.space import Scale, space_of
from emulators.tuning.stopping import Point, Rule, should_stop
from emulators.tuning.suggest import Algorithm, Suggestions


def study() -> StudySpec:
    rate = {
        "parameter_id": "rate",
        "double_value_spec": {"min_value": 0.001, "max_value": 1.0},
        "scale_type": "UNIT_REVERSE_LOG_SCALE",
    }
    kind = {
        "parameter_id": "kind",
        "categorical_value_spec": {"values": ["sgd", "tree"]},
        "conditional_parameter_specs": [
            {"parameter_spec": rate, "parent_categorical_values": {"values": ["sgd"]}}
        ],
    }
    count = {"parameter_id": "count", "integer_value_spec": {"min_value": 1, "max_value": 3}}
    return StudySpec({"parameters": [kind, count]})


def test_a_conditional_parameter_is_there_only_under_its_parents_value() -> None:
    space = space_of(StudySpec.pb(study()))
    assert space[0].children[0].parameter.scale is Scale.REVERSE_LOG
    for algorithm in (Algorithm.BAYESIAN, Algorithm.RANDOM):
        search = Suggestions(space, algorithm=algorithm, maximize=[True], seed=1)
        points = []
        for number in range(30):
            point = search.next(str(number))
            assert point is not None
            points.append(point)
            search.tell(str(number), [float(point["count"])])
        assert {point["kind"] for point in points} == {"sgd", "tree"}
        assert all(("rate" in point) == (point["kind"] == "sgd") for point in points)


def test_a_search_that_learned_its_past_again_goes_on_within_the_space() -> None:
    space = space_of(StudySpec.pb(study()))
    search = Suggestions(space, algorithm=Algorithm.RANDOM, maximize=[True], seed=3)
    again = Suggestions(space, algorithm=Algorithm.BAYESIAN, maximize=[True], seed=3)
    for number in range(12):
        point = search.next(str(number))
        assert point is not None
        again.know(str(number), point)
        again.tell(str(number), None if number % 3 == 0 else [1.0])
    assert again.next("12") is not None


def test_only_whole_reports_count_and_at_most_the_last_hundred_lines() -> None:
    line = '{"accuracy": "0.5", "checkpoint_path": "", "global_step": "%d", "timestamp": 1.0, "trial": "1"}'
    reports = read_reports("\n".join([*(line % step for step in range(150)), '{"accuracy": "0.']))
    assert [reports[0].step, reports[-1].step, len(reports)] == [51, 149, 99]


def test_stopping_waits_for_three_completed_trials_and_needs_a_worse_curve() -> None:
    def curve(*values: float) -> list[Point]:
        return [Point(x=at, value=value) for at, value in enumerate(values)]

    good = [
        curve(0.5, 0.8, 0.9, 0.95, 0.96),
        curve(0.4, 0.7, 0.9, 0.95, 0.96),
        curve(0.5, 0.7, 0.9, 0.94, 0.95),
    ]
    for rule in (Rule.MEDIAN, Rule.DECAY_CURVE):
        assert should_stop(rule, curve(0.0, 0.0, 0.0), good)
        assert not should_stop(rule, curve(0.6, 0.9, 0.95), good)
        assert not should_stop(rule, curve(0.0, 0.0, 0.0), good[:2])
    assert not should_stop(Rule.NEVER, curve(0.0, 0.0, 0.0), good)
