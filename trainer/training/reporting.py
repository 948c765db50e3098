"""Progress of a training as events."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.events import report_event

MIN_INTERVAL_S = 0.5
MOST_STEPS = 1000


def plain_numbers(logs: Mapping[str, Any]) -> dict[str, float]:
    """Keras' logs, tensors or not, as plain numbers."""
    return {name: float(value) for name, value in logs.items()}


class Pace:
    """When metrics are read: after an epoch's first step, then each MIN_INTERVAL_S seconds or so, and after its last one.

    Reading needs all replicas, so they count steps instead of asking their own clocks: as many as take that long, by
    the mean of what the replicas measured the time before.
    """

    def __init__(self) -> None:
        self.step_s = 0.0
        """Seconds of a step as this replica measured them; 0 before the second reading."""

    def begin(self, step: int) -> None:
        """An epoch begins after its first `step` steps."""
        self._step, self._at, self._due = step, time.monotonic(), step + 1

    def is_due(self, step: int) -> bool:
        return step >= self._due

    def note_reading(self, step: int, mean_step_s: float) -> None:
        """The metrics were read after `step` steps, when all replicas agreed on this mean of their `step_s`."""
        if step == self._step:
            return
        now = time.monotonic()
        self.step_s = (now - self._at) / (step - self._step)
        self._step, self._at = step, now
        self._due = step + (max(1, min(MOST_STEPS, int(MIN_INTERVAL_S / mean_step_s))) if mean_step_s else 1)


@dataclass(kw_only=True, eq=False)
class ProgressReport(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Reports steps whose metrics were read: an epoch's first and last, between them one each MIN_INTERVAL_S seconds.

    `loss` and `accuracy` are running means of the epoch over all replicas; `examples_per_s` counts the
    examples of all replicas since the line before.
    """

    epochs: int
    steps_per_epoch: int
    global_batch_size: int

    def __post_init__(self) -> None:
        super().__init__()
        self._epoch, self._step, self._reported_at = 0, 0, 0.0
        self._reported_step: int | None = None

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras' signature
        self._epoch, self._step, self._reported_at = epoch + 1, 0, time.monotonic()
        self._reported_step = None

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras' signature
        # Not always the epoch's first: a restarted run may continue in its middle.
        if self._reported_step is None:
            self._reported_step = batch

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any]) -> None:
        """`batch` is the last one of those that ran since `on_train_batch_begin`, from 0; no `logs` if none were read."""
        if not logs:
            return
        is_first = not self._step
        self._step = batch + 1
        now = time.monotonic()
        at_an_end = is_first or self._step == self.steps_per_epoch
        if not at_an_end and now - self._reported_at < MIN_INTERVAL_S:
            return
        values = plain_numbers(logs)
        measured: dict[str, Any] = {name: values[name] for name in ("loss", "accuracy") if name in values}
        shown = " ".join(f"{name} {value:.4f}" for name, value in measured.items())
        examples = (self._step - (self._reported_step or 0)) * self.global_batch_size
        speed = examples / max(now - self._reported_at, 1e-9)
        self._reported_step, self._reported_at = self._step, now
        report_event(
            "train_progress",
            f"epoch {self._epoch}/{self.epochs} step {self._step}/{self.steps_per_epoch} {shown}",
            epoch=self._epoch,
            epochs=self.epochs,
            step=self._step,
            steps_per_epoch=self.steps_per_epoch,
            examples_per_s=round(speed, 1),
            **measured,
        )

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any]) -> None:
        metrics = plain_numbers(logs)
        shown = " ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        report_event(
            "epoch_finished",
            f"epoch {epoch + 1}/{self.epochs} finished: {shown}",
            epoch=epoch + 1,
            epochs=self.epochs,
            metrics=metrics,
        )
