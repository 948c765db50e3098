"""The run that a file's name means once other files have the same name, on a real storage server."""

from dataclasses import replace
from typing import Any

import pytest

from tests.client.rule_documents import write_rules
from tests.client.runs.rows import row, write_row
from tests.client.served import Served, run_record
from trainmaster.client.find import find_run
from trainmaster.client.rules.orders import active_runs_of_file


def start(served: Served, number: int, name: str = "requests/big.yaml", state: str = "running") -> str:
    """The id of the run that a file of this name started in this hour; its status is that of the file."""
    run_id = f"big-20260301t{number:02}0000-{number:010x}"
    document: dict[str, Any] = run_record(run_id=run_id, state=state)
    document["source"] |= {"object_name": name, "event_time": f"2026-03-01T{number:02}:00:00Z"}
    served.write("ledger", f"runs/{run_id}.json", document)
    if state == "running":
        served.write("ledger", f"active/{run_id}", {})
    status = {"schema": "drop_status.v1", "dropped_name": name, "state": state, "run_id": run_id}
    served.write("ledger", f"status/{name}.json", status)
    return run_id


def active(served: Served, name: str) -> list[str]:
    return [run.record.run_id for run in active_runs_of_file(served.clients, find_run(served.clients, name))]


def test_the_name_of_a_file_means_its_newest_run_also_after_again(served: Served) -> None:
    first = start(served, 1, state="succeeded")
    again = start(served, 2, "requests/again/big.yaml")
    assert find_run(served.clients, "big.yaml").record.run_id == again
    assert find_run(served.clients, "requests/big.yaml").record.run_id == first
    newest = start(served, 3)
    assert find_run(served.clients, "big.yaml").record.run_id == newest


def test_a_run_again_of_another_request_of_the_same_name_is_left_out(served: Served) -> None:
    first = start(served, 1, state="succeeded")
    other = start(served, 2, "requests/again/big.yaml")
    document = run_record(run_id=other, state="running")
    document["request"]["model_name"] = "another"
    served.write("ledger", f"runs/{other}.json", document)
    assert find_run(served.clients, "big.yaml").record.run_id == first


def test_the_name_of_a_file_means_its_only_active_run(served: Served) -> None:
    running = start(served, 1)
    start(served, 2, state="succeeded")
    start(served, 3, "requests/vision/big.yaml")
    start(served, 4, state="failed")
    assert active(served, "big.yaml") == [running]


def test_cancel_refuses_a_file_with_several_active_runs_and_names_them(served: Served) -> None:
    first, again = start(served, 1), start(served, 2, "requests/again/big.yaml")
    assert active(served, "big.yaml") == [first, again]
    done = served.trainmaster("cancel", "big.yaml")
    assert (done.status, done.out) == (2, "")
    assert "'big.yaml' means 2 active runs. Cancel one by its id:\n" in done.err
    assert f"\n  trainmaster cancel {first}\n  trainmaster cancel {again}\n" in done.err


def test_cancel_leaves_the_latest_run_of_a_file_as_it_has_ended(served: Served) -> None:
    run_id = start(served, 1, state="succeeded")
    done = served.trainmaster("cancel", "big.yaml")
    assert (done.status, done.out) == (0, f"{run_id}\n")
    assert f"{run_id} has already ended: succeeded." in done.err


@pytest.mark.parametrize("text", ["latest", f"{2:010x}"])
def test_cancel_of_the_latest_run_or_a_short_id_never_means_another_run_of_the_file(
    served: Served, text: str
) -> None:
    start(served, 1)
    ended = start(served, 2, state="succeeded")
    for number, run_id in enumerate((f"big-20260301t010000-{1:010x}", ended), 1):
        write_row(served, replace(row(number), run_id=run_id))
    done = served.trainmaster("cancel", text)
    assert (done.status, done.out) == (0, f"{ended}\n")


@pytest.mark.parametrize("verb", ["status", "logs"])
def test_the_id_of_a_rule_is_answered_with_the_command_that_shows_the_rule(served: Served, verb: str) -> None:
    write_rules(served)
    served.write("ledger", "runs/weekly-20260301t010000-0123456789.json", run_record(state="running"))
    done = served.trainmaster(verb, "weekly")
    assert (done.status, done.out) == (3, "")
    assert done.err == (
        "Error: 'weekly' is a rule, not a run. Its state and its last run: trainmaster rules show weekly\n"
    )


def test_the_name_of_a_model_is_answered_with_its_runs(served: Served) -> None:
    for number in (1, 2):
        write_row(served, row(number, model_name="lin"))
    done = served.trainmaster("download", "lin")
    assert (done.status, done.out) == (3, "")
    assert done.err == (
        "Error: 'lin' is a model, not a run. Its latest run is run-2. "
        "All its runs: trainmaster ls --model lin\n"
    )
