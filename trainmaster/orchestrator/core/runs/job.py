"""A Vertex AI job: as its service describes it, and what the record keeps of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from trainmaster.orchestrator.core.runs.trial import Trial


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
class Failure:
    """Why a job or a run failed, in the service's words or ours."""

    message: str
    code: int = 0
    """HTTP status of a refused submission, google.rpc.Code of a failed job, 0 where the words are ours."""
    replica: str | None = None
    """The first replica that failed, for example `workerpool1-0`."""
    last_lines: tuple[str, ...] | None = None
    """The last lines that this replica wrote, oldest first."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A Vertex AI job as its service describes it."""

    name: str
    state: JobState
    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    output_uri: str = ""
    create_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    error: Failure | None = None
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordedJob:
    """What the record keeps of the job."""

    name: str
    state: JobState
    create_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
