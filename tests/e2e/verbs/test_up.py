"""`up --detach` leaves a stack running that commands in any folder find, until `down`."""

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
import yaml

from tests.e2e.project import ROOT, TINY, eventually, image_uri, nothing_left, request
from tests.e2e.topologies import quick_topology
from tests.processes import run_to_end
from trainstack.find import environment_on
from trainstack.process.family import MARK
from trainstack.stack.state import owner_of

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
    return run_to_end(
        [sys.executable, "-m", "trainmaster", *words],
        cwd=folder,
        env={**os.environ, **variables},
        timeout=200,
    )


def opened(address: str) -> str:
    """The page at the address."""
    with urllib.request.urlopen(address, timeout=60) as answer:
        return str(answer.read().decode())


def consoles(state: Path) -> list[psutil.Process]:
    """The processes of the console beside the stack."""
    return [
        each
        for each in psutil.process_iter(["cmdline"])
        if {"web", f"local:{state}"} <= set(each.info["cmdline"] or ())
    ]


def test_a_detached_stack_is_used_from_any_folder_and_shows_runs_in_its_log(
    folder: Path, tmp_path: Path
) -> None:
    state, log = folder / ".trainmaster", folder / ".trainmaster" / "stack.log"
    words = (
        "up",
        "--detach",
        "--console",
        "read",
        "--project",
        PROJECT,
        "--image",
        f"{image_uri(PROJECT)}={TINY}",
    )
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

    address = environment_on(state)["TRAINMASTER_CONSOLE"]
    assert first.stdout.splitlines()[0] == f"Console  {address}"
    began = f"Console  {address}\nThe local stack is ready. In another shell: trainmaster init"
    assert log.read_text().startswith(began)
    inbox = Path(state, "storage", "buckets", f"{PROJECT}-inbox", "requests")
    (inbox / "line.yaml").write_text(request(PROJECT))
    eventually(lambda: "  succeeded  gs://" in log.read_text(), "a line of the run's end", hint=log.read_text)

    listed = run(elsewhere, "ls")
    assert "line" in listed.stdout
    assert f"In the local stack on {state}, the only local stack that is running.\n" in listed.stderr
    assert str(state) not in run(folder, "ls").stderr

    not_here = run(elsewhere, "down")
    assert (not_here.returncode, not_here.stdout) == (0, "No stack is running on '.trainmaster'.\n")
    assert "Another folder's stack is running since " in not_here.stderr
    assert f". To stop it: trainmaster down --state {state}\n" in not_here.stderr

    assert f"the local stack on {state}" in opened(address)
    (console,) = consoles(state)
    token = console.environ()[MARK].partition(":")[0]
    stopped = run(folder, "down")
    assert (stopped.returncode, stopped.stdout) == (0, "The stack on '.trainmaster' has stopped.\n")
    eventually(lambda: nothing_left(token), "no process of the stack is left")
    with pytest.raises(urllib.error.URLError, match="refused"):
        opened(address)
    assert owner_of(state) is None
    assert run(elsewhere, "context").returncode == 4


def test_a_stack_that_cannot_start_is_reported_with_the_end_of_its_log(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        failed = run(folder, "up", "--detach", "--port-base", str(port))
    assert (failed.returncode, failed.stdout) == (1, "")
    # Another program may have taken one of the next three ports too.
    assert re.search(r"Port \d+, which --port-base assigns to \w+, is in use", failed.stderr), failed.stderr
    assert "Console  " not in failed.stderr
    assert failed.stderr.endswith("All of it: .trainmaster/stack.log\n")
    assert owner_of(folder / ".trainmaster") is None


def test_of_two_starts_at_one_moment_the_second_finds_the_stack_of_the_first(folder: Path) -> None:
    with ThreadPoolExecutor(2) as both:
        starts = list(both.map(lambda _: run(folder, "up", "--detach", "--console", "off"), range(2)))
    assert [start.returncode for start in starts] == [0, 0], [start.stderr for start in starts]
    assert starts[0].stdout == starts[1].stdout
    assert sorted("already running" in start.stderr for start in starts) == [False, True]
    assert "The local stack is ready" in (folder / ".trainmaster" / "stack.log").read_text()


def test_a_console_says_that_its_stack_is_starting(folder: Path) -> None:
    (folder / "functions").mkdir()
    (folder / "functions" / "main.py").write_text("import time; time.sleep(600)\n")  # never ready
    command = [sys.executable, "-m", "trainmaster", "up", "--functions", "functions"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as stack:
        try:
            assert stack.stdout is not None
            address = stack.stdout.readline().removeprefix("Console  ").strip()
            with pytest.raises(urllib.error.HTTPError, match="503") as answer:
                opened(address)
            with answer.value as page:
                assert "The local stack is starting." in page.read().decode()
        finally:
            stack.terminate()
            stack.communicate()


def test_a_policy_of_ones_own_is_in_force_and_published(folder: Path) -> None:
    policy = yaml.safe_load((ROOT / "functions" / "policy.yaml").read_text())
    policy["admission"]["caps"].pop("runs_per_hour")
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    words = ("up", "--detach", "--console", "off", "--topology", str(quick_topology(folder)), "--policy")
    refused = run(folder, *words, "none.yaml")
    assert (refused.returncode, refused.stderr) == (2, "Error: none.yaml: No such file or directory\n")
    assert run(folder, *words, "policy.yaml").returncode == 0
    ledger = folder / ".trainmaster/storage/buckets/trainmaster-local-ledger"
    assert json.loads((ledger / "deployment.json").read_text())["policy"] == policy
    assert run(folder, "queue").stdout.split("started ")[1].split()[:3] == ["0", "this", "hour,"]
    assert run(folder, "down").returncode == 0


def test_a_policy_that_cannot_be_read_is_refused_when_the_stack_starts(folder: Path) -> None:
    path = quick_topology(folder)
    topology = yaml.safe_load(path.read_text())
    topology["environment"]["TRAINMASTER_POLICY"] = str(folder / "none.yaml")
    path.write_text(yaml.safe_dump(topology))
    failed = run(folder, "up", "--detach", "--console", "off", "--topology", str(path))
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "Cannot write deployment.json into the ledger" in failed.stderr
    assert str(folder / "none.yaml") in failed.stderr
    assert owner_of(folder / ".trainmaster") is None
