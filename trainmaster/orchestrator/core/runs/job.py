"""A Vertex AI job: as the service describes it, and what the record keeps of it and of a tuning job's trials."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class TrialState(StrEnum):
    """Vertex AI's Trial.State.

    Source: google.cloud.aiplatform.v1.Trial.State
    """

    UNSPECIFIED = "STATE_UNSPECIFIED"
    REQUESTED = "REQUESTED"
    ACTIVE = "ACTIVE"
    STOPPING = "STOPPING"
    SUCCEEDED = "SUCCEEDED"
    INFEASIBLE = "INFEASIBLE"

    @property
    def ended(self) -> bool:
        return self in {TrialState.SUCCEEDED, TrialState.INFEASIBLE}


OVERRAN = "the job ran longer than its timeout"
"""Begins the reason of a run whose timeout cancelled its job: Vertex AI has no state for that."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One measurement of a trial: metric values by id, at a training step."""

    metrics: Mapping[str, float]
    step: int | None = None
    elapsed_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One trial as the service describes it. Parameter values are numbers, or strings for categorical ones."""

    id: str
    state: TrialState
    parameters: Mapping[str, object] = field(default_factory=dict)
    final: Measured | None = None
    measurements: tuple[Measured, ...] = ()
    start_time: datetime | None = None
    end_time: datetime | None = None
    infeasible_reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job or run failed, in the service's words or ours."""

    message: str
    code: int = 0
    """HTTP status of a refused submission, google.rpc.Code of a failed job, or 0 if the message is ours."""
    replica: str | None = None
    """The first replica that failed, for example `workerpool1-0`."""
    last_lines: tuple[str, ...] | None = None
    """The last error lines that this replica wrote, oldest first."""


class RetryOn(StrEnum):
    """After which losses of a job that had started its run gets another one."""

    INFRASTRUCTURE = "infrastructure"
    PREEMPTION = "preemption"
    OUT_OF_MEMORY = "out_of_memory"


@dataclass(frozen=True, kw_only=True)
class JobLoss:
    """How a job that had started was lost without a fault of its program or its request.

    `reason` is in the service's words. `pool` is the number of the worker pool that ran out of memory.
    """

    why: RetryOn
    reason: str
    pool: int = 0


@dataclass(frozen=True, kw_only=True)
class RecordedTrial:
    """What the record keeps of a trial: the number of its measurements, and the one that counts."""

    id: str
    state: TrialState
    parameters: Mapping[str, object] = field(default_factory=dict)
    measurement: Measured | None = None
    measurements: int = 0
    start_time: datetime | None = None
    end_time: datetime | None = None
    infeasible_reason: str | None = None
    failure: Failure | None = None
    """What the job's log reports about the first replica that failed; only for the first trials that failed."""


@dataclass(frozen=True, kw_only=True)
class BestTrial:
    """The trial with the best metric, by the request's goal."""

    id: str
    metric: str
    goal: str
    value: float
    parameters: Mapping[str, object]
    model_uri: str | None = None


def trials_by_state(trials: Sequence[Trial] | Sequence[RecordedTrial]) -> Mapping[str, int]:
    """How many trials are in each state, by Vertex AI's name; states without a trial are left out."""
    counts = Counter(trial.state for trial in trials)
    return {state.value: counts[state] for state in TrialState if counts[state]}


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a running job has reached, as the reconciler last saw it."""

    trials: Mapping[str, int] | None = None
    """How many trials of a tuning job are in each state."""
    best_trial: BestTrial | None = None
    """The best trial that has succeeded so far."""
    metrics: Mapping[str, float] | None = None
    """For a custom job: the latest values in the `metrics.json` of its model directory."""
    progress_percentage: int | None = None
    """This and the next two are not stored: clients read them from the log. Names and meaning are those of
    `trainerStatus` in Kubeflow Trainer: https://github.com/kubeflow/trainer/tree/master/docs/proposals/2779-trainjob-progress
    (read 2026-11-26)."""
    estimated_remaining_seconds: int | None = None
    last_updated_time: datetime | None = None
    """When the percentage and the seconds were reported."""


class JobState(StrEnum):
    """Vertex AI's JobState, without its prefix.

    Source: google.cloud.aiplatform.v1.JobState
    """

    UNSPECIFIED = "JOB_STATE_UNSPECIFIED"
    QUEUED = "JOB_STATE_QUEUED"
    PENDING = "JOB_STATE_PENDING"
    RUNNING = "JOB_STATE_RUNNING"
    SUCCEEDED = "JOB_STATE_SUCCEEDED"
    FAILED = "JOB_STATE_FAILED"
    CANCELLING = "JOB_STATE_CANCELLING"
    CANCELLED = "JOB_STATE_CANCELLED"
    PAUSED = "JOB_STATE_PAUSED"
    EXPIRED = "JOB_STATE_EXPIRED"
    UPDATING = "JOB_STATE_UPDATING"
    PARTIALLY_SUCCEEDED = "JOB_STATE_PARTIALLY_SUCCEEDED"


@dataclass(frozen=True, kw_only=True)
class RecordedJob:
    """What the record keeps of the job."""

    name: str
    state: JobState
    create_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Queued:
    """A job that the service has not started; `next_candidate`, if there is one, follows if it has not by `start_by`."""

    since: datetime
    region: str
    next_candidate: str | None = None
    """What differs: the region, or the machines."""
    start_by: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Job(RecordedJob):
    """A Vertex AI job as the service describes it."""

    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    output_uri: str = ""
    error: Failure | None = None
    trials: tuple[Trial, ...] = ()

    @property
    def has_started(self) -> bool:
        """Whether a replica has run: the job's, or of a tuning that of any trial."""
        return self.start_time is not None or any(trial.start_time is not None for trial in self.trials)

    @property
    def is_queued(self) -> bool:
        """Whether the service has yet to start it."""
        return self.state in (JobState.QUEUED, JobState.PENDING) and not self.has_started
