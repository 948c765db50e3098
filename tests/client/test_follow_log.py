"""Following the log of a run, on real servers, through restarts of the stack's services."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.client.served import Served, run_record, served_context
from tests.ready_stack import announce, stop
from trainmaster.cli.logs.follow import follow
from trainmaster.client.clients import Clients
from trainmaster.client.context import context_of_stack
from trainmaster.client.find import find_run
from trainmaster.client.logs import survive
from trainmaster.client.logs.follow import RunLog, look_until_over
from trainstack import logging
from trainstack.find import NoStack, read_stack_env


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_context(tmp_path) as served:
        running(served)
        yield served


def running(served: Served) -> None:
    job = {"name": "projects/1/locations/us-central1/customJobs/7", "state": "JOB_STATE_RUNNING"}
    served.write("ledger", "runs/trained.json", run_record(run_id="trained", state="running", job=job))


def test_a_restart_of_the_logging_service_is_survived(served: Served, tmp_path: Path) -> None:
    stop = threading.Event()
    with logging.serve(tmp_path / "logging") as url:
        clients = Clients(replace(served.clients.context, logging_host=url))
        followed = look_until_over(clients.context, RunLog(clients, find_run(clients, "trained")))
        assert next(followed) == []

    def serve_again() -> None:
        with logging.serve(tmp_path / "logging", port=urlsplit(url).port or 0):
            stop.wait()

    restarted = threading.Timer(1, serve_again)
    restarted.start()
    try:
        with clients:
            assert next(followed) == []
    finally:
        stop.set()
        restarted.join()


def test_a_stopped_stack_ends_the_following_and_says_how_to_start_one(served: Served, tmp_path: Path) -> None:
    with logging.serve(tmp_path / "logging") as url:
        clients = Clients(replace(served.clients.context, logging_host=url))
        followed = look_until_over(clients.context, RunLog(clients, find_run(clients, "trained")))
        assert next(followed) == []
    stop(tmp_path / ".trainmaster")
    with (
        clients,
        pytest.raises(NoStack, match=f"was stopped. Start it again: .* --state {tmp_path}/.trainmaster"),
    ):
        next(followed)


def test_the_first_lines_are_awaited_through_a_restart_and_a_killed_stack_is_named(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(survive, "LOCAL_GIVE_UP_S", 0.1)
    with logging.serve(tmp_path / "logging") as url:
        pass
    state = tmp_path / ".trainmaster"
    variables = read_stack_env((state / "stack.env").read_text()) | {"LOGGING_EMULATOR_HOST": url}
    announce(state, variables)
    with Clients(context_of_stack(variables, state)) as clients:
        with pytest.raises(NoStack, match="no longer answers"):
            follow(clients, "trained")
        ended = subprocess.Popen([sys.executable, "-c", ""])
        ended.wait()
        announce(state, variables, owner=ended.pid)
        with pytest.raises(NoStack, match=r"was killed\. Start it again"):
            follow(clients, "trained")
    assert "Max retries" not in capsys.readouterr().err
