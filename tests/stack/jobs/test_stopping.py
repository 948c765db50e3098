"""Judging trials, and what a study says in vain, without any I/O."""

from google.cloud.aiplatform_v1.types import StudySpec

from trainstack.tuning.measurements import Point, is_below_median
from trainstack.tuning.validation import warnings_of


def curve(*values: float) -> list[Point]:
    return [Point(x=at, value=value) for at, value in enumerate(values)]


GOOD = [curve(0.5, 0.8, 0.9, 0.95, 0.96), curve(0.4, 0.7, 0.9, 0.95, 0.96), curve(0.5, 0.7, 0.9, 0.94, 0.95)]


def test_stopping_waits_for_three_completed_trials_and_needs_a_worse_curve() -> None:
    assert is_below_median(curve(0.0, 0.0, 0.0), GOOD)
    assert not is_below_median(curve(0.6, 0.9, 0.95), GOOD)
    assert not is_below_median(curve(0.0, 0.0, 0.0), [*GOOD[:2], []])
    assert not is_below_median([], GOOD)


def test_the_median_rule_compares_with_running_averages_up_to_the_same_step() -> None:
    # Up to step 1 the averages are 0.65, 0.55 and 0.6; later values of the completed trials do not count.
    assert not is_below_median(curve(0.1, 0.6), GOOD)
    assert is_below_median(curve(0.1, 0.59), GOOD)


def test_what_has_no_effect_is_named_with_its_path() -> None:
    spec = {
        "metrics": [{"metric_id": "m"}, {"metric_id": "s", "safety_config": {"safety_threshold": 1}}],
        "convex_automated_stopping_spec": {"max_step_count": 9},
        "study_stopping_config": {"max_num_trials": 3},
    }
    assert [sentence.split(" ")[0] for sentence in warnings_of(StudySpec.pb(StudySpec(spec)))] == [
        "study_spec.convex_automated_stopping_spec",
        "study_spec.study_stopping_config",
        "study_spec.metrics[1].safety_config:",
    ]
    assert list(warnings_of(StudySpec.pb(StudySpec()))) == []
