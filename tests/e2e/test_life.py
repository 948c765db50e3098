"""The stack starts once, stops cleanly, leaves nothing behind, and keeps its state across restarts."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from .project import ROOT, Project, eventually, nothing_left, request, running_project
from .topologies import quick_topology

pytestmark = pytest.mark.slow(seconds=40)

QUICK = ("--retry-min-s", "0.5", "--retry-max-s", "3", "--tick-s", "2")
STOP_WITHIN_S = 10


def small(folder: Path) -> tuple[str, ...]:
    """Arguments of a stack with few functions, for tests that start a separate one."""
    return "--topology", str(quick_topology(folder, timeout_s=60)), *QUICK


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "trainmaster", *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def watcher_pid(project: Project) -> int:
    found: int = json.loads((project.state / "lock").read_text())["watcher_pid"]
    return found


def assert_stops_with_all_it_started(project: Project, end: signal.Signals | str) -> None:
    """By a signal to its process or by the command of that name, while a trainer runs."""
    project.upload("requests/long.yaml", request(project.id, "--wait-for=gs://nowhere/never"))
    eventually(lambda: _trainers(project), "the trainer runs", hint=project.tail)
    states = ("submitted", "running")
    project.eventually(
        lambda: (project.status("requests/long.yaml") or {}).get("state") in states,
        "its function is done",
    )
    token, watcher = project.token(), watcher_pid(project)
    if isinstance(end, signal.Signals):
        project.process.send_signal(end)
    else:
        assert command(end, "--state", str(project.state)).returncode == 0
    assert project.process.wait(STOP_WITHIN_S) == 0
    assert nothing_left(token)
    assert not psutil.pid_exists(watcher)
    assert not (project.state / "stack.env").exists()


@pytest.mark.parametrize("end", [signal.SIGINT, "down"], ids=str)
def test_ctrl_c_or_down_stops_the_stack_and_all_it_started(end: signal.Signals | str, tmp_path: Path) -> None:
    with running_project(tmp_path / "state", *small(tmp_path), project="e2e-stopped") as project:
        assert_stops_with_all_it_started(project, end)


def test_a_killed_stack_leaves_no_process_and_handles_what_arrived_meanwhile_after_a_restart(
    tmp_path: Path,
) -> None:
    state = tmp_path / "state"
    with running_project(state, *small(tmp_path), project="e2e-crashed") as project:
        go = f"--wait-for=gs://{project.models}/go"
        project.upload("requests/done.yaml", request(project.id))
        record_of_done = project.finished_record(project.final_status("requests/done.yaml")["run_id"])
        project.upload("requests/unfinished.yaml", request(project.id, go))
        eventually(lambda: _trainers(project), "the trainer runs", hint=project.tail)
        token, ports = project.token(), project.env
        project.process.kill()
        project.process.wait()
        eventually(lambda: nothing_left(token), "no process of the stack is left")
        assert (state / "stack.env").exists()
        project.drop("requests/meanwhile.yaml", request(project.id))
    # A shell that has sourced the `stack.env` of another stack: a stack uses its own servers all the same.
    sourced = dict.fromkeys(["STORAGE_EMULATOR_HOST", "PUBSUB_EMULATOR_HOST"], "127.0.0.1:1")
    with running_project(state, *small(tmp_path), project="e2e-crashed", environment=sourced) as project:
        assert project.env.keys() == ports.keys()
        assert not [
            ports[name] for name in ports if project.env[name] != ports[name] and is_free(ports[name])
        ]
        assert project.record(record_of_done["run_id"]) == record_of_done
        project.storage.bucket(project.models).blob("go").upload_from_string("go")
        unfinished = project.final_status("requests/unfinished.yaml")
        assert unfinished["state"] == "succeeded"
        assert len(project.jobs(unfinished["run_id"])) == 1
        assert project.final_status("requests/meanwhile.yaml")["state"] == "succeeded"
        assert_stops_with_all_it_started(project, signal.SIGHUP)


def is_free(address: str) -> bool:
    """Whether no other process has taken the address meanwhile."""
    try:
        with socket.create_server(("127.0.0.1", int(address.rpartition(":")[2]))):
            return True
    except OSError:
        return False


def test_a_second_ctrl_c_ends_the_stack_at_once_and_still_leaves_nothing(tmp_path: Path) -> None:
    with running_project(tmp_path / "state", *small(tmp_path), project="e2e-impatient") as project:
        token = project.token()
        for process in project.function_processes("on-tick"):
            process.suspend()  # a function that does not end by itself
        project.process.send_signal(signal.SIGINT)
        eventually(lambda: not (project.state / "stack.env").exists(), "the stack receives the first Ctrl-C")
        project.process.send_signal(signal.SIGINT)
        assert project.process.wait(STOP_WITHIN_S) in (0, 1)
        eventually(lambda: nothing_left(token), "no process of the stack is left")


def test_a_function_that_cannot_start_fails_the_start_with_its_output(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import no_such_module\n")
    done = command("up", "--state", str(tmp_path / "state"), "--functions", str(tmp_path))
    assert done.returncode == 1
    for name in ("on-request-uploaded", "on-tick"):
        assert f"Function {name}" in done.stderr
    assert "No module named 'no_such_module'" in done.stderr
    assert not (tmp_path / "state" / "stack.env").exists()


def test_the_stack_process_is_small(project: Project) -> None:
    """The promise is 250 MiB; the limit leaves room for what a longer session keeps."""
    assert psutil.Process(project.process.pid).memory_info().rss < 400 * 2**20


def _trainers(project: Project) -> list[psutil.Process]:
    token = project.token()
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if "tiny.py" in " ".join(process.info["cmdline"] or []):
            try:
                mark = process.environ().get("TRAINMASTER_STACK", "")
            except psutil.Error:
                continue
            if mark.startswith(token):
                found.append(process)
    return found
