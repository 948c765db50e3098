"""Runs with a log, on real storage and logging servers."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests

from tests.client.served import Served, run_record, served_context
from trainstack import logging

NOW = datetime.now(UTC)


class Logged:
    """A run's record and log; each run has its own job."""

    def __init__(self, served: Served, url: str) -> None:
        self.served, self.url = served, url

    def record(self, run_id: str, state: str = "running", *, job_id: str | None = None, **more: Any) -> None:
        history = [{"state": "reserved", "at": stamp(0)}, {"state": state, "at": stamp(60)}]
        name = f"projects/1/locations/us-central1/customJobs/{job_id}"
        job = {"name": name, "state": "JOB_STATE_RUNNING"} if job_id else None
        more = {"completion": {"steps_done": ["reason"]}} | more  # nothing waits for the cause of a failure
        document = run_record(run_id=run_id, state=state, history=history, **more)
        document.pop("job", None)
        if job is not None:
            document["job"] = job
        self.served.write("ledger", f"runs/{run_id}.json", document)

    def write(
        self, job_id: str, second: float, task: str = "service", *, trial: str = "", **payload: Any
    ) -> None:
        entry = {
            "logName": "projects/trainmaster-local/logs/x",
            "resource": {
                "type": "ml_job",
                "labels": {"job_id": job_id, "project_id": "trainmaster-local", "task_name": task},
            },
            "labels": {"ml.googleapis.com/trial_id": trial} if trial else {},
            "timestamp": stamp(second),
            "severity": "INFO",
            **payload,
        }
        answer = requests.post(f"{self.url}/v2/entries:write", json={"entries": [entry]}, timeout=60)
        assert answer.ok, answer.text


def point_to(served: Served, logging_url: str) -> None:
    """Let the context have this logging service."""
    variables = served.folder / ".trainmaster/stack.env"
    kept = [line for line in variables.read_text().splitlines() if "LOGGING" not in line]
    variables.write_text("\n".join([*kept, f"export LOGGING_EMULATOR_HOST={logging_url}"]))


@contextmanager
def logged_context(folder: Path, **more: Any) -> Iterator[Logged]:  # Any: options of served_context
    """A served context that has a logging service; `more` as in `served_context`."""
    with served_context(folder, **more) as served, logging.serve(folder / "logging") as url:
        point_to(served, url)
        yield Logged(served, url)


def now_s() -> float:
    """The present as `Logged.write` counts seconds. Lines that are written while something reads are not older."""
    return (datetime.now(UTC) - NOW + timedelta(minutes=5)).total_seconds()


def stamp(second: float) -> str:
    return (NOW - timedelta(minutes=5) + timedelta(seconds=second)).isoformat()


def progress(step: int) -> dict[str, Any]:
    payload = {"event": "train_progress", "replica": "chief-0", "epoch": 1, "epochs": 2, "step": step}
    payload |= {"steps_per_epoch": 20, "loss": 1.5, "message": f"epoch 1/2 step {step}/20 loss 1.5"}
    return {"jsonPayload": payload}
