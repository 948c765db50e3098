"""A trial's measurements, whatever its program reports and however often it begins."""

from datetime import UTC, datetime, timedelta

from google.cloud.aiplatform_v1.types import StudySpec, Trial
from hypothesis import given
from hypothesis import strategies as some

from trainmaster.local.tuning import trial as tuned
from trainmaster.local.tuning.measurements import Measured, merged, read, read_reports, write

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def said(step: int, second: float, value: float = 0.5, metric_id: str = "accuracy") -> Measured:
    return Measured(step=step, elapsed=timedelta(seconds=second), metric_id=metric_id, value=value)


def test_the_file_is_read_again_whole_and_nothing_is_there_twice() -> None:
    first = merged([], [said(1, 1), said(2, 2)])
    assert merged(first, [said(1, 1), said(2, 2), said(3, 3)]) == [said(1, 1), said(2, 2), said(3, 3)]


def test_what_the_file_forgot_is_kept() -> None:
    assert merged([said(1, 1), said(2, 2)], [said(2, 2), said(3, 3)]) == [said(1, 1), said(2, 2), said(3, 3)]


def test_a_program_that_begins_again_replaces_what_it_reports_again() -> None:
    first = [said(1, 1), said(2, 2), said(3, 3)]
    assert merged(first, [said(1, 10)]) == [said(1, 10)]
    assert merged(first, [said(3, 10, 0.9), said(4, 11)]) == [
        said(1, 1), said(2, 2), said(3, 10, 0.9), said(4, 11),
    ]  # fmt: skip


def test_a_program_that_appends_to_its_file_is_not_read_as_beginning_again_and_again() -> None:
    lines = [said(1, 1), said(2, 2), said(3, 3), said(1, 10), said(2, 11)]
    once = merged([], lines)
    assert once == [said(1, 10), said(2, 11)]
    assert merged(once, lines) == once


def test_reports_without_steps_stand_beside_each_other_by_time() -> None:
    assert merged([said(0, 1)], [said(0, 1), said(0, 2)]) == [said(0, 1), said(0, 2)]


def test_two_metrics_do_not_replace_each_other() -> None:
    both = [said(1, 1), said(2, 2), said(1, 3, metric_id="loss"), said(2, 4, metric_id="loss")]
    assert sorted(merged([], both)) == sorted(both)


def test_metrics_of_one_moment_are_one_measurement() -> None:
    trial = Trial.pb(Trial())
    write(trial, [said(1, 1), said(1, 1, 3.0, "loss"), said(2, 2)])
    assert [[metric.metric_id for metric in one.metrics] for one in trial.measurements] == [
        ["accuracy", "loss"],
        ["accuracy"],
    ]
    assert read(trial.measurements) == [said(1, 1), said(1, 1, 3.0, "loss"), said(2, 2)]


REPORTS = some.lists(
    some.builds(
        said,
        some.integers(0, 5),
        some.integers(0, 9),
        metric_id=some.sampled_from(["accuracy", "loss"]),
    ),
    max_size=12,
)


@given(some.lists(REPORTS, max_size=4))
def test_whatever_is_reported_each_metric_rises_strictly_and_a_second_reading_changes_nothing(
    files: list[list[Measured]],
) -> None:
    found: list[Measured] = []
    for file in files:
        found = merged(found, file)
        assert merged(found, file) == found
        for metric_id in ("accuracy", "loss"):
            places = [(one.step, one.elapsed) for one in found if one.metric_id == metric_id]
            assert places == sorted(set(places))


def test_only_whole_reports_count_and_at_most_the_last_hundred_lines() -> None:
    line = '{"accuracy": "0.5", "checkpoint_path": "", "global_step": "%d", "timestamp": 1.0, "trial": "1"}'
    reports = read_reports(
        "\n".join([*(line % step for step in range(150)), '{"accuracy": "0.']), started=STARTED
    )
    assert [reports[0].step, reports[-1].step, len(reports)] == [51, 149, 99]


def test_what_is_no_measurement_is_passed_over() -> None:
    for fields in (
        '"accuracy": "nan"', '"accuracy": "inf"', '"accuracy": "high"', '"accuracy": "1", "global_step": "-1"',
        '"accuracy": "1", "global_step": "1e300"', '"accuracy": "1", "timestamp": 1e300', '"accuracy": "1", "timestamp": NaN',
        '"accuracy": "1", "timestamp": null',
    ):  # fmt: skip
        assert read_reports("{" + fields + "}", started=STARTED) == [], fields
    assert read_reports("[]\n\n7\nnull\n\x00", started=STARTED) == []


def test_a_trial_that_reported_no_metric_says_so() -> None:
    study = StudySpec.pb(StudySpec(metrics=[{"metric_id": "accuracy", "goal": "MAXIMIZE"}]))
    ended = tuned.Trial(Trial.pb(Trial(id="1"))).ended(study, at=STARTED, failure="")
    assert ended.message.infeasible_reason == (
        "The trial ended without reporting the metric 'accuracy'; it reported no metric."
    )
