"""A JobService on a real socket, its log kept in memory, and the official REST client."""

import contextlib
import fcntl
import functools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient
from google.cloud.aiplatform_v1.types import CustomJob

from tests.fixtures import fixture_of
from trainstack.jobs.runners.log import WriteLog
from trainstack.sandbox.probe import obstacle
from trainstack.vertex import IsolationChoice, Jobs, serve

collect_ignore = [] if shutil.which("gcloud") else ["test_gcloud.py"]

ROOT = Path(__file__).parents[3]
IMAGES = Path(__file__).parent / "images"
PROGRAM = "us-docker.pkg.dev/p1/repo/program"
PREBUILT = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest"
PARENT = "projects/p1/locations/us-central1"

END_LINES = {
    "Job completed successfully.": "JOB_STATE_SUCCEEDED",
    "Job failed.": "JOB_STATE_FAILED",
    "Job cancelled.": "JOB_STATE_CANCELLED",
}
"""The service's last line about a job, with the state that it stands for."""

Entry = dict[str, Any]
Way = Mapping[str, str]
"""Options of a stack that decide how it runs replicas."""


@dataclass(kw_only=True)
class Stack:
    """What a test holds: where the service is, what it logged, where buckets lie."""

    url: str
    buckets: Path
    entries: list[Entry]
    jobs: JobServiceClient = field(init=False)

    def __post_init__(self) -> None:
        self.jobs = JobServiceClient(
            transport="rest", credentials=AnonymousCredentials(), client_options={"api_endpoint": self.url}
        )

    def submit(self, *pools: Mapping[str, Any] | int, **spec: Any) -> CustomJob:
        """A job whose pools run the program image: `container(...)` for one replica, with `replica_count` for more."""
        labels = spec.pop("labels", {})
        job = {"display_name": spec.pop("display_name", "a job"), "labels": labels,
               "job_spec": {"worker_pool_specs": list(pools), **spec}}  # fmt: skip
        return self.jobs.create_custom_job(parent=PARENT, custom_job=CustomJob(job))

    def until(self, name: str, condition: Callable[[Any], bool]) -> Any:
        """The job or study, once the condition holds of it."""
        is_study = "hyperparameterTuningJobs" in name
        get = self.jobs.get_hyperparameter_tuning_job if is_study else self.jobs.get_custom_job
        deadline = time.monotonic() + 180
        pause_s = 0.02
        while not condition(job := get(name=name)):
            assert time.monotonic() < deadline, f"still {job.state!r} after 180 s; log: {self.texts(name)}"
            time.sleep(pause_s)
            pause_s = min(1.2 * pause_s, 0.1)  # each question takes milliseconds of the processor
        return job

    def ended(self, name: str) -> CustomJob:
        """The job in its terminal state, after its last line is in the log."""
        deadline = time.monotonic() + 180
        while not (last := [END_LINES[line] for line in self.service_lines(name) if line in END_LINES]):
            assert time.monotonic() < deadline, self.texts(name)
            time.sleep(0.01)
        job: CustomJob = self.until(name, lambda job: job.state.name == last[0])
        return job

    def logged(self, name: str, task: str | None = None) -> list[Entry]:
        job_id = name.rpartition("/")[2]
        return [
            entry
            for entry in list(self.entries)
            if entry["resource"]["labels"].get("job_id") == job_id
            and (task is None or entry["resource"]["labels"]["task_name"] == task)
        ]

    def service_lines(self, name: str) -> list[str]:
        return [entry["textPayload"] for entry in self.logged(name, "service")]

    def texts(self, name: str, task: str | None = None) -> list[str]:
        return [
            entry.get("textPayload") or entry.get("jsonPayload", {}).get("message", "")
            for entry in self.logged(name, task)
        ]

    def told(self, name: str, task: str = "workerpool0-0") -> dict[str, Any]:
        return next(
            entry["jsonPayload"]
            for entry in self.logged(name, task)
            if "environ" in entry.get("jsonPayload", {})
        )


def container(
    *words: str, replicas: int = 1, image: str = PROGRAM + ":latest", **more: Any
) -> dict[str, Any]:
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": replicas,
        "container_spec": {"image_uri": image, "args": list(words), **more},
    }


def package(
    *uris: str, module: str, args: tuple[str, ...] = (), replicas: int = 1, image: str = PREBUILT, **env: str
) -> dict[str, Any]:
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": replicas,
        "python_package_spec": {
            "executor_image_uri": image,
            "package_uris": list(uris),
            "python_module": module,
            "args": list(args),
            "env": [{"name": name, "value": value} for name, value in env.items()],
        },
    }


WAYS: list[Way] = (
    [
        {"isolation": "enforced"},
        {"isolation": "none"},
        {"isolation": "none", "links": "links"},
    ]
    if not obstacle()
    else [{"isolation": "none", "links": "links"}]
)
"""The ways in which this machine can run replicas."""


def way_of(way: Way) -> str:
    """The name of a test's variant."""
    return "-".join(way.values())


@contextlib.contextmanager
def run_stack(
    directory: Path,
    *,
    isolation: IsolationChoice = "none",
    grace_s: float = 2.0,
    images: Mapping[str, Path] | None = None,
    write_log: WriteLog | None = None,
    **more: Any,
) -> Iterator[Stack]:
    """A stack on `directory`; started again there, it takes up what the last one left."""
    entries: list[Entry] = []
    jobs = Jobs(
        dir=directory / "state",
        buckets_dir=directory / "buckets",
        images=lambda: {PROGRAM: IMAGES / "program", **(images or {})},
        write_log=write_log or entries.extend,
        project="p1",
        isolation=isolation,
        grace_s=grace_s,
        **more,
    )
    with serve(jobs) as url:
        yield Stack(url=url, buckets=directory / "buckets", entries=entries)


@contextlib.contextmanager
def stand_alone(tmp_path: Path, **fields: str) -> Iterator[tuple["subprocess.Popen[str]", Stack]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.stack.jobs.alone", str(tmp_path / "state"), str(tmp_path / "buckets"),
         f"{PROGRAM}={IMAGES / 'program'}", *(f"{name}={value}" for name, value in fields.items())],
        cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        try:
            yield (
                process,
                Stack(url=process.stdout.readline().strip(), buckets=tmp_path / "buckets", entries=[]),
            )
        finally:
            process.kill()


def processes_with(word: str) -> list[int]:
    """The running processes, in whatever namespace, that have this argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if word.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def is_held(path: Path) -> bool:
    """Whether the process that a program's `hold` belongs to still runs."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


idle = fixture_of(run_stack)
"""One stack for all the calls of a module that start no job."""


def client(kind: Any, stack: Stack) -> Any:
    """Of a service beside the jobs', over REST."""
    options = {"api_endpoint": stack.url}
    return kind(transport="rest", credentials=AnonymousCredentials(), client_options=options)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Any]:
    return functools.partial(run_stack, tmp_path)


@pytest.fixture
def stack(start: Callable[..., Any]) -> Iterator[Stack]:
    with start() as running:
        yield running
