"""A running stack as its users see it: official clients, the state folder and its processes."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psutil
from google.api_core.exceptions import NotFound
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob
from google.cloud.logging import Client as LoggingClient

from trainmaster.orchestrator.flows.completion.complete import STEPS
from trainstack.events.clients import clients_of
from trainstack.find import read_stack_env
from trainstack.process.family import members

ROOT = Path(__file__).resolve().parents[2]
TINY = Path(__file__).parent / "images" / "tiny"
START_DEADLINE_S = 120
STOP_DEADLINE_S = 60
DEADLINE_S = 120
T = TypeVar("T")
ENDED = ("succeeded", "failed", "cancelled", "expired", "rejected")


class Project:
    """One project on a running stack."""

    def __init__(self, *, state: Path, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.state = state
        self.process = process
        self.log = log
        self.env = read_stack_env((state / "stack.env").read_text())
        self.id = self.env["GOOGLE_CLOUD_PROJECT"]
        self.region = self.env["TRAINMASTER_REGION"]
        self.inbox, self.ledger, self.models = (
            self.env[f"TRAINMASTER_{role}_BUCKET"] for role in ("INBOX", "LEDGER", "MODELS")
        )

    @cached_property
    def storage(self) -> storage.Client:
        return storage.Client(
            project=self.id,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": self.env["STORAGE_EMULATOR_HOST"]},
        )

    @cached_property
    def vertex(self) -> JobServiceClient:
        return JobServiceClient(
            transport="rest",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": self.env["VERTEX_EMULATOR_HOST"]},
        )

    @cached_property
    def logging(self) -> Any:  # the library's classes carry no types
        return LoggingClient(
            project=self.id,
            credentials=AnonymousCredentials(),
            _use_grpc=False,
            client_options={"api_endpoint": self.env["LOGGING_EMULATOR_HOST"]},
        )

    def upload(self, name: str, content: bytes | str) -> int:
        """The generation of the uploaded object."""
        blob = self.storage.bucket(self.inbox).blob(name)
        blob.upload_from_string(content)
        return int(blob.generation)

    def provide_data(self, folder: Path) -> str:
        """The URI at which jobs find the folder's files, uploaded to the data bucket."""
        bucket = self.storage.bucket(self.env["TRAINMASTER_DATA_BUCKET"])
        for path in (path for path in folder.rglob("*") if path.is_file()):
            bucket.blob(f"{folder.name}/{path.relative_to(folder)}").upload_from_filename(path)
        return f"gs://{bucket.name}/{folder.name}"

    def drop(self, name: str, content: bytes | str) -> None:
        """A file that any program writes into the bucket's folder."""
        path = self.folder(self.inbox) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def folder(self, bucket: str) -> Path:
        return self.state / "storage" / "buckets" / bucket

    def publish(self, topic: str, data: bytes, **attributes: str) -> str:
        """The message's id."""
        with clients_of(self.env["PUBSUB_EMULATOR_HOST"]) as clients:
            future = clients.publisher.publish(f"projects/{self.id}/topics/{topic}", data, **attributes)
            return str(future.result(timeout=DEADLINE_S))

    def document(self, bucket: str, name: str) -> dict[str, Any] | None:
        """The JSON object of that name; None if it does not exist."""
        try:
            content = self.storage.bucket(bucket).blob(name).download_as_bytes()
        except NotFound:
            return None
        found: dict[str, Any] = json.loads(content)
        return found

    def records(self) -> dict[str, dict[str, Any]]:
        """Every run record by run_id, read as files, because many downloads at each look would cost more than the runs."""
        paths = (self.folder(self.ledger) / "runs").glob("*.json")
        return {record["run_id"]: record for record in map(json.loads, map(Path.read_bytes, paths))}

    def jobs(self, run_id: str, region: str = "") -> list[CustomJob]:
        parent = f"projects/{self.id}/locations/{region or self.region}"
        request = {"parent": parent, "filter": f"labels.trainmaster_run_id={run_id}"}
        return list(self.vertex.list_custom_jobs(request=request))

    def tuning_jobs(self, run_id: str) -> list[HyperparameterTuningJob]:
        parent = f"projects/{self.id}/locations/{self.region}"
        request = {"parent": parent, "filter": f"labels.trainmaster_run_id={run_id}"}
        found = self.vertex.list_hyperparameter_tuning_jobs(request=request)
        # A list leaves the trials out.
        return [self.vertex.get_hyperparameter_tuning_job(name=each.name) for each in found]

    def all_jobs(self) -> list[str]:
        parent = f"projects/{self.id}/locations/{self.region}"
        plain = [job.name for job in self.vertex.list_custom_jobs(parent=parent)]
        return plain + [job.name for job in self.vertex.list_hyperparameter_tuning_jobs(parent=parent)]

    def status(self, name: str) -> dict[str, Any] | None:
        """The status object of a dropped name."""
        return self.document(self.ledger, f"status/{name}.json")

    def final_status(
        self, name: str, generation: int | None = None, *, deadline_s: float = DEADLINE_S
    ) -> dict[str, Any]:
        """The status of a drop once its run has ended."""

        def ended() -> dict[str, Any] | None:
            status = self.status(name)
            wanted = status and (generation is None or status["generation"] == generation)
            return status if status and wanted and status["state"] in ENDED else None

        return self.eventually(ended, f"an end of {name}; now {self.status(name)}", deadline_s=deadline_s)

    def record(self, run_id: str) -> dict[str, Any]:
        found = self.document(self.ledger, f"runs/{run_id}.json")
        assert found is not None, run_id
        return found

    def finished_record(self, run_id: str) -> dict[str, Any]:
        """The record once every step after the run's end is on it, for tests that expect it not to change again."""

        def finished() -> dict[str, Any] | None:
            record = self.record(run_id)
            return record if set(STEPS) <= set(record.get("completion", {}).get("steps_done", ())) else None

        return self.eventually(finished, f"every step after the end of {run_id}; now {self.record(run_id)}")

    def requests_to_functions(self, event_id: str) -> list[int]:
        """The status of every delivery of an event, from the platform's request log, oldest first."""
        name = f"projects/{self.id}/logs/run.googleapis.com%2Frequests"
        entries = self.logging.list_entries(filter_=f'logName="{name}" AND labels."ce-id"="{event_id}"')
        return [entry.http_request["status"] for entry in entries]

    def eventually(self, look: Callable[[], T | None], what: str, *, deadline_s: float = DEADLINE_S) -> T:
        return eventually(look, what, deadline_s=deadline_s, hint=self.tail)

    def tail(self) -> str:
        logs = [self.log, *sorted((self.state / "logs").glob("*.log"))]
        return "\n".join(f"-- {log.name}\n{log.read_text(errors='replace')[-3000:]}" for log in logs)

    def function_processes(self, function: str) -> list[psutil.Process]:
        """The processes of one function, gunicorn's master and its worker; they start with the first connection."""
        socket.create_connection(("127.0.0.1", urlsplit(self.function_url(function)).port)).close()

        def running() -> list[psutil.Process] | None:
            found = [process for process in psutil.process_iter() if self._is_of(process, function)]
            return found if len(found) > 1 else None

        # By the time, for numbers begin again; psutil knows it of a process that has ended since.
        found = self.eventually(running, f"the processes of {function}")
        return sorted(found, key=lambda process: (process.create_time(), process.pid))

    def function_url(self, function: str) -> str:
        """As the stack's table shows it."""
        return str(re.findall(rf"{function}\W+(http://[\d.:]+)", self.log.read_text())[-1])

    def token(self) -> str:
        """The token that marks every process of this stack."""
        watcher = json.loads((self.state / "lock").read_text())["watcher_pid"]
        return str(psutil.Process(watcher).cmdline()[-2])

    def _is_of(self, process: psutil.Process, function: str) -> bool:
        try:
            environment = process.environ()
            process.create_time()
        except psutil.Error:
            return False
        here = environment.get("CURL_HOME", "").startswith(f"{self.state.resolve()}/")
        return bool(here and environment.get("K_SERVICE") == function)

    def close(self) -> None:
        for name in ("storage", "logging"):
            if name in self.__dict__:
                getattr(self, name).close()
        if "vertex" in self.__dict__:
            self.vertex.transport.close()


def eventually(
    look: Callable[[], T | None], what: str, *, deadline_s: float = DEADLINE_S, hint: Callable[[], str] = str
) -> T:
    """The first truthy result of `look`, which is polled less often over time."""
    began = time.monotonic()
    while not (found := look()):
        waited_s = time.monotonic() - began
        assert waited_s < deadline_s, f"not within {deadline_s} s: {what}\n{hint()}"
        time.sleep(min(max(0.05, waited_s / 20), 0.5))
    return found


@contextmanager
def running_project(
    state: Path, *arguments: str, project: str, environment: Mapping[str, str] | None = None
) -> Iterator[Project]:
    """A project on a separate stack, started as a user starts it, and always stopped at the end."""
    log = state.with_name(f"{state.name}.out")
    (state / "stack.env").unlink(
        missing_ok=True
    )  # a killed stack leaves its own file, which does not describe this one
    image = f"{image_uri(project)}={TINY}"
    command = [sys.executable, "-m", "trainmaster", "up", "--state", str(state), "--project", project,
               "--image", image, *_without_console(arguments), *arguments]  # fmt: skip
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdout=output, stderr=output,
            stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    running: Project | None = None
    try:
        eventually(
            lambda: (state / "stack.env").exists() or process.poll() is not None,
            "the stack is ready",
            deadline_s=START_DEADLINE_S,
            hint=log.read_text,
        )
        assert process.poll() is None, log.read_text()
        running = Project(state=state, process=process, log=log)
        yield running
    finally:
        if running is not None:
            running.close()
        stop(process)


def _without_console(arguments: Sequence[str]) -> Sequence[str]:
    """Few tests need the console, which takes a second to start."""
    return () if "--console" in arguments else ("--console", "off")


def stop(process: "subprocess.Popen[bytes]") -> int:
    """The exit status after SIGTERM."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        return process.wait(STOP_DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise


def image_uri(project: str) -> str:
    return f"us-central1-docker.pkg.dev/{project}/trainmaster/tiny"


def request(project: str, *args: str, model_name: str = "line", **more: object) -> str:
    """A request file for the tiny trainer, as JSON, which is also YAML."""
    document: dict[str, object] = {
        "model_name": model_name,
        "image": f"{image_uri(project)}:1",
        "args": list(args),
        "cluster": {"chief": {"machine": "n1-standard-4"}},
        **more,
    }
    return json.dumps(document)


def nothing_left(token: str) -> bool:
    """Whether no process carries the token any more."""
    return not members(token)
