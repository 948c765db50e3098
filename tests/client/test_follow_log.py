"""Following the log of a run, on real servers, through restarts of the stack's services."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.served import Served, run_record, served_context
from tests.ready_stack import announce
from trainmaster.cli.logs.follow import follow
from trainmaster.client.clients import Clients
from trainmaster.client.context import context_of_stack
from trainmaster.client.logs import survive
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
