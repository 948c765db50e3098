"""From SIGKILL of a worker to the first resumed step, against the same job's own cold start to its first step.

python bench/recovery.py [--rounds 3] [--limit 45]

Each round is one job of the local JobService: the trainer's small model on two replicas, all of them started
again when one is lost. Its worker gets SIGKILL once a checkpoint is there. Both sides end at a line of the
job's log, by the time that the JobService read it.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from google.api_core.exceptions import BadRequest  # noqa: E402
from google.auth.credentials import AnonymousCredentials  # noqa: E402  # needs the line above
from google.cloud import aiplatform_v1  # noqa: E402

from trainstack.vertex import Jobs, serve  # noqa: E402

IMAGE = "us-docker.pkg.dev/p1/trainmaster/trainer"
PARENT = "projects/p1/locations/us-central1"
GRACE_S = 5.0  # as `trainmaster up` has it
DEADLINE_S = 300.0
ARGS = ["--workload=horses_or_humans", "--image_size=32", "--batch_size=4", "--steps_per_epoch=10", "--epochs=500",
        "--weights=random"]  # fmt: skip
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Round:
    """Seconds to the chief's first step of all, and to the first after the loss."""

    cold_s: float
    recovery_s: float
    resumed_after: str


class Job:
    """One job and what it said."""

    def __init__(self, url: str, entries: list[dict[str, Any]], data_dir: Path, out: str) -> None:
        self._entries = entries
        self._client = aiplatform_v1.JobServiceClient(
            transport="rest", credentials=AnonymousCredentials(), client_options={"api_endpoint": url}
        )
        pool = {
            "machine_spec": {"machine_type": "n1-standard-4"},
            "replica_count": 1,
            "container_spec": {"image_uri": IMAGE, "args": [*ARGS, f"--data_dir={data_dir}"]},
        }
        spec = {
            "worker_pool_specs": [pool, pool],
            "scheduling": {"restart_job_on_worker_restart": True},
            "base_output_directory": {"output_uri_prefix": out},
        }
        self.submitted_at = time.time()
        job = aiplatform_v1.CustomJob({"display_name": "recovery", "job_spec": spec})
        self._name = self._client.create_custom_job(parent=PARENT, custom_job=job).name

    def events(self, name: str) -> list[tuple[float, dict[str, Any]]]:
        """The chief's lines of this event, oldest first, with their times."""
        found = []
        for entry in list(self._entries):
            labels, payload = entry["resource"]["labels"], entry.get("jsonPayload", {})
            mine = labels.get("job_id") == self._name.rpartition("/")[2]
            if mine and labels.get("task_name") == "workerpool0-0" and payload.get("event") == name:
                found.append((datetime.fromisoformat(entry["timestamp"]).timestamp(), payload))
        return found

    def until(self, look: Callable[[], T | None], what: str) -> T:
        deadline = time.monotonic() + DEADLINE_S
        while not (found := look()):
            state = self._client.get_custom_job(name=self._name).state
            if state.name not in {"JOB_STATE_PENDING", "JOB_STATE_RUNNING"} or time.monotonic() > deadline:
                last = [entry.get("textPayload") or entry.get("jsonPayload") for entry in self._entries[-20:]]
                raise RuntimeError(f"{what} did not come; the job is {state.name}. Its last lines: {last}")
            time.sleep(0.05)
        return found

    def kill_worker(self) -> float:
        """When it was killed."""
        for process in psutil.process_iter():
            try:
                variables = process.environ()
            except psutil.Error:
                continue
            if variables.get("CLOUD_ML_JOB_ID") != self._name.rpartition("/")[2]:
                continue
            is_worker = json.loads(variables["CLUSTER_SPEC"])["task"]["type"] == "workerpool1"
            if is_worker and os.getsid(process.pid) == process.pid:
                process.kill()
                return time.time()
        raise RuntimeError("the worker does not run")

    def cancel(self) -> None:
        with contextlib.suppress(BadRequest):  # it has ended already
            self._client.cancel_custom_job(name=self._name)
        while not self._client.get_custom_job(name=self._name).end_time:
            time.sleep(0.05)
        self._client.transport.close()


def measured(job: Job) -> Round:
    first, _ = job.until(lambda: job.events("train_progress"), "the first step")[0]
    job.until(lambda: job.events("epoch_finished")[1:], "a checkpoint")
    killed_at = job.kill_worker()

    def resumed() -> tuple[float, dict[str, Any]] | None:
        lives = [at for at, _ in job.events("train_started") if at > killed_at]
        steps = [(at, step) for at, step in job.events("train_progress") if lives and at > lives[-1]]
        return steps[0] if steps else None

    at, step = job.until(resumed, "the first resumed step")
    if (step["epoch"], step["step"]) <= (1, 1):
        raise RuntimeError(f"training started over, at epoch {step['epoch']}, step {step['step']}")
    return Round(
        cold_s=first - job.submitted_at,
        recovery_s=at - killed_at,
        resumed_after=f"epoch {step['epoch']}, step {step['step']}",
    )


def run(rounds: int, limit_s: float) -> bool:
    """Print the table; whether the limit is kept."""
    found: list[Round] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [sys.executable, "examples/demo_dataset.py", "--data_dir", str(folder / "data"),
                   "--dataset=horses_or_humans", "--examples=24"]  # fmt: skip
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (folder / "buckets" / "models").mkdir(parents=True)
        entries: list[dict[str, Any]] = []
        jobs = Jobs(
            dir=folder / "jobs", buckets_dir=folder / "buckets", images=lambda: {IMAGE: ROOT}, write_log=entries.extend,
            project="p1", grace_s=GRACE_S,
        )  # fmt: skip
        with serve(jobs) as url:
            for number in range(rounds):
                job = Job(url, entries, folder / "data", f"gs://models/{number}")
                try:
                    found.append(measured(job))
                finally:
                    job.cancel()
    return report(found, limit_s)


def report(found: list[Round], limit_s: float) -> bool:
    print(f"{'':<10}{'cold start':>12}{'recovery':>12}{'ratio':>8}   resumed at")
    for number, one in enumerate(found, 1):
        ratio = one.recovery_s / one.cold_s
        print(
            f"{f'job {number}':<10}{one.cold_s:>10.1f} s{one.recovery_s:>10.1f} s{ratio:>8.2f}   {one.resumed_after}"
        )
    cold = statistics.median(one.cold_s for one in found)
    recovery = statistics.median(one.recovery_s for one in found)
    print(f"{'median':<10}{cold:>10.1f} s{recovery:>10.1f} s{recovery / cold:>8.2f}")
    slowest = max(one.recovery_s for one in found)
    kept = slowest <= limit_s
    print(f"slowest recovery {slowest:.1f} s, limit {limit_s:.0f} s: {'kept' if kept else 'NOT kept'}")
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--limit", type=float, default=45.0, help="seconds that a recovery may take (%(default)s)"
    )
    given = parser.parse_args()
    sys.exit(0 if run(given.rounds, given.limit) else 1)
