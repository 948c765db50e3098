"""Progress of steps that run on workers: they are handed out long before they are finished."""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from trainer.training.reporting import ProgressReport

AHEAD_PER_WORKER = 4  # unfinished steps: enough that no worker waits, few enough to finish soon


class RemoteProgressReport(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Passes each step to `report` when its worker has finished it.

    At the end of a step Keras passes a promise of the step's logs. Waiting for it there would leave all
    workers but one idle, so the step waits for the one handed out `ahead` steps before. No more are in flight,
    so that they finish soon when a checkpoint is due.
    """

    def __init__(self, report: ProgressReport, *, ahead: int) -> None:
        super().__init__()
        self._supports_tf_logs = True
        self._report = report
        self._done_at = time.monotonic()
        self._ahead = ahead
        self._promised: deque[tuple[int, Any]] = deque()

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._report.on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any]) -> None:
        self._report.on_epoch_end(epoch, logs)

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self._report.on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        self._promised.append((batch, logs))
        if len(self._promised) >= self._ahead:
            self._report_oldest()

    def idle_s(self) -> float:
        """Seconds since a step was finished, or since the start."""
        return time.monotonic() - self._done_at

    def drain(self) -> None:
        """Return when every step that was handed out is reported; they must be finished or abandoned."""
        while self._promised:
            self._report_oldest()

    def _report_oldest(self) -> None:
        batch, promise = self._promised.popleft()
        try:
            self._report.on_train_batch_end(batch, promise.fetch())
            self._done_at = time.monotonic()
        except (tf.errors.OpError, RuntimeError):
            return  # the step was abandoned; the next one, or `join`, raises the reason
