"""Waiting for the end of a run, on a real storage server."""

import contextlib
import io
import json
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.client.served import Served, run_record, served_context
from tests.fixtures import fixture_of
from tests.ready_stack import stop
from trainmaster.cli.runs.following import say_change, say_end
from trainmaster.client import wait
from trainmaster.client.clients import Clients
from trainmaster.client.errors import TimedOut
from trainmaster.client.find import Run
from trainmaster.client.logs import survive
from trainmaster.client.times import parse_duration
from trainmaster.client.wait import wait_for_end
from trainstack.find import NoStack
from trainstack.storage import serve

RUN = "cassava-20260302t081500-3f9a1c04de"


served = fixture_of(served_context)


EXPLAINED = {"steps_done": ["reason"]}
"""The service has read the job's log."""


def record(served: Served, run_id: str, state: str) -> None:
    document = run_record(run_id=run_id, state=state, completion=EXPLAINED)
    served.write("ledger", f"runs/{run_id}.json", document)


@pytest.mark.parametrize(
    ("state", "status", "said"),
    [("succeeded", 0, "has "), ("failed", 1, ""), ("cancelled", 1, "was "), ("rejected", 1, "was ")],
)
def test_the_exit_status_is_that_of_the_end(served: Served, state: str, status: int, said: str) -> None:
    record(served, f"a-{state}", state)
    done = served.trainmaster("wait", f"a-{state}")
    assert (done.status, done.out) == (status, f"{state}\n")
    assert f"a-{state} {said}{state}" in done.err


def test_programs_get_the_record_of_the_ended_run(served: Served) -> None:
    record(served, "for-programs", "succeeded")
    done = served.trainmaster("wait", "for-programs", "-o", "json")
    assert (done.status, json.loads(done.out)["run_id"]) == (0, "for-programs")


def once_started(served: Served, run_id: str, ended: dict[str, Any], settled: dict[str, Any]) -> str:
    """What `wait` says about a run whose end is on record before the steps that follow it."""
    record(served, run_id, "running")

    def change(run: Run) -> None:
        say_change(run)
        written = settled if run.record.ended else ended
        threading.Timer(0, served.write, ("ledger", f"runs/{run_id}.json", written)).start()

    with contextlib.redirect_stderr(io.StringIO()) as said:
        run = wait_for_end(served.clients, run_id, timeout_s=60, on_change=change)
        say_end(wait.wait_until_settled(served.clients, run))
    return said.getvalue()


def test_a_failure_is_printed_once_with_the_cause_that_the_service_reads_after_the_end(
    served: Served,
) -> None:
    ended = run_record(run_id="broke", state="failed", failure={"message": "The replica exited."})
    failure = {"message": "workerpool0-0: KeyError: 'label'. The replica exited."}
    said = once_started(served, "broke", ended, ended | {"failure": failure, "completion": EXPLAINED})
    assert said.count("The replica exited.") == 1
    assert "broke failed: workerpool0-0: KeyError: 'label'. The replica exited.\n" in said
    assert "has not read the cause" not in said


@pytest.mark.parametrize(
    ("promoted", "reason", "said"),
    [
        (True, "accuracy 0.9 is the first", "was promoted to champion: accuracy 0.9 is the first"),
        (False, "the run has no metric 'acuracy'", "was not promoted to champion: the run has no metric"),
    ],
)
def test_the_end_of_a_challenger_says_whether_its_model_was_promoted(
    served: Served, promoted: bool, reason: str, said: str
) -> None:
    ended = challenger("challenger")
    verdict = {"promoted": promoted, "reason": reason}
    completion = {"steps_done": ["reason", "champion"], "champion": verdict}
    lines = once_started(served, "challenger", ended, ended | {"completion": completion}).splitlines()
    assert lines[-2] == "challenger has succeeded"
    assert f"Its model {said}" in lines[-1]


def challenger(run_id: str) -> dict[str, Any]:
    """A run that has succeeded, whose request has a `champion`; no step after its end is done."""
    document = run_record(run_id=run_id)
    terms = {"champion": {"metric": "accuracy"}}
    request = document["request"] | {"document": document["request"]["document"] | terms}
    return document | {"request": request, "completion": {"steps_done": []}}


def test_a_reason_of_several_lines_keeps_them_here_and_in_status(served: Served) -> None:
    lines = ["The packages cannot be installed.", "- Repair it: " + "x" * 300, "uv printed:", "y" * 600]
    failed = run_record(run_id="uninstalled", state="failed", failure={"message": "\n".join(lines)})
    served.write("ledger", "runs/uninstalled.json", failed | {"completion": EXPLAINED})
    waited = served.trainmaster("wait", "uninstalled").err.splitlines()
    at = waited.index(f"uninstalled failed: {lines[0]}")
    assert waited[at + 1 : at + 3] == [f"  {line}" for line in lines[1:3]]
    assert waited[at + 3].endswith("y…")
    shown = served.trainmaster("status", "uninstalled").out.splitlines()
    assert [line.split(maxsplit=1)[-1] for line in shown if lines[0] in line] == [lines[0]]


def test_a_success_without_a_model_says_how_to_see_more_and_fails_only_where_a_model_is_required(
    served: Served,
) -> None:
    document = run_record(run_id="modelless", state="succeeded", problems=["the directory is empty"])
    del document["model"]
    served.write("ledger", "runs/modelless.json", document)
    done = served.trainmaster("wait", "modelless")
    assert done.status == 0
    assert "has succeeded: the directory is empty\nSee more:\n  trainmaster status modelless" in done.err
    demanded = served.trainmaster("wait", "modelless", "--require-model")
    assert demanded.status == 1
    assert "The exit status is 1: --require-model is given, and no model was found.\n" in demanded.err
    record(served, "with-model", "succeeded")
    assert served.trainmaster("wait", "with-model", "--require-model").status == 0


@pytest.mark.parametrize(
    ("ended", "status", "said"),
    [
        (
            challenger("late"),
            0,
            "has not compared its model with the champion yet; status will show the result.\n",
        ),
        (
            run_record(run_id="late", state="failed"),
            1,
            "has not read the cause from the job's log yet; status will show it.\nSee more:",
        ),
    ],
    ids=["verdict", "cause"],
)
def test_what_the_service_has_not_found_out_in_time_is_announced(
    served: Served, monkeypatch: pytest.MonkeyPatch, ended: dict[str, Any], status: int, said: str
) -> None:
    monkeypatch.setattr(wait, "SETTLED_WITHIN_S", 0.1)
    served.write("ledger", "runs/late.json", ended)
    done = served.trainmaster("wait", "late")
    assert (done.status, said in done.err) == (status, True), done.err


def test_a_run_that_has_not_ended_in_time_ends_the_wait_with_5_and_its_state(served: Served) -> None:
    record(served, "slow", "running")
    done = served.trainmaster("wait", "slow", "--timeout", "0.1s")
    assert (done.status, done.out) == (5, "")
    assert "slow is still running after 0.1 s. Keep waiting: trainmaster wait slow" in done.err


@pytest.mark.parametrize("text", ["soon", "-1", "1w", "", "1e9", "99999999999"])
def test_an_invalid_timeout_is_wrong_usage(served: Served, text: str) -> None:
    done = served.trainmaster("wait", "slow", f"--timeout={text}")
    assert done.status == 2
    assert "for example 90s, 15m, 2h or 1d" in done.err


def test_a_duration_is_in_seconds_or_has_a_unit() -> None:
    seconds = [parse_duration(text).total_seconds() for text in ("90", "1.5s", "15m", "2h", "1d")]
    assert seconds == [90, 1.5, 900, 7200, 86400]


def test_a_path_to_no_file_is_answered_with_the_name_of_the_request_in_the_inbox(served: Served) -> None:
    for name in ("nowhere/vision.yaml", "/nowhere/vision.yaml", "./vision.yaml"):
        missing = served.trainmaster("wait", name)
        assert (missing.status, missing.out) == (3, "")
        assert f"There is no file {name!r}. To name a request in the inbox: requests/" in missing.err
        assert ": requests/vision.yaml\n" in missing.err
    assert served.trainmaster("wait", "gs://elsewhere/requests/vision.yaml").status == 3


def test_every_change_that_is_seen_is_reported_until_the_end(served: Served) -> None:
    record(served, RUN, "waiting")
    states: list[str] = []

    def moved_on(run: Run) -> None:
        states.append(run.record.state)
        following = {"waiting": "running", "running": "succeeded"}.get(run.record.state)
        if following:
            threading.Timer(0, record, (served, RUN, following)).start()

    assert wait_for_end(served.clients, RUN, timeout_s=60, on_change=moved_on).record.ended
    assert states == ["waiting", "running", "succeeded"]


def silenced(served: Served, folder: Path, running: ExitStack, run_id: str) -> Clients:
    """The clients of the same context, but of another storage server, which has this run and ends with `running`."""
    url = running.enter_context(serve(folder / "storage"))
    clients = Clients(replace(served.clients.context, storage_host=url))
    clients.storage.create_bucket(clients.context.ledger_bucket)
    other = replace(served, clients=clients)
    record(other, run_id, "running")
    return clients


@pytest.mark.slow
def test_a_service_that_falls_silent_does_not_prolong_the_timeout(served: Served, tmp_path: Path) -> None:
    """Without a limit the client library would repeat the read for two minutes."""
    with ExitStack() as running:
        clients = silenced(served, tmp_path, running, RUN)
        with clients, pytest.raises(TimedOut, match=f"{RUN} was running when the service last answered"):
            wait_for_end(clients, RUN, timeout_s=3, on_change=lambda _: running.close())


def test_a_stopped_stack_ends_the_wait_and_says_how_to_start_one(tmp_path: Path) -> None:
    with served_context(tmp_path) as served, ExitStack() as running:
        clients = silenced(served, tmp_path / "other", running, RUN)

        def end(_: Run) -> None:
            running.close()
            stop(tmp_path / ".trainmaster")

        with (
            clients,
            pytest.raises(NoStack, match=f"was stopped. Start it again: .* --state {tmp_path}/.trainmaster"),
        ):
            wait_for_end(clients, RUN, on_change=end)


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_restart_of_the_service_or_of_a_killed_stack_is_waited_for(
    tmp_path: Path, *, is_killed: bool
) -> None:
    """A start removes the `stack.env` of the killed stack before it is ready, and keeps its lock."""
    with served_context(tmp_path) as served, ExitStack() as running, ExitStack() as again:
        clients = silenced(served, tmp_path / "other", running, RUN)
        port = urlsplit(clients.context.storage_host or "").port or 0

        def serve_again() -> None:
            again.enter_context(serve(tmp_path / "other/storage", port=port))
            record(replace(served, clients=clients), RUN, "succeeded")

        restart = threading.Timer(1, serve_again)

        def end(run: Run) -> None:
            if not run.record.ended:
                running.close()
                if is_killed:
                    (tmp_path / ".trainmaster/stack.env").unlink()
                restart.start()

        with clients:
            assert wait_for_end(clients, RUN, on_change=end).record.ended
        restart.join()


def test_a_service_that_is_gone_for_good_is_named_in_the_words_of_every_verb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survive, "LOCAL_GIVE_UP_S", 0.1)
    with served_context(tmp_path) as served, ExitStack() as running:
        clients = silenced(served, tmp_path / "other", running, RUN)
        with clients, pytest.raises(NoStack, match="was started again at other addresses"):
            wait_for_end(clients, RUN, on_change=lambda _: running.close())
