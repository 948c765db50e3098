"""`trainmaster ls` against a real storage server."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import click
import pytest
import yaml

from tests.cli.screens import assert_screen
from tests.client.runs.rows import START, row, write_row, write_rows
from tests.client.served import Served, served_context
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from trainmaster.cli.runs.ls import run_table
from trainmaster.cli.table import table_lines
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.job import Queued
from trainmaster.orchestrator.core.runs.states import RunState

ROWS = [
    row(
        3,
        state=RunState.RUNNING,
        currency="USD",
        at_most=Decimal("6.7288"),
        sent_by="anna@example.com",
        commit="04889a2c",
        args={"--lr": "0.1", "--epochs": "3"},
        metrics={"loss": 0.25},
    ),
    row(2, state=RunState.REJECTED, model_name=None, ended_at=START + timedelta(minutes=2)),
    row(
        1,
        model_name="flowers",
        ended_at=START + timedelta(minutes=77, seconds=5),
        labels={"team": "vision"},
        currency="USD",
        at_most=Decimal("0.5"),
        cost=Decimal("0.21"),
        args={"--lr": "0.5", "--epochs": "3"},
        metrics={"loss": 0.5},
    ),
]


served = fixture_of(served_context, lambda served: write_rows(served, ROWS))


@pytest.mark.parametrize("width", [None, 80, 60])
def test_the_table_fits_the_terminal(width: int | None) -> None:
    shown, spare = run_table([_long(each) for each in ROWS], START + timedelta(hours=2))
    lines = table_lines(shown, width=width, spare=spare)
    assert_screen(f"ls.{width or 'pipe'}", "".join(f"{click.unstyle(line)}\n" for line in lines))


def _long(each: IndexRow) -> IndexRow:
    return replace(each, run_id=f"{each.model_name or 'broken'}-20260302t081500-3f9a1c04de")


def test_a_pipe_gets_whole_words_and_no_colour(served: Served) -> None:
    done = served.trainmaster("ls")
    header, *lines = done.out.splitlines()
    assert header.split() == ["RUN", "STATE", "MODEL", "AGE", "DURATION", "COST", "SOURCE", "loss", "--lr"]
    assert [line.split()[:2] for line in lines] == [
        ["run-3", "running"],
        ["run-2", "rejected"],
        ["run-1", "succeeded"],
    ]
    assert "\x1b" not in done.out
    assert (done.status, done.err) == (0, "")


def test_a_run_that_ran_out_of_time_is_cancelled_and_called_timed_out(tmp_path: Path) -> None:
    reason = "the job ran longer than its timeout of 60 s. Vertex AI says: CANCELED"
    with served_context(tmp_path) as served:
        for number, why in enumerate((reason, "its cancellation was requested")):
            write_row(served, row(number, state=RunState.CANCELLED, reason=why))
        lines = served.trainmaster("ls").out.splitlines()[1:]
        assert [line.split()[1] for line in lines] == ["cancelled", "timed_out"]
        for state, names in (("timed_out", ["run-0"]), ("cancelled", ["run-1", "run-0"])):
            found = json.loads(served.trainmaster("ls", "--state", state, "-o", "json").out)
            assert_valid(found, "run_list.v1")
            assert [each["run_id"] for each in found["runs"]] == names
            assert {each["state"] for each in found["runs"]} == {"cancelled"}
            assert found["runs"][-1]["timed_out"] is True


def test_below_the_table_jobs_are_named_that_are_queued_for_long(tmp_path: Path) -> None:
    queued = Queued(since=START, region="europe-west4", next_candidate="us-central1", start_by=START)
    with served_context(tmp_path) as served:
        write_row(served, row(0, state=RunState.SUBMITTED, queued=queued))
        done = served.trainmaster("ls")
        document = json.loads(served.trainmaster("ls", "-o", "json").out)
    assert re.search(r"run-0: queued [\w ]+ in europe-west4; next candidate us-central1 once", done.err)
    assert_valid(document, "run_list.v1")
    assert document["runs"][0]["queued"]["next_candidate"] == "us-central1"


def test_other_formats_are_for_programs(served: Served) -> None:
    as_json = json.loads(served.trainmaster("ls", "-o", "json").out)
    assert [each["run_id"] for each in as_json["runs"]] == ["run-3", "run-2", "run-1"]
    assert yaml.safe_load(served.trainmaster("ls", "-o", "yaml").out) == as_json
    assert served.trainmaster("ls", "-o", "name").out == "run-3\nrun-2\nrun-1\n"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["--state", "rejected", "--state", "running"], ["run-3", "run-2"]),
        (["--model", "flow*"], ["run-1"]),
        (["--label", "team=vision"], ["run-1"]),
        (["--text", "FLOW"], ["run-1"]),
        (["--by", "ANN"], ["run-3"]),
        (["--commit", "04889a"], ["run-3"]),
        (["--sort", "cost"], ["run-1", "run-3", "run-2"]),
        (["--sort", "-lr"], ["run-1", "run-3", "run-2"]),
        (["--sort", "loss", "--limit", "1"], ["run-3"]),
        (["--since", "2026-03-01T12:02"], ["run-3", "run-2"]),
        (["--before", "2026-03-01T13:02+01:00"], ["run-1"]),
        (["--since", "1d"], []),
    ],
)
def test_each_filter_lists_the_runs_that_match(served: Served, words: list[str], names: list[str]) -> None:
    assert served.trainmaster("ls", "-o", "name", *words).out.split() == names


def test_a_list_that_nothing_sorts_says_so(served: Served) -> None:
    assert (
        served.trainmaster("ls", "--sort", "los").err
        == "None of these runs has 'los', so they are not sorted.\n"
    )


def test_a_cut_list_says_how_to_continue_and_verbose_what_it_cost(served: Served) -> None:
    done = served.trainmaster("ls", "--limit", "1", "--verbose")
    assert (
        "There are more. Continue with the same options and: --before 2026-03-01T12:02:00.000001" in done.err
    )
    assert "Storage operations: 1." in done.err
    before = done.err.split("--before ")[1].split()[0]
    assert served.trainmaster("ls", "--before", before, "-o", "name").out == "run-2\nrun-1\n"


def test_an_empty_list_exits_successfully_and_says_so(served: Served) -> None:
    done = served.trainmaster("ls", "--model", "unknown")
    assert (done.status, done.out, done.err) == (0, "", "No run matches.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--state", "lost"], "'reserved', 'waiting'"),
        (["--label", "team"], "expected KEY=VALUE, found team"),
        (["--since", "5"], "expected a duration (30m, 2h, 7d)"),
        (["--since", "soon"], "a date or time (2026-11-01"),
        (["--before", "2026-13-01"], "'--before'"),
        (["--limit", "0"], "1<=x<=10000"),
        (["run-1"], "unexpected extra argument"),
    ],
)
def test_wrong_usage_names_what_is_right(served: Served, words: list[str], said: str) -> None:
    done = served.trainmaster("ls", *words)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
