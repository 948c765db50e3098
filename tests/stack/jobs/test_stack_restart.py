"""A stack that ends, politely or not, leaves no process behind and its jobs to the next one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import container, stand_alone


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
