"""The progress of each replica of a job, from its log lines.

The events are those of docs/reference/replica.md, "What a trainer leaves behind".
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

REPLICAS_MAX = 1000
MOST = 2**53
"""Larger counts are not exact in JSON."""


@dataclass(frozen=True, kw_only=True)
class ReplicaProgress:
    """One replica; steps are counted over all epochs, from 0 before the first."""

    replica: str
    steps_done: int = 0
    steps_total: int | None = None
    epoch: int = 0
    epochs: int | None = None
    loss: float | None = None
    accuracy: float | None = None
    examples_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """The replicas that have logged so far, by name, and the facts about the whole training."""

    replicas: Mapping[str, ReplicaProgress] = field(default_factory=dict)
    weights: str | None = None
    strategy: str | None = None

    @property
    def epoch(self) -> str:
        """The epoch that the furthest replica is in, for example `epoch 3/10`; empty until one has logged it."""
        furthest = max(self.replicas.values(), key=lambda replica: replica.steps_done, default=None)
        if furthest is None or not furthest.epochs:
            return ""
        return f"epoch {max(furthest.epoch, 1)}/{furthest.epochs}"

    def after(self, payload: Mapping[str, Any]) -> "TrainingProgress":
        """The progress after `payload`, the jsonPayload of one log entry.

        Entries may arrive twice and in any order: a replica's progress never decreases.
        """
        name = str(payload.get("replica", "?"))
        if name not in self.replicas and len(self.replicas) >= REPLICAS_MAX:
            return self
        known = self.replicas.get(name, ReplicaProgress(replica=name))
        match payload.get("event"):
            case "train_started":
                replicas = {**self.replicas, name: _progress_at_start(known, payload)}
                return replace(
                    self,
                    replicas=replicas,
                    weights=payload.get("weights"),
                    strategy=payload.get("strategy"),
                )
            case "train_progress" if is_progress(payload):
                return replace(self, replicas={**self.replicas, name: _progress_after_step(known, payload)})
            case _:
                return self


def _progress_at_start(known: ReplicaProgress, payload: Mapping[str, Any]) -> ReplicaProgress:
    epochs, steps = _whole(payload.get("epochs")), _whole(payload.get("steps_per_epoch"))
    total = epochs * steps if epochs and steps else None
    return replace(known, epochs=epochs, steps_total=total)


def _progress_after_step(known: ReplicaProgress, payload: Mapping[str, Any]) -> ReplicaProgress:
    counts = _counts(payload)
    if counts is None:
        return known
    steps, epoch, epochs, step = counts
    done = (epoch - 1) * steps + step
    if done < known.steps_done:
        return known
    return replace(
        known,
        steps_done=done,
        steps_total=epochs * steps,
        epoch=epoch,
        epochs=epochs,
        loss=_number(payload.get("loss")),
        accuracy=_number(payload.get("accuracy")),
        examples_per_s=_number(payload.get("examples_per_s")),
    )


def _whole(value: object) -> int | None:
    number = _number(value)  # the service returns every number of a payload as a float
    return int(number) if number is not None and 0 <= number < MOST else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _counts(payload: Mapping[str, Any]) -> tuple[int, int, int, int] | None:
    """Steps of an epoch, the epoch, all epochs and the step; None where one is missing, as any program may write it."""
    steps, epoch, epochs, step = (
        _whole(payload.get(key)) for key in ("steps_per_epoch", "epoch", "epochs", "step")
    )
    if steps is None or epoch is None or epochs is None or step is None:
        return None
    return steps, epoch, epochs, step


def is_progress(payload: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a log entry's payload reports a step of a training, with every number that a bar needs."""
    if not isinstance(payload, Mapping) or payload.get("event") != "train_progress":
        return False
    return _counts(payload) is not None
