"""Machines that are taken away on request: SIGTERM, the grace, SIGKILL, and then as any lost machine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.ready_stack import announce
from trainmaster.cli.command import main

from .conftest import Stack, container, is_held

SAVES = """
import os, pathlib, signal, sys, time
bucket = pathlib.Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")) / "b"
def save(*_):
    (bucket / "saved").write_text("checkpoint")
    sys.exit(int(sys.argv[1]))
if (bucket / "saved").exists():
    print("continues from", (bucket / "saved").read_text(), flush=True)
else:
    signal.signal(signal.SIGTERM, save)
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def stack(start: Callable[..., Any]) -> Iterator[Stack]:
    with start(grace_s=10.0) as running:
        (running.buckets / "b").mkdir()
        yield running


def preempt(stack: Stack, name: str, body: object = None) -> httpx.Response:
    return httpx.post(f"{stack.url}/emulator/v1/{name}:preempt", json=body, timeout=60)


def refusal(stack: Stack, name: str, body: object = None) -> tuple[int, str, str]:
    error = preempt(stack, name, body).json()["error"]
    return error["code"], error["status"], error["message"]


def test_a_preempted_replica_may_save_its_work_and_restarts_after_any_exit_status(stack: Stack) -> None:
    job = stack.submit(container("-c", SAVES, "1", command=["python"]))
    stack.until(job.name, lambda _job: "up" in stack.texts(job.name))
    assert preempt(stack, job.name).json() == {}
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    assert stack.texts(job.name, "workerpool0-0") == ["up", "continues from checkpoint"]
    assert [text for text in stack.service_lines(job.name) if "preempted" in text] == [
        "The machine of replica workerpool0-0 is being preempted; its program has 10 s to exit.",
        "The replica workerpool0-0 was preempted and exited with status 1 and is restarted.",
    ]


def test_a_replica_that_does_not_end_within_its_grace_is_killed(start: Callable[..., Any]) -> None:
    with start(grace_s=0.2) as stack:
        worker = container("deaf", "print=up", "sleep_once=b/first", "write=b/second")
        (stack.buckets / "b").mkdir()
        job = stack.submit(container("wait=b/second"), worker)
        stack.until(job.name, lambda _job: (stack.buckets / "b" / "first").exists())
        assert preempt(stack, job.name, {"replica": "workerpool1-0"}).json() == {}
        assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
        assert any("was preempted and exited with status 137" in t for t in stack.service_lines(job.name))


def test_an_invalid_preemption_is_refused_with_the_replicas_that_there_are(stack: Stack) -> None:
    job = stack.submit(container("wait=b/go"), container("hold=b/held"))
    held = stack.buckets / "b" / "held"
    stack.until(job.name, lambda _job: held.exists() and not is_held(held))
    assert refusal(stack, job.name, {"replica": "workerpool2-0"})[:2] == (400, "INVALID_ARGUMENT")
    assert "it has workerpool0-0, workerpool1-0." in refusal(stack, job.name, {"replica": "workerpool2-0"})[2]
    bodies: list[object] = [[], {"replica": 3}, {"worker": "workerpool0-0"}]
    for body in bodies:
        assert refusal(stack, job.name, body)[:2] == (400, "INVALID_ARGUMENT")
    assert refusal(stack, job.name[:-1] + "0" + "1")[:2] == (404, "NOT_FOUND")
    # It can be preempted for a moment after its program has ended.
    ended = {"replica": "workerpool1-0"}
    stack.until(job.name, lambda _job: preempt(stack, job.name, ended).status_code == 400)
    (stack.buckets / "b" / "go").touch()
    stack.ended(job.name)
    code, status, message = refusal(stack, job.name)
    assert (code, status) == (400, "FAILED_PRECONDITION")
    assert "JOB_STATE_SUCCEEDED" in message


def test_the_command_preempts_on_the_stack_of_a_state_folder(
    stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "folder"
    state.mkdir()
    variables = {
        "GOOGLE_CLOUD_PROJECT": "p1",
        "TRAINMASTER_REGION": "us-central1",
        "VERTEX_EMULATOR_HOST": stack.url,
        "LOGGING_EMULATOR_HOST": stack.url,
    }
    announce(state, variables)
    job = stack.submit(container("-c", SAVES, "0", command=["python"]))
    stack.until(job.name, lambda _job: "up" in stack.texts(job.name))
    job_id = job.name.rpartition("/")[2]
    assert main(["stack", "preempt", job_id, "workerpool7-0", "--state", str(state)]) == 2
    assert "has no replica 'workerpool7-0'; it has workerpool0-0." in capsys.readouterr().err
    assert main(["stack", "preempt", job_id, "--state", str(state)]) == 0
    assert capsys.readouterr().out == f"Preempting replica workerpool0-0 of job {job_id}: SIGTERM was sent.\n"
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    assert main(["stack", "preempt", job.name, "--state", str(state)]) == 2
    assert "JOB_STATE_SUCCEEDED" in capsys.readouterr().err
