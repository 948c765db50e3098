"""Lists of runs, on a real storage server: what matches, what it costs, and how a list continues."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import pytest

from tests.client.runs.rows import START, row, write_index_object, write_row
from tests.client.served import Served, served_context, served_once
from tests.core.shipped import assert_valid
from tests.narrowing import present
from trainmaster.client.runs import listing
from trainmaster.client.runs.columns import Order
from trainmaster.client.runs.listing import (
    Filters,
    KeptIndex,
    RunList,
    filter_runs,
    list_runs,
    sort_runs,
)
from trainmaster.client.submission.terms import schema
from trainmaster.orchestrator.core.runs.index import IndexRow, index_object
from trainmaster.orchestrator.core.runs.states import RunState

SCHEMA = schema("run_list.v1")
RUNS = 12


@served_once
def served(served: Served) -> None:
    """Twelve runs, a minute apart: every third failed, every fourth of another model; and two other objects."""
    for number in range(RUNS):
        state = RunState.FAILED if number % 3 == 0 else RunState.SUCCEEDED
        model = "flowers-large" if number % 4 == 0 else "cassava"
        sender = {"sent_by": "Anna@example.com"} if number % 5 == 0 else {}
        sender |= {"commit": "04889a2c"} if number == 5 else {}
        labels = {"team": f"t{number % 2}"}
        write_row(served, row(number, state=state, model_name=model, labels=labels, **sender))
    write_index_object(served, "index/unknown", {})
    write_index_object(
        served, index_object(START - timedelta(days=1), "of-another-version"), {"state": "lost"}
    )


def listed(served: Served, filters: Filters) -> list[int]:
    found = list_runs(served.clients, filters, limit=100)
    kept = filter_runs(KeptIndex(served.clients).look(), filters, limit=100)
    assert present(kept).rows == found.rows
    return [int(each.run_id.removeprefix("run-")) for each in found.rows]


def test_the_newest_runs_come_first(served: Served) -> None:
    assert listed(served, Filters()) == list(reversed(range(RUNS)))


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        (Filters(states=frozenset({RunState.FAILED})), [9, 6, 3, 0]),
        (Filters(states=frozenset({RunState.FAILED, RunState.WAITING}), model="cassava"), [9, 6, 3]),
        (Filters(model="flowers-*"), [8, 4, 0]),
        (Filters(model="flowers"), []),
        (Filters(labels={"team": "t1"}), [11, 9, 7, 5, 3, 1]),
        (Filters(labels={"team": "t1", "owner": "ann"}), []),
        (Filters(text="RUN-1"), [11, 10, 1]),
        (Filters(by="ANNA"), [10, 5, 0]),
        (Filters(commit="04889A", by="anna"), [5]),
        (Filters(text="FLOWERS", states=frozenset({RunState.FAILED})), [0]),
        (Filters(text="upload", model="flowers-*"), [8, 4, 0]),
        (Filters(text="nothing like that"), []),
        (Filters(since=START + timedelta(minutes=9)), [11, 10, 9]),
        (Filters(since=START + timedelta(minutes=9, microseconds=1)), [11, 10]),
        (Filters(before=START + timedelta(minutes=2)), [1, 0]),
        (Filters(before=START + timedelta(minutes=2, microseconds=1)), [2, 1, 0]),
        (Filters(since=START, before=START + timedelta(minutes=6), states=frozenset({RunState.FAILED})), [3, 0]),
    ],
)  # fmt: skip
def test_filters_choose_by_what_the_index_shows(served: Served, filters: Filters, numbers: list[int]) -> None:
    assert listed(served, filters) == numbers


@pytest.mark.parametrize("filters", [Filters(), Filters(text="run")])
def test_the_first_page_costs_one_operation(served: Served, filters: Filters) -> None:
    before = served.clients.storage_calls
    list_runs(served.clients, filters, limit=5)
    assert served.clients.storage_calls - before == 1


def test_objects_that_cannot_be_read_as_rows_cost_one_more_operation(tmp_path: Path) -> None:
    with served_context(tmp_path) as served:
        for number in range(30):
            write_index_object(served, index_object(START + timedelta(days=number), f"new-{number}"), {})
        write_row(served, row(0))
        before = served.clients.storage_calls
        found = list_runs(served.clients, Filters(), limit=2)
        assert [each.run_id for each in found.rows] == ["run-0"]
        assert served.clients.storage_calls - before == 2


@pytest.mark.parametrize("filters", [Filters(), Filters(states=frozenset({RunState.FAILED}))])
def test_a_list_is_continued_where_it_ended(served: Served, filters: Filters) -> None:
    whole = list_runs(served.clients, filters, limit=100).rows
    pages: list[IndexRow] = []
    while True:
        page = list_runs(served.clients, filters, limit=2)
        pages += page.rows
        if page.next_before is None:
            break
        filters = dataclasses.replace(filters, before=page.next_before)
    assert tuple(pages) == whole


def test_a_search_ends_at_its_bound_and_can_be_continued(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SCANNED_MAX", 5)
    flowers = Filters(model="flowers-*")
    first = list_runs(served.clients, flowers, limit=100)
    assert (first.scanned, first.bound_reached) == (5, True)
    assert first.next_before is not None
    second = list_runs(served.clients, dataclasses.replace(flowers, before=first.next_before), limit=100)
    assert [each.run_id for each in (*first.rows, *second.rows)][:2] == ["run-8", "run-4"]


def test_a_run_whose_row_leaves_labels_out_is_counted_and_not_listed() -> None:
    filters = Filters(labels={"team": "vision"})
    assert filters.labels_match(row(0, labels={"a": "b"}, labels_left_out=3)) is None
    assert filters.labels_match(row(0, labels={"a": "b"})) is False
    assert filters.labels_match(row(0, labels={"team": "audio"}, labels_left_out=3)) is False
    assert filters.labels_match(row(0, labels={"team": "vision"}, labels_left_out=3)) is True


def test_the_list_as_json_fits_its_schema_which_describes_every_field(served: Served) -> None:
    found = list_runs(served.clients, Filters(), limit=3)
    assert_valid(found.document, "run_list.v1")
    fields = {each.name for each in dataclasses.fields(IndexRow)}
    assert set(SCHEMA["$defs"]["row"]["properties"]) == fields | {"timed_out"}
    assert set(SCHEMA["properties"]) == {"schema", "runs", *_fields(RunList)} - {"rows"}


def _fields(kind: type) -> set[str]:
    return {each.name for each in dataclasses.fields(kind)}


def test_a_filter_on_a_part_of_the_index_says_where_the_older_runs_continue(served: Served) -> None:
    part, failed = KeptIndex(served.clients).look(8), Filters(states=frozenset({RunState.FAILED}))
    first = present(filter_runs(part, failed, limit=100))
    assert ([each.run_id for each in first.rows], first.bound_reached) == (["run-9", "run-6"], True)
    older = dataclasses.replace(failed, before=first.next_before)
    assert [each.run_id for each in list_runs(served.clients, older, limit=100).rows] == ["run-3", "run-0"]
    assert filter_runs(part, older, limit=100) is None
    recent = Filters(model="cassava", since=START + timedelta(minutes=9))
    assert present(filter_runs(part, recent, limit=100)).next_before is None


def test_a_kept_index_reads_again_only_what_may_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE_SIZE", 5)
    with served_context(tmp_path) as served:
        for number in range(12):
            write_row(served, row(number, ended_at=START, metrics={"loss": 1 / (number + 1)}))
        kept = KeptIndex(served.clients)

        def operations() -> int:
            before = served.clients.storage_calls
            kept.look()
            return served.clients.storage_calls - before

        assert [operations() for _ in range(3)] == [3, 1, 1]
        write_row(served, row(12, state=RunState.RUNNING))
        assert [len(kept.look().rows), operations()] == [13, 1]
        write_row(served, row(12, ended_at=START, metrics={"loss": 0.001}))
        order = Order(name="loss")
        found = sort_runs(kept.look(), Filters(since=START + timedelta(minutes=6)), order, limit=2)
        assert ([each.run_id for each in found.rows], found.left_out) == (["run-12", "run-11"], 5)


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_kept_index_grows_from_look_to_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_settled: bool
) -> None:
    monkeypatch.setattr(listing, "PAGE_SIZE", 5)
    ended_at = START if is_settled else None
    with served_context(tmp_path) as served:
        for number in range(12):
            write_row(served, row(number, ended_at=ended_at))
        kept, seen = KeptIndex(served.clients), []
        for _ in range(4):
            before = served.clients.storage_calls
            found = kept.look(5)
            names = [each.run_id for each in found.rows]
            assert names == [f"run-{number}" for number in range(11, 11 - len(names), -1)]
            seen.append((len(names), found.bound_reached, served.clients.storage_calls - before))
        write_row(served, row(12, ended_at=ended_at))
        assert len(kept.look(5).rows) == 13
    again = (1, 2, 2, 1) if is_settled else (1, 2, 3, 3)
    assert seen == list(zip((5, 10, 12, 12), (True, True, False, False), again, strict=True))
