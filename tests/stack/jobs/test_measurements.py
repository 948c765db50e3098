"""A trial's measurements, whatever its program reports and however often it begins."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from google.cloud.aiplatform_v1.types import StudySpec, Trial
from hypothesis import given
from hypothesis import strategies as some

from trainstack.tuning import tuning_job as tuned
from trainstack.tuning.measurements import (
    MAX_FILE_BYTES,
    TrialMeasurement,
    merged_measurements,
    read,
    read_metric_file,
    read_reports,
    write,
)

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def said(step: int, second: float, value: float = 0.5, metric_id: str = "accuracy") -> TrialMeasurement:
    return TrialMeasurement(step=step, elapsed=timedelta(seconds=second), metric_id=metric_id, value=value)


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(Path.exists, id="nothing"),
        pytest.param(Path.mkdir, id="a folder"),
        pytest.param(os.mkfifo, id="a pipe without a writer"),
        pytest.param(lambda path: path.symlink_to(__file__), id="a link"),
    ],
)
def test_a_program_that_leaves_no_regular_metric_file_reports_nothing(
    tmp_path: Path, leave: Callable[[Path], object]
) -> None:
    leave(tmp_path / "metrics")
    assert read_metric_file(tmp_path / "metrics") == ""


def test_of_a_metric_file_of_any_size_the_last_reports_are_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # takes no room
        file.seek(0, os.SEEK_END)
        file.write(b'\n{"accuracy": "0.5", "global_step": "1", "timestamp": 1767225601}\n')
    text = read_metric_file(path)
    assert len(text) == MAX_FILE_BYTES
    assert read_reports(text, started=STARTED) == [said(1, 1)]


ONE, TWO, THREE = said(1, 1), said(2, 2), said(3, 3)


@pytest.mark.parametrize(
    ("before", "file", "merged"),
    [
        pytest.param([ONE, TWO], [ONE, TWO, THREE], [ONE, TWO, THREE], id="read again whole"),
        pytest.param([ONE, TWO], [TWO, THREE], [ONE, TWO, THREE], id="the file forgot one"),
        pytest.param([ONE, TWO, THREE], [said(1, 10)], [said(1, 10)], id="begun again"),
        pytest.param(
            [ONE, TWO, THREE],
            [said(3, 10, 0.9), said(4, 11)],
            [ONE, TWO, said(3, 10, 0.9), said(4, 11)],
            id="begun again from the third step",
        ),
        pytest.param([said(0, 1)], [said(0, 1), said(0, 2)], [said(0, 1), said(0, 2)], id="without steps"),
    ],
)
def test_what_a_file_says_now_is_merged_with_what_it_said_before(
    before: list[TrialMeasurement], file: list[TrialMeasurement], merged: list[TrialMeasurement]
) -> None:
    assert merged_measurements(before, file) == merged


def test_a_program_that_appends_to_its_file_is_not_read_as_beginning_again_and_again() -> None:
    lines = [said(1, 1), said(2, 2), said(3, 3), said(1, 10), said(2, 11)]
    once = merged_measurements([], lines)
    assert once == [said(1, 10), said(2, 11)]
    assert merged_measurements(once, lines) == once


def test_two_metrics_do_not_replace_each_other() -> None:
    both = [said(1, 1), said(2, 2), said(1, 3, metric_id="loss"), said(2, 4, metric_id="loss")]
    assert sorted(merged_measurements([], both)) == sorted(both)


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
        said, some.integers(0, 5), some.integers(0, 9), metric_id=some.sampled_from(["accuracy", "loss"])
    ),
    max_size=12,
)


@given(some.lists(REPORTS, max_size=4))
def test_any_reports_give_rising_metrics_and_a_second_reading_changes_nothing(
    files: list[list[TrialMeasurement]],
) -> None:
    found: list[TrialMeasurement] = []
    for file in files:
        found = merged_measurements(found, file)
        assert merged_measurements(found, file) == found
        for metric_id in ("accuracy", "loss"):
            places = [(one.step, one.elapsed) for one in found if one.metric_id == metric_id]
            assert places == sorted(set(places))


def test_only_whole_reports_count_and_at_most_the_last_hundred_lines() -> None:
    line = '{"accuracy": "0.5", "checkpoint_path": "", "global_step": "%d", "timestamp": 1.0, "trial": "1"}'
    reports = read_reports(
        "\n".join([*(line % step for step in range(150)), '{"accuracy": "0.']), started=STARTED
    )
    assert [reports[0].step, reports[-1].step, len(reports)] == [51, 149, 99]


def test_an_invalid_measurement_is_skipped() -> None:
    for fields in (
        '"accuracy": "nan"', '"accuracy": "inf"', '"accuracy": "high"', '"accuracy": "1", "global_step": "-1"',
        '"accuracy": "1", "global_step": "1e300"', '"accuracy": "1", "timestamp": 1e300', '"accuracy": "1", "timestamp": NaN',
        '"accuracy": "1", "timestamp": null',
    ):  # fmt: skip
        assert read_reports("{" + fields + "}", started=STARTED) == [], fields
    assert read_reports("[]\n\n7\nnull\n\x00", started=STARTED) == []


def test_a_trial_without_any_metric_has_that_as_its_reason() -> None:
    study = StudySpec.pb(StudySpec(metrics=[{"metric_id": "accuracy", "goal": "MAXIMIZE"}]))
    ended = tuned.TuningTrial(Trial.pb(Trial(id="1"))).with_end(study, at=STARTED, failure="")
    assert ended.message.infeasible_reason == (
        "The trial ended without reporting the metric 'accuracy'; it reported no metric."
    )


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_trial_whose_metric_was_never_finite_has_that_as_its_reason(value: str) -> None:
    study = StudySpec.pb(StudySpec(metrics=[{"metric_id": "accuracy", "goal": "MAXIMIZE"}]))
    trial = Trial.pb(Trial(id="1", start_time=STARTED))
    text = f'{{"accuracy": "{value}", "global_step": "1", "timestamp": 1767225601.0}}\n{{"accuracy": "0.'
    ended = tuned.TuningTrial(trial).with_reports(text).with_end(study, at=STARTED, failure="", text=text)
    assert ended.message.infeasible_reason == (
        f"The trial reported {value} as the metric 'accuracy', and never a finite number."
    )
    assert not ended.message.measurements
