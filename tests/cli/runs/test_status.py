"""`trainmaster status`: the screen of every state, and what it finds on a real storage server."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.runs.records import NOW, RUNS, run_of
from tests.cli.screens import assert_screen
from tests.client.rule_documents import example
from tests.client.runs.rows import row, write_row
from tests.client.served import PROJECT, Served, run_record, served_context, served_once
from trainmaster.cli.table import fact_lines
from trainmaster.client.shown.run_screen import drop_facts, next_commands, run_facts
from trainmaster.client.terminal import Fact
from trainmaster.orchestrator.core.names import status_object
from trainmaster.orchestrator.core.runs.states import RunState

RUN = "cassava-20260301t120000-eb46bb303f"


def text_of(facts: Iterator[Fact], width: int | None) -> str:
    return "".join(f"{click.unstyle(line)}\n" for line in fact_lines(facts, width=width))


@pytest.mark.parametrize("state", RUNS)
@pytest.mark.parametrize("width", [80, 120])
def test_the_screen_of_a_run(state: str, width: int) -> None:
    screen = text_of(run_facts(RUNS[state](), NOW, is_local=False), width)
    assert_screen(f"status.{state}.{width}", screen)
    assert len(screen.splitlines()) <= (24 if width == 80 else 40)


def test_the_screen_of_a_teams_run_names_the_team() -> None:
    found = RUNS["succeeded"]()
    of_team = replace(found.record, source=replace(found.record.source, team="vision"))
    facts = dict(run_facts(replace(found, record=of_team), NOW, is_local=False))
    assert facts["team"] == ["vision"]
    assert "team" not in dict(run_facts(found, NOW, is_local=False))


@pytest.mark.parametrize(
    ("uri", "shown"), [(f"gs://models/cassava/{RUN}/checkpoints/", RUN), ("gs://b/c/", "gs://b/c/")]
)
def test_the_screen_of_a_continued_run_names_what_it_continues(uri: str, shown: str) -> None:
    document = run_record("failed")
    document["request"]["document"]["continue_from"] = uri
    assert dict(run_facts(run_of(document), NOW, is_local=False))["continues"] == [shown]


@pytest.mark.parametrize(
    ("known", "failed", "lines"),
    [
        ({"state": "uploading", "operation": "o", "since": "2026-03-01T12:11:00Z"}, {},
         ["being uploaded since 2026-03-01 12:11 UTC"]),
        ({"state": "failed", "error": "it is denied"}, {"next_at": "2026-03-01T12:30:00Z"},
         ["failed: it is denied", "tried again at 2026-03-01 12:30:00 UTC"]),
        ({"state": "failed", "error": "it is denied"}, {}, ["failed: it is denied", "given up"]),
        ({"state": "registered", "model": "projects/1/m", "version": "2"}, {}, ["version 2 of m"]),
        ({"state": "registered", "model": "projects/1/m", "version": "2", "smoke": "failed: KeyError: 'x'"}, {},
         ["version 2 of m; smoke test failed: KeyError: 'x'"]),
    ],
)  # fmt: skip
def test_the_screen_of_a_run_says_how_far_its_model_is_on_the_way_into_the_registry(
    known: dict[str, str], failed: dict[str, str], lines: list[str]
) -> None:
    document = run_record("succeeded")
    document["completion"]["registration"] = known
    document["completion"]["steps_failed"] = {"registry": {"attempts": 3, "error": "it is denied", **failed}}
    assert dict(run_facts(run_of(document), NOW, is_local=False))["registry"] == lines


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({"steps_done": []}, ["flowers, not logged yet"]),
        ({"steps_done": ["experiment"]}, ["flowers, logged"]),
        (
            {"steps_failed": {"experiment": {"attempts": 1, "error": "the store is being created"}}},
            ["flowers, failed: the store is being created", "given up"],
        ),
    ],
)
def test_the_screen_of_a_run_names_its_experiment(changed: dict[str, Any], lines: list[str]) -> None:
    document = run_record("succeeded")
    document["request"]["document"]["experiment"] = "flowers"
    document["completion"] |= changed
    assert dict(run_facts(run_of(document), NOW, is_local=False))["experiment"] == lines


@pytest.mark.parametrize("status", ["held_order", "ignored", "put_away", "retrying"])
def test_the_screen_of_a_file_without_a_run(status: str) -> None:
    shown = text_of(drop_facts(example(f"drop_status.v1.{status}"), "unused"), 80)
    assert_screen(f"status.{status}", shown)


def test_a_refused_rule_shows_its_faults_with_their_lines() -> None:
    place = {"line": 3, "column": 7, "length": 5, "text": "when: daily", "text_column": 1}
    fault = {"path": "$.when", "problem": "expected a list", "found": "'daily'", **place}
    status = {
        "schema": "rule_status.v1",
        "dropped_name": "rules/nightly.yaml",
        "generation": 7,
        "state": "refused",
        "updated_at": "2026-03-01T12:00:00Z",
        "rule_id": "nightly",
        "problems": ["$.when: expected a list; found 'daily'", "and 3 more"],
        "faults": [fault],
    }
    assert_screen("status.refused_rule", text_of(drop_facts(status, "unused"), 80))


@served_once
def served(served: Served) -> None:
    served.write("ledger", f"runs/{RUN}.json", run_record("failed"))
    drop = {
        "schema": "drop_status.v1",
        "state": "failed",
        "run_id": RUN,
        "dropped_name": "requests/cassava.yaml",
    }
    served.write("ledger", "status/requests/cassava.yaml.json", drop)
    served.write("ledger", "status/messages/4711.json", {**drop, "message_id": "4711"})
    served.write("ledger", "status/keys/nightly-7.json", {**drop, "idempotency_key": "nightly-7"})
    served.write("ledger", "status/requests/late.yaml.json", example("drop_status.v1.retrying"))
    served.write("ledger", "runs/damaged.json", {"schema": "run_record.v2", "run_id": "damaged"})
    served.write("ledger", "runs/old.json", {"schema": "run_record.v1"})
    write_row(served, row(1, model_name="cassava"))
    (served.folder / "drafts").mkdir()
    (served.folder / "drafts/cassava.yaml").touch()


@pytest.mark.parametrize(
    "name",
    [
        RUN,
        "cassava.yaml",
        "./drafts/cassava.yaml",
        "requests/cassava.yaml",
        "gs://trainmaster-local-inbox/requests/cassava.yaml",
        "4711",
        "nightly-7",
    ],
)
def test_a_run_is_found_by_its_id_its_file_and_its_message(served: Served, name: str) -> None:
    done = served.trainmaster("status", name, "-o", "json")
    assert done.status == 0
    assert json.loads(done.out) == run_record("failed")


def test_a_run_costs_one_read_its_object_two_and_the_name_of_its_file_three(served: Served) -> None:
    assert "Storage operations: 1." in served.trainmaster("status", RUN, "--verbose").err
    assert "Storage operations: 2." in served.trainmaster("status", "requests/cassava.yaml", "--verbose").err
    assert "Storage operations: 3." in served.trainmaster("status", "cassava.yaml", "--verbose").err


def test_a_file_beside_the_folders_that_are_read_is_found_and_says_where_to_put_it(served: Served) -> None:
    reason = "this file is ignored: 'stray.yaml' is not in requests/ or rules/; copy a request to requests/"
    status = {**example("drop_status.v1.ignored"), "dropped_name": "stray.yaml", "reason": reason}
    served.write("ledger", status_object("stray.yaml"), status)
    done = served.trainmaster("status", "stray.yaml")
    assert "copy a request to" in done.out
    assert "copy a request to" in served.trainmaster("status", f"gs://{PROJECT}-inbox/stray.yaml").out


def test_without_a_run_it_lists_the_newest_as_ls_does(served: Served) -> None:
    done, listed = served.trainmaster("status", "--verbose"), served.trainmaster("ls", "--verbose")
    assert (done.status, done.out) == (0, listed.out)
    assert "One of them: trainmaster status RUN. More: trainmaster ls" in done.err
    assert done.err.splitlines()[-1] == listed.err.splitlines()[-1]  # the storage operations
    for output in ("json", "name"):
        done = served.trainmaster("status", "-o", output)
        assert (done.status, done.err) == (0, "")
        assert done.out == served.trainmaster("ls", "-o", output).out


def test_without_a_run_and_without_any_it_says_how_to_start_one(tmp_path: Path) -> None:
    with served_context(tmp_path) as empty:
        done = empty.trainmaster("status")
    assert done.status == 0
    assert "No runs yet. Submit one: trainmaster submit FILE" in done.err


def test_a_file_whose_event_is_delivered_again_shows_that(served: Served) -> None:
    done = served.trainmaster("status", "late.yaml")
    assert done.status == 0
    assert "retrying" in done.out
    assert "delivery failed 2 times" in done.out
    assert (
        json.loads(served.trainmaster("status", "late.yaml", "-o", "json").out)["schema"] == "drop_status.v1"
    )


def test_a_file_that_was_put_away_and_one_that_was_saved_again_say_so(served: Served) -> None:
    put_away = example("drop_status.v1.put_away") | {"run_id": RUN}
    served.write("ledger", "status/requests/done/cassava.yaml.json", put_away)
    done = served.trainmaster("status", "requests/done/cassava.yaml")
    assert "is put away" in " ".join(done.out.split())
    assert f"trainmaster status {RUN}" in done.out
    repeated = {
        "schema": "drop_status.v1",
        "state": "failed",
        "run_id": RUN,
        "generation": 1,
        "repeated_by": 2,
    }
    served.write("ledger", "status/requests/saved.yaml.json", repeated)
    done = served.trainmaster("status", "saved.yaml")
    assert "generation 2 of the file has the content of generation 1" in " ".join(done.out.split())


def test_a_wait_for_the_end_may_have_a_limit(served: Served) -> None:
    served.write("ledger", "runs/slow.json", run_record(run_id="slow", state="running"))
    done = served.trainmaster("status", "slow", "--wait", "--timeout", "0.1s")
    assert (done.status, "running" in done.err) == (5, True)
    assert "--timeout needs --wait." in served.trainmaster("status", "slow", "--timeout", "1s").err


def test_an_unknown_run_gets_the_ids_that_are_most_like_it(served: Served) -> None:
    done = served.trainmaster("status", "run-l")
    assert (done.status, done.out) == (3, "")
    assert "Did you mean 'run-1'? List the runs: trainmaster ls" in done.err


def test_the_screen_of_a_tuning_names_its_study_also_after_a_failure() -> None:
    tuned = RUNS["tuned"]().record
    for record in (tuned, RUNS["tuning"]().record, replace(tuned, state=RunState.FAILED, model=None)):
        assert ("Its trials", f"trainmaster study {record.run_id}") in next_commands(record)
    assert not any("study" in command for _, command in next_commands(RUNS["succeeded"]().record))


@pytest.mark.parametrize(
    ("run_id", "said"),
    [("damaged", "The record of damaged is damaged"), ("old", "'run_record.v1', which this version")],
)
def test_a_record_that_cannot_be_read_is_reported(served: Served, run_id: str, said: str) -> None:
    done = served.trainmaster("status", run_id)
    assert (done.status, done.out) == (3, "")
    assert said in done.err


def test_a_screen_holds_no_character_that_a_terminal_would_execute() -> None:
    run = RUNS["failed"]()
    document = json.loads(json.dumps(run.document).replace("no data", "no \\u001b[2Jdata\\u202e"))
    assert run.record.failure is not None
    shown = text_of(run_facts(run_of(document), NOW, is_local=False), None)
    assert "\x1b[2J" not in shown
    assert "\u202e" not in shown
