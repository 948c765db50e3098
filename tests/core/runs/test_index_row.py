"""A run's row in the index: its object's name and metadata, there and back."""

import json
from dataclasses import fields, replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.orchestrator.core.admission.start_deadline import NAME_MAX_CHARS
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import is_object_name
from trainmaster.orchestrator.core.runs.index import (
    ARGS_MAX_BYTES,
    LABELS_MAX_BYTES,
    METADATA_MAX_BYTES,
    METRICS_MAX_BYTES,
    TEXT_MAX_BYTES,
    VALUE_MAX_CHARS,
    IndexRow,
    bounded_args,
    bounded_labels,
    bounded_metrics,
    bounded_text,
    index_object,
    parse_row,
    row_metadata,
)
from trainmaster.orchestrator.core.runs.job import Queued
from trainmaster.orchestrator.core.runs.states import RunState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ROW = IndexRow(
    run_id="run-1", created_at=NOW, state=RunState.RESERVED, source="upload", generation=1, updated_at=NOW
)

_LABEL = st.text("abz09_-", max_size=62).map(lambda text: f"a{text}")  # a pattern is slow to draw from
_TEXT = st.text(max_size=600).map(bounded_text)
_TIME = st.datetimes(timezones=st.just(UTC))
_AMOUNT = st.none() | st.decimals(min_value=0, max_value=10**12, places=6)
_ROWS = st.builds(
    IndexRow,
    run_id=_LABEL,
    created_at=_TIME,
    state=st.sampled_from(RunState),
    source=st.sampled_from(["upload", "message", "rule"]),
    generation=st.integers(0, 2**63 - 1),
    updated_at=_TIME,
    ended_at=st.none() | _TIME,
    model_name=st.none() | _LABEL,
    job_kind=st.none() | st.sampled_from(JobKind),
    job_id=st.none() | st.from_regex(r"[0-9]{1,19}", fullmatch=True),
    region=st.none() | _LABEL,
    machines=st.none() | _TEXT,
    priority=st.none() | st.integers(0, 100),
    labels=st.dictionaries(_LABEL, _LABEL, max_size=62).map(bounded_labels),
    labels_left_out=st.integers(0, 62),
    reason=st.none() | _TEXT,
    currency=st.none() | st.just("USD"),
    per_hour=_AMOUNT,
    at_most=_AMOUNT,
    prices_unknown=st.booleans(),
    cost=_AMOUNT,
    sent_by=st.none() | _TEXT,
    commit=st.none() | st.just("04889a2c"),
    dirty=st.booleans(),
    group=st.none() | st.just("sweep-key-0123456789"),
    args=st.lists(_LABEL | st.text(max_size=70)).map(bounded_args),
    metrics=st.dictionaries(_LABEL, st.floats()).map(bounded_metrics),
)


@given(_ROWS)
def test_a_row_is_read_as_it_was_written(row: IndexRow) -> None:
    name = index_object(row.created_at, row.run_id)
    assert is_object_name(name)
    assert parse_row(name, row_metadata(row)) == row


def test_the_largest_row_fits_the_metadata_of_an_object() -> None:
    labels = {f"{number:063}": "x" * 63 for number in range(62)}
    kept = bounded_labels(labels)
    assert len(kept) == 30
    longest = replace(
        ROW,
        run_id="r" * 63,
        generation=2**63 - 1,
        ended_at=NOW,
        team="t" * 19,
        model_name="m" * 63,
        job_kind=JobKind.TUNING,
        job_id="9" * 63,
        region="r" * 63,
        machines=bounded_text("m" * 999),
        priority=100,
        labels=kept,
        labels_left_out=62 - len(kept),
        queued=Queued(since=NOW, region="r" * 63, next_candidate="m" * NAME_MAX_CHARS, start_by=NOW),
        retry_at=NOW,
        reason=bounded_text("\N{GRINNING FACE}" * 999),
        currency="USD",
        per_hour=Decimal(1) / 3,
        at_most=Decimal(1) / 3,
        prices_unknown=True,
        cost=Decimal(1) / 3,
        sent_by="\N{GRINNING FACE}" * VALUE_MAX_CHARS,
        commit="c" * 64,
        dirty=True,
        group="g" * 63,
        args=bounded_args([f"--a{number}=\N{GRINNING FACE}" for number in range(999)]),
        metrics=bounded_metrics({f"m{number:03}": number / 3 for number in range(999)}),
    )
    assert (len(json.dumps(longest.args)) <= ARGS_MAX_BYTES, len(longest.args)) == (True, 16)
    assert (len(json.dumps(longest.metrics)) <= METRICS_MAX_BYTES, len(longest.metrics)) == (True, 17)
    metadata = row_metadata(longest)
    assert set(metadata) == {each.name for each in fields(IndexRow)} - {
        "run_id",
        "created_at",
        "progress_percentage",
    }
    assert all(value.isascii() for value in metadata.values())
    assert sum(len(key) + len(value) for key, value in metadata.items()) <= METADATA_MAX_BYTES


@given(_TIME, _TIME)
def test_the_name_of_a_newer_run_sorts_first(one: datetime, other: datetime) -> None:
    assert (one > other) == (index_object(one, "a") < index_object(other, "a"))


def test_runs_of_the_same_moment_have_different_names() -> None:
    assert parse_row(index_object(NOW, "a-b"), row_metadata(ROW)) == replace(ROW, run_id="a-b")
    assert index_object(NOW, "a-b") != index_object(NOW, "a-c")


@pytest.mark.parametrize(
    "name",
    [
        "index/",
        "index/251648085599999999-",
        "index/251648085599999999-Run",
        "index/25164808559999999-run",
        "index/2516480855999999x9-run",
        "index/251648085599999999run",
        "index/\u0661" + "0" * 17 + "-run",
        "index/" + "9" * 18 + "-run",
        "waiting/251648085599999999-run",
        "251648085599999999-run",
    ],
)
def test_another_object_is_not_a_row(name: str) -> None:
    assert parse_row(name, row_metadata(ROW)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "unheard-of"},
        {"updated_at": "2026-03-01T12:00:00"},
        {"updated_at": ""},
        {"generation": "many"},
        {"labels": "[]"},
        {"labels": '{"a": 1}'},
        {"labels": "[" * 8000},
        {"job_kind": "pipelineJobs"},
        {"per_hour": "dear"},
    ],
)
def test_metadata_that_are_no_rows_are_left_out(changes: dict[str, str]) -> None:
    name = index_object(NOW, "run-1")
    assert parse_row(name, row_metadata(ROW)) == ROW
    assert parse_row(name, {**row_metadata(ROW), **changes}) is None


@pytest.mark.parametrize("missing", ["state", "source", "generation", "updated_at"])
def test_metadata_without_a_required_field_are_left_out(missing: str) -> None:
    metadata = row_metadata(ROW)
    del metadata[missing]
    assert parse_row(index_object(NOW, "run-1"), metadata) is None


def test_a_row_with_further_metadata_is_read_by_an_older_program() -> None:
    assert parse_row(index_object(NOW, "run-1"), {**row_metadata(ROW), "champion": "no"}) == ROW


@given(st.text(max_size=1000))
def test_a_text_is_one_printable_line_of_bounded_size(text: str) -> None:
    line = bounded_text(text)
    assert len(line.encode()) <= TEXT_MAX_BYTES
    assert line.isprintable()
    if len(text.encode("utf-8", "replace")) <= TEXT_MAX_BYTES and text.isprintable():
        assert line == text
    elif len(text) > TEXT_MAX_BYTES:
        assert line.endswith("…")


@given(st.dictionaries(_LABEL, _LABEL, max_size=62))
def test_the_first_labels_are_kept_whole(labels: dict[str, str]) -> None:
    kept = bounded_labels(labels)
    assert list(kept) == sorted(labels)[: len(kept)]
    assert all(labels[key] == value for key, value in kept.items())
    assert len(str(kept)) <= LABELS_MAX_BYTES
