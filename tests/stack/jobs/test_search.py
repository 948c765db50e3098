"""Searching and judging, without any I/O."""

import statistics

import pytest
from google.cloud.aiplatform_v1.types import StudySpec

from trainstack.tuning.suggest import Algorithm, SuggestedTrial, TrialSuggestions, space_of


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
    assert space[0].children[0][1].mirrored
    for algorithm in (Algorithm.ALGORITHM_UNSPECIFIED, Algorithm.RANDOM_SEARCH):
        search = TrialSuggestions(space, algorithm=algorithm, maximize=[True], seed=1)
        points = []
        for number in range(30):
            point = search.next(str(number))
            assert point is not None
            points.append(point)
            search.tell(str(number), [float(point["count"])])
        assert {point["kind"] for point in points} == {"sgd", "tree"}
        assert all(("rate" in point) == (point["kind"] == "sgd") for point in points)


@pytest.mark.parametrize("algorithm", [Algorithm.ALGORITHM_UNSPECIFIED, Algorithm.RANDOM_SEARCH])
def test_a_resumed_search_knows_its_past_and_continues_with_new_draws(algorithm: int) -> None:
    space = space_of(StudySpec.pb(study()))
    search = TrialSuggestions(space, algorithm=algorithm, maximize=[True], seed=3)
    past = []
    for number in range(12):
        point = search.next(str(number))
        assert point is not None
        results = None if number % 3 == 0 else [1.0]
        past.append(
            SuggestedTrial(trial_id=str(number), values=point, has_ended=number < 11, results=results)
        )
    again = TrialSuggestions(space, algorithm=algorithm, maximize=[True], seed=3, past=past)
    later = [again.next(str(number)) for number in range(12, 24)]
    assert all(point not in [one.values for one in past] for point in later if point and "rate" in point)
    again.tell("11", [0.5])
    again.tell("12", None)
    with pytest.raises(KeyError):
        again.tell("10", [1.0])


def test_what_a_search_learned_counts_after_it_is_taken_up_again() -> None:
    wide = {"parameter_id": "x", "double_value_spec": {"min_value": 0.0, "max_value": 1000.0}}
    space = space_of(StudySpec.pb(StudySpec({"parameters": [wide]})))
    past = [
        SuggestedTrial(
            trial_id=str(at), values={"x": at * 10.0}, has_ended=True, results=[-abs(at * 10.0 - 700)]
        )
        for at in range(100)
    ]
    search = TrialSuggestions(
        space, algorithm=Algorithm.ALGORITHM_UNSPECIFIED, maximize=[True], seed=1, past=past
    )
    points = [search.next(str(at)) for at in range(100, 110)]
    assert statistics.median(abs(float(point["x"]) - 700) for point in points if point) < 100


def test_parallel_suggestions_differ() -> None:
    space = space_of(StudySpec.pb(study()))
    for algorithm in (Algorithm.ALGORITHM_UNSPECIFIED, Algorithm.RANDOM_SEARCH):
        search = TrialSuggestions(space, algorithm=algorithm, maximize=[False], seed=5)
        for number in range(15):
            search.next(str(number))
            search.tell(str(number), [0.0])
        rates = [point["rate"] for at in range(8) if (point := search.next(f"p{at}")) and "rate" in point]
        assert len(set(rates)) == len(rates)


def test_a_grid_walks_every_point_of_a_conditional_space_once() -> None:
    depth = {"parameter_id": "depth", "integer_value_spec": {"min_value": 1, "max_value": 2}}
    booster: dict[str, object] = {
        "parameter_id": "booster",
        "categorical_value_spec": {"values": ["tree", "line"]},
    }
    booster["conditional_parameter_specs"] = [
        {"parameter_spec": depth, "parent_categorical_values": {"values": ["tree"]}}
    ]
    batch = {"parameter_id": "batch", "discrete_value_spec": {"values": [1, 2.5, 1000]}}
    space = space_of(StudySpec.pb(StudySpec({"parameters": [booster, batch]})))
    search = TrialSuggestions(space, algorithm=Algorithm.GRID_SEARCH, maximize=[True])
    points = list(iter(lambda: search.next("-"), None))
    wanted = [("tree", 1), ("tree", 2), ("line", None)]
    assert [(p["booster"], p.get("depth"), p["batch"]) for p in points] == [
        (kind, depth, batch) for kind, depth in wanted for batch in (1, 2.5, 1000)
    ]
    past = [SuggestedTrial(trial_id=str(at), values=p, has_ended=False) for at, p in enumerate(points[:4])]
    again = TrialSuggestions(space, algorithm=Algorithm.GRID_SEARCH, maximize=[True], past=past)
    assert again.next("4") == points[4]


@pytest.mark.parametrize("algorithm", [Algorithm.ALGORITHM_UNSPECIFIED, Algorithm.RANDOM_SEARCH])
def test_discrete_values_that_are_unevenly_spaced_are_all_tried_and_are_exact(algorithm: int) -> None:
    values = [0.0001, 0.1, 0.3, 7.0, 1000.0]
    spec = {"parameter_id": "x", "discrete_value_spec": {"values": values}, "scale_type": "UNIT_LOG_SCALE"}
    search = TrialSuggestions(
        space_of(StudySpec.pb(StudySpec({"parameters": [spec]}))),
        algorithm=algorithm,
        maximize=[True],
        seed=2,
    )
    seen = set()
    for number in range(100):
        point = search.next(str(number))
        assert point is not None
        search.tell(str(number), [0.0])
        seen.add(point["x"])
    assert sorted(seen) == values
