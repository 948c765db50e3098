"""The end of a job: by their chief, by a failure, by a lost replica, by cancelling, by their timeout."""

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from .conftest import PARENT, Stack, container, processes_with


def test_a_job_ends_with_its_chief_even_if_a_worker_ignores_sigterm(start: Callable[..., Any]) -> None:
    with start(grace_s=0.2) as stack:
        job = stack.submit(container("wait=b/up-1"), container("deaf", "write=b/up-1", "sleep=600"))
        ended = stack.ended(job.name)
        assert ended.state.name == "JOB_STATE_SUCCEEDED"
        assert not ended.error.message


@pytest.mark.parametrize("task", ["workerpool0-0", "workerpool1-0"])
def test_an_ordinary_exit_code_of_any_replica_fails_the_job(stack: Stack, task: str) -> None:
    words = ("print=up", f"exit=3@{task}", "sleep=600")
    job = stack.submit(container(*words), container(*words))
    ended = stack.ended(job.name)
    assert ended.state.name == "JOB_STATE_FAILED"
    assert ended.error.message.startswith(
        f"The replica {task} exited with a non-zero status of 3. To find out more about why your job exited "
        "please check the logs: https://console.cloud.google.com/logs/viewer?project="
    )
    lines = stack.service_lines(job.name)
    assert lines[-3:] == [ended.error.message, "Finished tearing down training program.", "Job failed."]
    severities = [entry["severity"] for entry in stack.logged(job.name, "service")]
    assert severities[-3:] == ["ERROR", "INFO", "INFO"]
    assert ended.start_time <= ended.end_time


def test_a_lost_worker_is_started_again_alone_with_the_same_address(stack: Stack) -> None:
    chief = container("print=chief started", "wait=b/done")
    worker = container("tell", "die_once=9,b/died", "write=b/done")
    (stack.buckets / "b").mkdir()
    job = stack.submit(chief, worker)
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    assert stack.texts(job.name).count("chief started") == 1
    told = [entry["jsonPayload"]["environ"] for entry in stack.logged(job.name, "workerpool1-0")]
    assert len(told) == 2
    assert told[0]["TF_CONFIG"] == told[1]["TF_CONFIG"]


@pytest.mark.slow
def test_a_lost_replica_whose_peers_fail_after_it_restarts_the_job_where_asked(stack: Stack) -> None:
    """The worker's end is reported late, because it has much output; the chief ended after it."""
    (stack.buckets / "b").mkdir()
    chief = container("print=chief started", "exit_after_death=1,b/held", "print=second life")
    worker = container("hold=b/held", "wait=b/held.mourned", "many=50000", "die_once=9,b/died", "sleep=600")
    job = stack.submit(chief, worker, scheduling={"restart_job_on_worker_restart": True})
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    assert stack.texts(job.name).count("chief started") == 2
    said = [text for text in stack.service_lines(job.name) if "restarted" in text]
    assert said == [
        "The replica workerpool1-0 exited with status 137; all replicas of the job are restarted."
    ]


def test_cancelling_ends_every_replica_also_a_deaf_one(start: Callable[..., Any]) -> None:
    with start(grace_s=0.2) as stack:
        word = secrets.token_hex(8)
        tell = ("-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)", word)  # fmt: skip
        job = stack.submit(container(*tell, command=["python"]), container(*tell, command=["python"]))
        stack.until(job.name, lambda _job: len(stack.texts(job.name)) == 8)
        assert len(processes_with(word)) == 2
        stack.jobs.cancel_custom_job(name=job.name)
        assert stack.jobs.get_custom_job(name=job.name).state.name in {
            "JOB_STATE_CANCELLING",
            "JOB_STATE_CANCELLED",
        }
        ended = stack.ended(job.name)
        assert (ended.state.name, ended.error.code, ended.error.message) == (
            "JOB_STATE_CANCELLED",
            1,
            "CANCELED",
        )
        assert processes_with(word) == []


def test_a_job_that_runs_longer_than_its_timeout_is_cancelled(stack: Stack) -> None:
    timeout = Duration(nanos=300_000_000)
    job = stack.submit(container("sleep=600"), scheduling={"timeout": timeout})
    ended = stack.ended(job.name)
    assert (ended.state.name, ended.error.code) == ("JOB_STATE_CANCELLED", 1)
    assert "timeout" in ended.error.message


def test_a_flexible_start_that_found_room_runs_on_beyond_its_longest_wait(stack: Stack) -> None:
    waits = {"strategy": "FLEX_START", "max_wait_duration": Duration(nanos=1)}
    job = stack.submit(container("print=ran"), scheduling=waits)
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"


def test_the_terminal_state_can_be_read_when_the_terminal_line_is_written(start: Callable[..., Any]) -> None:
    """A sink's consumer asks for the job the moment it sees the line."""
    states: list[tuple[str, int]] = []

    async def write(entries: list[dict[str, Any]]) -> None:
        for entry in entries:
            text = entry.get("textPayload")
            if text in {"Job completed successfully.", "Job failed.", "Job cancelled."}:
                name = f"{PARENT}/customJobs/{entry['resource']['labels']['job_id']}"
                found = await asyncio.to_thread(stack.jobs.get_custom_job, name=name)
                states.append((text, found.state.value))

    jobs: list[str] = []
    with start(write_log=write) as stack:
        for word in ("print=x", "exit=1", "sleep=600"):
            jobs.append(stack.submit(container(word)).name)
            if word.startswith("sleep"):
                stack.jobs.cancel_custom_job(name=jobs[-1])
            stack.until(jobs[-1], lambda _job: len(states) == len(jobs))
    assert states == [("Job completed successfully.", 4), ("Job failed.", 5), ("Job cancelled.", 7)]


def test_nothing_of_a_finished_job_stays_on_disk(stack: Stack) -> None:
    job = stack.submit(container("-c", "import os; open(os.environ['TMPDIR'] + '/x', 'w'); print(os.environ['TMPDIR'])", command=["python"]))  # fmt: skip
    stack.ended(job.name)
    scratch = Path(stack.texts(job.name, "workerpool0-0")[0])
    assert not scratch.exists()
    assert list(scratch.parents[2].iterdir()) == []
