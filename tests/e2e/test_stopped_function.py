"""A function stopped by SIGSTOP just before its job exists: another submits, it wakes, and one job stays."""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from .project import Project, request, running_project
from .proxied import LEASE_S, Answer, Request, VertexProxy, quick_topology, running

pytestmark = [pytest.mark.slow(seconds=75), pytest.mark.timeout(900)]

OVER = {"JOB_STATE_CANCELLED", "JOB_STATE_CANCELLING"}
DEADLINE_S = 120
HELD_MOST_S = 300


class HoldingProxy(VertexProxy):
    """The first submission of each run is held here until it is released, and then forwarded."""

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[str, threading.Event] = {}

    def answer(self, request: Request, pass_on: Callable[[], Answer]) -> Answer | None:
        if request.creates_job:
            run_id = json.loads(request.body)["displayName"]
            if run_id not in self.held:
                self.held[run_id] = threading.Event()
                self.held[run_id].wait(HELD_MOST_S)
        return pass_on()


def going(project: Project, run_id: str) -> list[CustomJob]:
    return [job for job in project.jobs(run_id) if job.state.name not in OVER]


def run_of(project: Project, name: str) -> str:
    (record,) = [r for r in project.records().values() if r["source"]["object_name"] == name]
    return str(record["run_id"])


def has_job(project: Project, run_id: str) -> bool:
    return "job" in project.record(run_id)


def has_two_jobs(project: Project, run_id: str) -> bool:
    return len(project.jobs(run_id)) == 2


def goes_alone(project: Project, run_id: str, job: str) -> bool:
    """Whether the second job exists and has ended, and this one is still running."""
    return has_two_jobs(project, run_id) and [each.name for each in going(project, run_id)] == [job]


def test_the_second_job_of_a_function_that_wakes_is_found_and_cancelled(tmp_path: Path) -> None:
    with running(HoldingProxy()) as proxy:
        arguments = (
            "--topology", str(quick_topology(tmp_path, vertex_url=proxy.url)),
            "--retry-min-s", "0.5", "--retry-max-s", "2", "--tick-s", "2",
        )  # fmt: skip
        with running_project(tmp_path / "state", *arguments, project="e2e-stopped-one") as project:
            proxy.target = project.env["VERTEX_EMULATOR_HOST"]
            stopped_between_look_and_job(project, proxy)


def stopped_between_look_and_job(project: Project, proxy: HoldingProxy) -> None:
    content = request(project.id, f"--wait-for=gs://{project.models}/go")
    for name in ("requests/woken.yaml", "requests/late.yaml"):
        project.upload(name, content)
    project.eventually(lambda: len(proxy.held) == 2, "both submissions are on their way")
    woken, late = run_of(project, "requests/woken.yaml"), run_of(project, "requests/late.yaml")
    master, *workers = project.function_processes("on-request-uploaded")
    for process in (master, *workers):
        process.suspend()
    try:
        for run_id in (woken, late):
            project.eventually(
                partial(has_job, project, run_id),
                "the tick took the run over",
                deadline_s=LEASE_S + DEADLINE_S,
            )
        first = {run_id: str(project.record(run_id)["job"]["name"]) for run_id in (woken, late)}
        # One submission arrives while its function is stopped: the answer is there when it wakes.
        proxy.held[woken].set()
        project.eventually(partial(has_two_jobs, project, woken), "the stopped function's job exists")
        # Gunicorn's master would take its worker for hung and kill it, if both woke at the same time.
        for process in workers:
            process.resume()
        # The other arrives when its client no longer waits for the response; the user cancels the run.
        proxy.held[late].set()
        project.eventually(partial(has_two_jobs, project, late), "the late job exists")
        project.vertex.cancel_custom_job(name=first[late])
        project.eventually(lambda: not going(project, late), "no job of the cancelled run is active")
        # By the function itself or, at the latest, by the reconciler's second look, when the second lease is over.
        project.eventually(
            partial(goes_alone, project, woken, first[woken]), "the second job is cancelled",
            deadline_s=LEASE_S + DEADLINE_S,
        )  # fmt: skip
    finally:
        for process in (*workers, master):
            with suppress(psutil.NoSuchProcess):
                process.resume()

    assert project.final_status("requests/late.yaml")["state"] == "cancelled"
    project.storage.bucket(project.models).blob("go").upload_from_string("go")
    assert project.final_status("requests/woken.yaml")["state"] == "succeeded"
    for run_id in (woken, late):
        record = project.record(run_id)
        assert record["job"]["name"] == first[run_id]
        (second,) = [job.name for job in project.jobs(run_id) if job.name != first[run_id]]
        assert any(f"a second job was found, {second}" in problem for problem in record["problems"])
