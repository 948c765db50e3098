"""A dropped request followed from its record to its job and logs, whatever kind of job it became."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from trainmaster.cli.study.board import Board
from trainmaster.cli.study.read import study_of
from trainmaster.client.clients import job_client, log_reader, storage_client
from trainmaster.client.context import Context
from trainmaster.client.logs.progress import TrainingProgress
from trainmaster.client.logs.read import JobLogs
from trainmaster.client.records import latest_run_of
from trainmaster.client.times import moment_of
from trainmaster.orchestrator.core.runs.states import ENDS


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """A request in the inbox."""

    object_name: str
    generation: int
    at: datetime
    uri: str


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """What is known of a request at one moment; absent parts have not happened yet."""

    dropped_uri: str
    dropped_at: datetime
    record: Mapping[str, Any] = field(default_factory=dict)  # schemas/run_record.v2.schema.json; empty: none
    job_state: str | None = None
    job_started_at: datetime | None = None
    job_ended_at: datetime | None = None
    exported_at: datetime | None = None
    completed_line_at: datetime | None = None
    training: TrainingProgress = field(default_factory=TrainingProgress)  # of a job without trials
    board: Board | None = None  # of a tuning
    parallel_trials: int = 1

    @property
    def job_name(self) -> str:
        """The job's resource name, empty before there is one."""
        return str((self.record.get("job") or {}).get("name") or "")

    @property
    def ended(self) -> bool:
        return self.record.get("state") in ENDS


class Watch:
    """Every call of `look` queries the services."""

    def __init__(self, target: Context, dropped: Dropped) -> None:
        self._target, self._dropped = target, dropped
        self._storage = storage_client(target)
        self._logs = JobLogs(log_reader(project=target.project, logging_host=target.logging_host), dropped.at)
        self._jobs = job_client(region=target.region, vertex_host=target.vertex_host)
        self._training: dict[str, TrainingProgress] = {}  # by trial id, empty for a job without trials
        self._exported_at: datetime | None = None
        self._completed_line_at: datetime | None = None

    def look(self) -> Sighting:
        """The current state of the request."""
        dropped = self._dropped
        record = latest_run_of(self._storage, self._target, dropped.object_name, dropped.generation)
        seen = Sighting(dropped_uri=dropped.uri, dropped_at=dropped.at, record=record)
        if not seen.job_name:
            return seen
        self._read_log(seen.job_name.rpartition("/")[2])
        if "/hyperparameterTuningJobs/" in seen.job_name:
            job: Any = self._jobs.get_hyperparameter_tuning_job(name=seen.job_name)
            board = Board(study=study_of(job), at=datetime.now(UTC), progress=epochs(self._training))
            seen = replace(seen, board=board, parallel_trials=job.parallel_trial_count)
        else:
            job = self._jobs.get_custom_job(name=seen.job_name)
            seen = replace(seen, training=self._training.get("", TrainingProgress()))
        return replace(
            seen,
            job_state=job.state.name,
            job_started_at=moment_of(job.start_time),
            job_ended_at=moment_of(job.end_time),
            exported_at=self._exported_at,
            completed_line_at=self._completed_line_at,
        )

    def _read_log(self, job_id: str) -> None:
        for line in self._logs.new([job_id]):
            if line.ends_job:
                self._completed_line_at = line.at
            elif isinstance(line.payload, dict):
                trial_id = line.trial_id or ""
                known = self._training.get(trial_id, TrainingProgress())
                self._training[trial_id] = known.after(line.payload)
                if line.payload.get("event") == "model_exported":
                    self._exported_at = line.at


def epochs(training: Mapping[str, TrainingProgress]) -> dict[str, str]:
    """The epoch of the furthest replica by key, for those that have logged one."""
    return {key: said for key, progress in training.items() if (said := progress.epoch)}
