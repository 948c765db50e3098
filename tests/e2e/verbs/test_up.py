"""`up --detach` leaves a stack running that commands in any folder find, until `down`."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.project import ROOT, TINY, eventually, image_uri, request
from trainmaster.client.stack import environment_on
from trainmaster.local.stack.state import owner_of
from trainmaster.resources import DEPLOY

pytestmark = pytest.mark.slow

PROJECT = "e2e-detached"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the stack is started; none runs there at the end."""
    (tmp_path / "work").mkdir()
    yield tmp_path / "work"
    run(tmp_path / "work", "down")


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The command in a process that ends, so that what it leaves running is on its own."""
    variables = {"PYTHONPATH": str(ROOT), "TRAINMASTER_CONFIG": str(folder.parent / "config")}
    return subprocess.run(
        [sys.executable, "-m", "trainmaster", *words],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_a_detached_stack_is_used_from_any_folder_and_shows_runs_in_its_log(
    folder: Path, tmp_path: Path
) -> None:
    state, log = folder / ".trainmaster", folder / ".trainmaster" / "stack.log"
    words = ("up", "--detach", "--project", PROJECT, "--image", f"{image_uri(PROJECT)}={TINY}")
    first = run(folder, *words)
    assert (first.returncode, first.stderr) == (0, "")
    owner = owner_of(state)
    assert (
        f"running on '.trainmaster': process {owner}, project {PROJECT}, region us-central1." in first.stdout
    )
    assert "trainmaster down\n" in first.stdout

    again = run(folder, *words)
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert "already running" in again.stderr

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert run(elsewhere, "context").stdout == f"local:{state}\n"

    assert log.read_text().startswith("The local stack is ready. In another shell: trainmaster init")
    inbox = Path(state, "storage", "buckets", f"{PROJECT}-inbox", "requests")
    (inbox / "line.yaml").write_text(request(PROJECT))
    eventually(lambda: "  succeeded  gs://" in log.read_text(), "a line of the run's end", hint=log.read_text)

    not_here = run(elsewhere, "down")
    assert (not_here.returncode, not_here.stdout) == (0, "No stack is running on '.trainmaster'.\n")
    assert f"trainmaster down --state {state}\n" in not_here.stderr

    stopped = run(folder, "down")
    assert (stopped.returncode, stopped.stdout) == (0, "The stack on '.trainmaster' has stopped.\n")
    assert owner_of(state) is None
    assert run(elsewhere, "context").returncode == 4


def test_a_stack_that_cannot_start_is_reported_with_the_end_of_its_log(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = run(folder, "up", "--detach", "--port-base", str(port))
    assert (failed.returncode, failed.stdout) == (1, "")
    # Another program may have taken one of the next three ports too.
    assert re.search(r"Port \d+, which --port-base assigns to \w+, is in use", failed.stderr), failed.stderr
    assert failed.stderr.endswith("All of it: .trainmaster/stack.log\n")
    assert owner_of(folder / ".trainmaster") is None


def test_options_that_are_refused_start_nothing(folder: Path) -> None:
    refused = run(folder, "up", "--detach", "--project", "No_Project")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--project 'No_Project': a project id has" in refused.stderr
    assert not (folder / ".trainmaster").exists()


def test_a_killed_stack_is_started_again_on_its_folder(folder: Path) -> None:
    state = folder / ".trainmaster"
    assert run(folder, "up", "--detach").returncode == 0
    killed = owner_of(state)
    assert killed is not None
    os.kill(killed, 9)
    eventually(lambda: owner_of(state) is None, "the end of the killed stack")
    assert (state / "stack.env").exists()
    assert run(folder, "up", "--detach").returncode == 0
    assert owner_of(state) not in {None, killed}
    assert environment_on(state)


def test_a_policy_that_cannot_be_read_is_refused_when_the_stack_starts(folder: Path) -> None:
    topology = yaml.safe_load((DEPLOY / "topology.yaml").read_text())
    topology["environment"]["TRAINMASTER_POLICY"] = str(folder / "none.yaml")
    (folder / "topology.yaml").write_text(yaml.safe_dump(topology))
    shutil.copy(DEPLOY / "log_sink.filter", folder)
    failed = run(folder, "up", "--detach", "--topology", "topology.yaml")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "Cannot write deployment.json into the ledger" in failed.stderr
    assert str(folder / "none.yaml") in failed.stderr
    assert owner_of(folder / ".trainmaster") is None
