"""A stack that ends, politely or not, leaves no process behind and its jobs to the next one."""

import contextlib
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stack.waiting import wait_until

from .conftest import container, is_held, stand_alone


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signalled_stack_ends_its_replicas_and_exits_with_0(tmp_path: Path, number: int) -> None:
    (tmp_path / "buckets" / "b").mkdir(parents=True)
    held = tmp_path / "buckets" / "b" / "held"
    with stand_alone(tmp_path) as (process, stack):
        stack.submit(container("deaf", "hold=b/held", "sleep=600"))
        wait_until(held.exists)
        process.send_signal(number)
        assert process.wait(60) == 0
        wait_until(lambda: not is_held(held))


@pytest.mark.slow
def test_a_job_whose_stack_was_killed_runs_again_as_after_an_internal_error(
    tmp_path: Path, start: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    with stand_alone(tmp_path) as (process, stack):
        job = stack.submit(container("wait=b/go", "tell"))
        running = stack.until(job.name, lambda job: job.state.name == "JOB_STATE_RUNNING")
        process.kill()
        process.wait(60)
    (tmp_path / "buckets" / "b").mkdir()
    (tmp_path / "buckets" / "b" / "go").touch()
    with start() as stack:
        ended = stack.ended(job.name)
        assert ended.state.name == "JOB_STATE_SUCCEEDED"
        assert ended.start_time == running.start_time
        assert stack.service_lines(job.name)[:2] == [
            "Internal error occurred for the current attempt.",
            "The local stack was stopped while this job ran.",
        ]
        assert "was running when the stack stopped; attempt 2 of 3 begins" in caplog.text


def test_a_job_starts_again_however_often_its_stack_is_stopped_in_order(start: Callable[..., Any]) -> None:
    with start(grace_s=0.1) as stack:
        name = stack.submit(container("deaf", "sleep=600")).name
        stack.until(name, lambda job: job.state.name == "JOB_STATE_RUNNING")
    for _ in range(4):
        with start(grace_s=0.1) as stack:
            stack.until(name, lambda _job: "Job is running." in stack.service_lines(name))


def test_queued_and_finished_jobs_survive_and_keep_their_order(start: Callable[..., Any]) -> None:
    with start(capacity=1, grace_s=0.1) as stack:
        done = stack.submit(container("print=x"))
        stack.ended(done.name)
        blocked = stack.submit(container("wait=b/go"))
        queued = [stack.submit(container("print=x")) for _ in range(2)]
        assert {job.state.name for job in queued} == {"JOB_STATE_QUEUED"}
    with start(capacity=1) as stack:
        assert stack.jobs.get_custom_job(name=done.name).state.name == "JOB_STATE_SUCCEEDED"
        assert stack.service_lines(done.name) == []
        (stack.buckets / "b").mkdir()
        (stack.buckets / "b" / "go").touch()
        ends = [stack.ended(job.name) for job in (blocked, *queued)]
        assert [job.state.name for job in ends] == ["JOB_STATE_SUCCEEDED"] * 3
        assert ends[1].end_time <= ends[2].start_time
        assert ends[0].end_time <= ends[1].start_time


@pytest.mark.slow
def test_a_cancelled_job_is_cancelled_also_when_the_stack_ends_meanwhile(start: Callable[..., Any]) -> None:
    with start(grace_s=1.5) as stack:
        name = stack.submit(container("deaf", "print=deaf", "sleep=600")).name
        stack.until(name, lambda _job: "deaf" in stack.texts(name))
        stack.jobs.cancel_custom_job(name=name)
    with start() as stack:
        assert stack.until(name, lambda job: bool(job.end_time)).state.name == "JOB_STATE_CANCELLED"


def test_replicas_get_their_sigterm_and_can_answer_it_when_the_stack_stops(start: Callable[..., Any]) -> None:
    program = (
        "import os, signal, sys, time, pathlib\n"
        "root = pathlib.Path(os.environ.get('TRAINMASTER_GCS_ROOT', '/gcs')) / 'b'\n"
        "def save(*_): (root / 'saved').touch(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('up', flush=True)\n"
        "time.sleep(600)\n"
    )
    with start(grace_s=20) as stack:
        (stack.buckets / "b").mkdir()
        name = stack.submit(container("-c", program, command=["python"])).name
        stack.until(name, lambda _job: "up" in stack.texts(name))
    assert (stack.buckets / "b" / "saved").exists()


def test_a_terminal_line_that_a_kill_swallowed_is_written_by_the_next_stack(
    tmp_path: Path, start: Callable[..., Any]
) -> None:
    with start() as stack:
        name = stack.submit(container("print=x")).name
        stack.ended(name)
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "jobs.sqlite")) as database, database:
        # What a kill leaves behind that came after the state was kept and before the line was written.
        database.execute("UPDATE jobs SET announced = 0")
    with start() as stack:
        stack.ended(name)
        assert stack.service_lines(name) == ["Job completed successfully."]
    with start() as stack:
        assert stack.jobs.get_custom_job(name=name).state.name == "JOB_STATE_SUCCEEDED"
        assert stack.service_lines(name) == []
