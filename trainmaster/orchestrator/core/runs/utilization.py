"""What the replicas of a run's job used of the machines that they asked for, as the record keeps it."""

from dataclasses import dataclass
from datetime import datetime

REPLICAS_MAX = 64
"""Replicas on record; those beyond are only counted."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """A fraction of the machine, from 0 to 1: its mean over the job, and its highest value of up to 60 equal periods."""

    mean: float
    max: float


@dataclass(frozen=True, kw_only=True)
class ReplicaUse:
    """One replica. Of several GPUs the mean is of all, and the highest value is of one. None: not reported."""

    replica: str
    cpu: Use | None = None
    memory: Use | None = None
    gpu: Use | None = None
    gpu_memory: Use | None = None
    received_bytes: int | None = None
    sent_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Utilization:
    """Of the run's last job, by replica, the chief first. `left_out`: how many replicas the record has no room for."""

    replicas: tuple[ReplicaUse, ...]
    left_out: int | None = None


@dataclass(frozen=True, kw_only=True)
class WasteFound:
    """When a tick first found that the run's job wastes its machines by the policy's `waste`, and how."""

    at: datetime
    reason: str
