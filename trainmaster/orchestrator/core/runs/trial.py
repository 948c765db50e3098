"""The trials of a tuning: as the service describes them, and as the record keeps them."""

from collections.abc import Mapping
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


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One measurement of a trial: its metrics by their ids, at a step of the training."""

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
class RecordedTrial:
    """What the record keeps of a trial: its measurements are counted, and only the one that counts is kept."""

    id: str
    state: TrialState
    parameters: Mapping[str, object] = field(default_factory=dict)
    measurement: Measured | None = None
    measurements: int = 0
    start_time: datetime | None = None
    end_time: datetime | None = None
    infeasible_reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class BestTrial:
    """The trial whose metric is best, by the goal of the request."""

    id: str
    metric: str
    goal: str
    value: float
    parameters: Mapping[str, object]
    model_uri: str | None = None
