"""Records in the main states: examples of the schema, and what the flows make of a faulty request."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.client.served import run_record
from tests.contract.world import World
from trainmaster.client.find import Run
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.runs.record import RunRecord

NOW = datetime(2026, 3, 1, 12, 30, 0, tzinfo=UTC)
RUNNING_HISTORY = 3
FAULTY = b"""model_name: cassava
image: us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest
priority: high
cluster:
  chief: {machine: n1-standard-4}
"""


def run_of(document: dict[str, Any]) -> Run:
    return Run(document=document, record=decoded(RunRecord, document))


def waiting() -> Run:
    document = run_record("next_candidate")
    document["admission"]["waiting"] |= {"not_before": "2026-03-01T12:32:05Z", "attempts": 3}
    document["request"]["document"]["scheduling"] = {"retries": 1, "retry_on": ["out_of_memory"]}
    return run_of(document)


def _still_running(example: str) -> dict[str, Any]:
    document = run_record(example, state="running", updated_at="2026-03-01T12:20:00Z")
    for key in ("model", "completion"):
        del document[key]
    document["history"] = document["history"][:RUNNING_HISTORY]
    document["job"] |= {"state": "JOB_STATE_RUNNING"}
    del document["job"]["end_time"]
    return document


def running() -> Run:
    document = _still_running("succeeded")
    document["progress"] = {"metrics": {"accuracy": 0.61, "loss": 1.25}}
    document["request"]["estimate"] = run_record("next_candidate")["request"]["estimate"]
    return run_of(document)


def tuning() -> Run:
    document = _still_running("tuned")
    best = document.pop("tuning")["best_trial"]
    document["progress"] = {"trials": {"ACTIVE": 2, "SUCCEEDED": 1, "INFEASIBLE": 1}, "best_trial": best}
    return run_of(document)


def rejected() -> Run:
    world = World()
    run_id = world.launch(world.drop(FAULTY)).run_id
    return _encoded(world.record(run_id or ""))


def _encoded(record: RunRecord) -> Run:
    document: Any = encoded(record)
    return Run(document=document, record=record)


RUNS: Mapping[str, Callable[[], Run]] = {
    "waiting": waiting,
    "running": running,
    "tuning": tuning,
    "rejected": rejected,
    "failed": lambda: run_of(run_record("failed")),
    "succeeded": lambda: run_of(run_record("succeeded")),
    "tuned": lambda: run_of(run_record("tuned")),
}
