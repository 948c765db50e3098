"""Progress of a training as events."""

import time
from collections.abc import Mapping
from typing import Any

from trainer.events import report_event

MIN_INTERVAL_S = 0.5
MOST_STEPS = 1000


def plain_numbers(logs: Mapping[str, Any]) -> dict[str, float]:
    """Keras' logs, tensors or not, as plain numbers."""
    return {name: float(value) for name, value in logs.items()}


class Progress:
    """When metrics are read and reported: after an epoch's first step, each MIN_INTERVAL_S seconds or so, and at its end.

    Reading needs all replicas, so they count steps instead of asking their own clocks: as many as take that long, by
    the mean of what the replicas measured the time before.
    """

    def __init__(self, *, epochs: int, steps_per_epoch: int, global_batch_size: int) -> None:
        self._epochs, self._steps_per_epoch, self._examples = epochs, steps_per_epoch, global_batch_size
        self.step_s = 0.0
        """Seconds of a step as this replica measured them; 0 before the second reading."""

    def begin(self, epoch: int, step: int) -> None:
        """An epoch, counted from 1, begins after its first `step` steps."""
        self._epoch, self._due, self._is_first = epoch, step + 1, True
        self._step = self._reported_step = step
        self._at = self._reported_at = time.monotonic()

    def is_due(self, step: int) -> bool:
        return step >= min(self._due, self._steps_per_epoch)

    def note_reading(self, step: int, mean_step_s: float) -> None:
        """The metrics were read after `step` steps, when all replicas agreed on this mean of their `step_s`."""
        if step == self._step:
            return
        now = time.monotonic()
        self.step_s = (now - self._at) / (step - self._step)
        self._step, self._at = step, now
        self._due = step + (max(1, min(MOST_STEPS, int(MIN_INTERVAL_S / mean_step_s))) if mean_step_s else 1)

    def report_step(self, step: int, metrics: Mapping[str, float]) -> None:
        """Report the metrics that were read after `step` steps, unless MIN_INTERVAL_S has not passed within an epoch.

        `loss` and `accuracy` are running means of the epoch over all replicas; `examples_per_s` counts the
        examples of all replicas since the line before.
        """
        now = time.monotonic()
        at_an_end = self._is_first or step == self._steps_per_epoch
        self._is_first = False
        if not at_an_end and now - self._reported_at < MIN_INTERVAL_S:
            return
        measured: dict[str, Any] = {name: metrics[name] for name in ("loss", "accuracy") if name in metrics}
        shown = " ".join(f"{name} {value:.4f}" for name, value in measured.items())
        examples = (step - self._reported_step) * self._examples
        speed = examples / max(now - self._reported_at, 1e-9)
        self._reported_step, self._reported_at = step, now
        report_event(
            "train_progress",
            f"epoch {self._epoch}/{self._epochs} step {step}/{self._steps_per_epoch} {shown}",
            epoch=self._epoch,
            epochs=self._epochs,
            step=step,
            steps_per_epoch=self._steps_per_epoch,
            examples_per_s=round(speed, 1),
            **measured,
        )

    def report_epoch(self, metrics: Mapping[str, float]) -> None:
        """Report the metrics of the epoch, with its evaluation's."""
        shown = " ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        report_event(
            "epoch_finished",
            f"epoch {self._epoch}/{self._epochs} finished: {shown}",
            epoch=self._epoch,
            epochs=self._epochs,
            metrics=metrics,
        )
