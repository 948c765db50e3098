"""The progress of each replica of a job, from what the lines of its log report."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Self

from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.report import NAME_MAX_CHARS, STARTED, Report

REPLICAS_MAX = 1000
LONGEST_S = 10 * 365 * 86_400


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the training of a replica is, as its lines say in turn."""

    epoch: float = 0
    """That it is in, from 1, or with a fraction how many are done."""
    epochs: int | None = None
    steps: int | None = None
    """Of an epoch."""
    bar: float | None = None
    """As in `Report`."""

    def place_after(self, report: Report) -> Self:
        """The place after a report: a line of Keras has no epoch, and is in the one that an earlier line began.

        A bar and a part of an epoch say how many epochs there are; with whole ones, the bar may be that of an epoch.
        """
        epochs, bar = report.epochs or self.epochs, report.bar or self.bar
        if bar and report.epoch and report.epoch % 1:
            epochs = max(round(report.epoch / bar), 1)
        return replace(
            self,
            epoch=self.epoch if report.epoch is None else report.epoch,
            epochs=epochs,
            steps=report.steps or self.steps,
            bar=bar,
        )

    def x_of(self, report: Report) -> tuple[str, float] | None:
        """`step`, counted over all epochs, or `epoch`, and which one; None for a report without a place."""
        if report.step is not None:
            return "step", max(self.epoch - 1, 0) * (self.steps or 0) + report.step
        return None if report.epoch is None else ("epoch", report.epoch)


@dataclass(frozen=True, kw_only=True)
class ReplicaProgress(Place):
    """One replica, as far as it got."""

    replica: str
    """The program's own name of it, for example `chief-0`, or the service's."""
    steps_done: float = 0
    epochs_done: float = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    """The last value of each."""
    first: tuple[datetime, float] | None = None
    """When it first reported how much is done, and the share."""
    last: tuple[datetime, float] | None = None

    @property
    def steps_total(self) -> int | None:
        return self.epochs * self.steps if self.epochs and self.steps else None

    @property
    def share(self) -> float | None:
        """How much of the training is done, from 0 to 1; None if it does not say."""
        done, total = (
            (self.steps_done, self.steps_total) if self.steps_total else (self.epochs_done, self.epochs)
        )
        return min(done / total, 1.0) if total else None

    @property
    def end(self) -> datetime | None:
        """When it will be done at its pace; None until two reports show one."""
        if self.first is None or self.last is None or self.last[1] <= self.first[1]:
            return None
        (began, before), (at, share) = self.first, self.last
        left_s = (at - began).total_seconds() * (1 - share) / (share - before)
        return at + timedelta(seconds=min(left_s, LONGEST_S))

    def after(self, report: Report, at: datetime) -> "ReplicaProgress":
        """The progress after a report, which may come twice and in any order: it never decreases."""
        known = self.place_after(report)
        x = known.x_of(report)
        if x is None:
            return replace(known, metrics={**self.metrics, **report.metrics})
        epochs = known.epoch if report.step is None else max(known.epoch - 1, 0)
        steps = x[1] if report.step is not None else epochs * (known.steps or 0)
        if steps < self.steps_done or epochs < self.epochs_done:
            return known
        known = replace(
            known, steps_done=steps, epochs_done=epochs, metrics={**self.metrics, **report.metrics}
        )
        if known.share is None:
            return known
        return replace(known, first=self.first or (at, known.share), last=(at, known.share))


@dataclass(frozen=True, kw_only=True)
class TrainingProgress:
    """The replicas that have reported so far, by lane, and the facts about the whole training."""

    replicas: Mapping[str, ReplicaProgress] = field(default_factory=dict)
    weights: str | None = None
    strategy: str | None = None

    @property
    def furthest(self) -> ReplicaProgress | None:
        """The replica that is done with the most, if any has reported."""
        return max(self.replicas.values(), key=lambda replica: replica.share or 0, default=None)

    def after(self, line: LogLine) -> "TrainingProgress":
        """The progress after a line of the log."""
        known = self.replicas.get(line.lane)
        if not line.reports or (known is None and len(self.replicas) >= REPLICAS_MAX):
            return self
        payload = line.payload if isinstance(line.payload, Mapping) else {}
        called = payload.get("replica")
        named = called[:NAME_MAX_CHARS] if isinstance(called, str) else line.replica
        progress = known or ReplicaProgress(replica=named)
        for report in line.reports:
            progress = progress.after(report, line.at)
        found = replace(self, replicas={**self.replicas, line.lane: progress})
        if payload.get("event") != STARTED:
            return found
        return replace(found, weights=payload.get("weights"), strategy=payload.get("strategy"))


def place_texts(replica: ReplicaProgress) -> list[str]:
    """For example `step 5/20` and `epoch 1/2`, as far as they are known."""
    steps = [f"step {replica.steps_done:g}/{replica.steps_total or '?'}"] if replica.steps_done else []
    return [*steps, *filter(None, [epoch_text(replica)])]


def epoch_text(replica: ReplicaProgress) -> str:
    """The epoch that the replica is in, for example `epoch 3/10`; empty if it has reported none."""
    if not replica.epochs:
        return f"epoch {replica.epoch:g}" if replica.epoch else ""
    return f"epoch {max(replica.epoch, 1):g}/{replica.epochs}"
