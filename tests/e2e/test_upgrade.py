"""Functions are upgraded and rolled back under traffic: no event is lost, no job is doubled, and each reads the other's records."""

import json
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest

from tests.image.stack_functions import StackFunctions, point
from trainmaster.deploy.stage import stage
from trainstack.find import is_open

from .data_events import data_event, post
from .project import DEADLINE_S, ROOT, Project, eventually, request, running_project, stop

pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.timeout(600)]
PREVIOUS = "cc0a4e1e"
"""A commit whose records must stay readable, and whose functions read those of this one."""
PAUSE_S, ACTIVE_MAX = 0.5, 6
"""Between two files, and how many runs may be active when one is sent: the machine may be slow."""
BUSY = ("on-request-uploaded", "on-request-published", "on-job-log", "on-tick", "on-notice")
"""The functions that take the events of runs."""
MARK = """

def _marked(entry_point):
    def handle(event):
        print("handled by VERSION", flush=True)
        return entry_point(event)
    return handle

globals().update({name: _marked(value) for name, value in list(globals().items()) if name.startswith("on_")})
"""
"""Added to a version's main.py: its log says which version took an event."""


def marked(source: Path, version: str) -> Path:
    """The source, whose log says what it handles, and whose policy caps no traffic."""
    policy = source / "policy.yaml"
    policy.write_text(policy.read_text().replace("runs_per_hour: 100", "runs_per_hour: 10000"))
    with (source / "main.py").open("a") as main:
        main.write(MARK.replace("VERSION", version))
    return source


def previous_code(folder: Path) -> Path:
    """The functions of PREVIOUS, staged by its own command. Where the history is missing, this commit's stand for them."""
    words = ["git", "archive", PREVIOUS, "functions", "trainmaster", "schemas"]
    got = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
    if got.returncode != 0:
        return current_code(folder)
    with tarfile.open(fileobj=BytesIO(got.stdout)) as archive:
        archive.extractall(folder / "tree", filter="data")
    words = [sys.executable, "-m", "trainmaster.deploy.stage", str(folder / "source")]
    subprocess.run(words, cwd=folder / "tree", check=True)
    return folder / "source"


def current_code(folder: Path) -> Path:
    stage(folder / "source")
    return folder / "source"


@dataclass
class Traffic:
    """Requests that arrive all the time, by turns as files and as messages."""

    project: Project
    statuses: list[str] = field(default_factory=list)
    """The object with the status of each, which names its run."""
    also_to: str = ""
    """The URL of an instance that gets the event of each file too, at the same time."""
    _stopped: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def flowing(self) -> Iterator[None]:
        thread = threading.Thread(target=self._send)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            thread.join(DEADLINE_S)

    def _send(self) -> None:
        active = self.project.folder(self.project.ledger) / "active"
        content = request(self.project.id, "--epochs=1")
        while not self._stopped.wait(PAUSE_S):
            if len(list(active.glob("*"))) > ACTIVE_MAX:
                continue
            name, key = f"requests/n{len(self.statuses)}.json", f"key-{len(self.statuses)}"
            generation = self.project.upload(name, content)
            with suppress(OSError, ValueError):  # there is no such instance, or it stops
                created = datetime.fromtimestamp(generation / 1e6, UTC)  # both events have the object's time
                post(self.also_to, data_event(self.project.inbox, name, generation, at=created))
            self.project.publish("trainmaster-requests", content.encode(), idempotency_key=key)
            self.statuses += [f"status/{name}.json", f"status/keys/{key}.json"]

    def flow_on(self, count: int) -> None:
        """Return when `count` more files and messages have been sent."""
        until = len(self.statuses) + 2 * count
        eventually(lambda: len(self.statuses) >= until, "the traffic flows")

    def runs(self) -> set[str] | None:
        """The runs of all events that were sent; None while one has none."""
        found = [self.project.document(self.project.ledger, name) for name in self.statuses]
        return {str(each["run_id"]) for each in found if each} if all(found) else None


@contextmanager
def old_instance(project: Project, function: str, source: Path, log: Path) -> Iterator[str]:
    """The URL of one more instance of the function, on this source, which a deployment has not replaced yet."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {**project.function_processes(function)[0].environ(), "PYTHONPATH": str(source)}
    words = ["--target", variables["FUNCTION_TARGET"], "--signature-type", "cloudevent", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "functions_framework", *words],
            cwd=source, env={**variables, "PORT": str(port)}, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        eventually(
            lambda: is_open(f"http://127.0.0.1:{port}"), "the old instance answers", hint=log.read_text
        )
        yield f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def endless_run(project: Project, name: str) -> str:
    """A run that ends only when it is cancelled, once it runs."""
    project.upload(f"requests/{name}.json", request(project.id, f"--wait-for=gs://{project.id}-data/never"))

    def runs() -> str | None:
        status = project.status(f"requests/{name}.json")
        return str(status["run_id"]) if status and status["state"] == "running" else None

    return project.eventually(runs, f"{name} runs")


def cancel(project: Project, run_id: str) -> None:
    project.publish("trainmaster-requests", json.dumps({"cancel": {"run": run_id}}).encode())
    project.eventually(lambda: project.record(run_id)["state"] == "cancelled", f"{run_id} is cancelled")


def test_an_upgrade_and_a_rollback_under_traffic_lose_no_event_and_double_no_job(tmp_path: Path) -> None:
    previous = marked(previous_code(tmp_path / "previous"), "previous")
    current = marked(current_code(tmp_path / "current"), "current")
    link, old_log = tmp_path / "functions", tmp_path / "old.log"
    point(link, current)
    arguments = ("--functions", str(link), "--tick-s", "1", "--retry-min-s", "0.1", "--retry-max-s", "1")
    with running_project(tmp_path / "state", *arguments, project="e2e-upgrade") as project:
        deployed, traffic = StackFunctions(project=project, link=link), Traffic(project)
        for name in BUSY:
            deployed.switch(name, previous)
        with traffic.flowing():
            traffic.flow_on(2)
            of_previous = endless_run(project, "of-previous")
            for number, name in enumerate(BUSY):  # half of them are new for a while
                deployed.switch(name, current)
                traffic.flow_on(3 if number == len(BUSY) // 2 else 0)
            with old_instance(project, "on-request-uploaded", previous, old_log) as traffic.also_to:
                traffic.flow_on(3)
                cancel(project, of_previous)
            of_current = endless_run(project, "of-current")
            for name in reversed(BUSY):
                deployed.switch(name, previous)
            traffic.flow_on(2)
            cancel(project, of_current)
        runs = project.eventually(traffic.runs, "no event is lost")
        assert len(runs) == len(traffic.statuses)

        def succeeded() -> bool:
            states = {project.record(run_id)["state"] for run_id in runs}
            assert states <= {"reserved", "waiting", "submitted", "running", "succeeded"}, states
            return states == {"succeeded"}

        project.eventually(succeeded, "every run succeeds")
        assert set(project.records()) == {*runs, of_previous, of_current}
        jobs = [project.record(run_id)["job"]["name"] for run_id in project.records()]
        assert sorted(jobs) == sorted(project.all_jobs())
        for name in BUSY[:4]:
            log = (project.state / "logs" / f"{name}.log").read_text()
            assert all(f"handled by {version}" in log for version in ("previous", "current")), name
        assert old_log.read_text().count("handled by previous") >= 2
