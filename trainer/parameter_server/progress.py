"""Progress of steps that run on workers: they are handed out long before they are finished."""

import queue
import threading
import time
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from trainer.training.reporting import ProgressReport

AHEAD_PER_WORKER = 4  # unfinished steps: enough that no worker waits, few enough to finish soon


class RemoteProgressReport(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Passes each step to `report` when its worker has finished it.

    At the end of a step Keras passes a promise of the step's logs. Waiting for it there would leave all
    workers but one idle, so a thread waits. At most `ahead` steps are in flight, so that they finish soon
    when a checkpoint is due.
    """

    def __init__(self, report: ProgressReport, *, ahead: int) -> None:
        super().__init__()
        self._supports_tf_logs = True
        self._report = report
        self._done_at = time.monotonic()
        self._under_way = threading.Semaphore(ahead)
        self._promised: queue.SimpleQueue[tuple[int, Any] | threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._report_all, name="progress", daemon=True).start()

    def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
        self._report.on_epoch_begin(epoch, logs)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any]) -> None:
        self._report.on_epoch_end(epoch, logs)

    def on_train_batch_begin(self, batch: int, logs: object = None) -> None:
        self._under_way.acquire()
        self._report.on_train_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        self._promised.put((batch, logs))

    def idle_s(self) -> float:
        """Seconds since a step was finished, or since the start."""
        return time.monotonic() - self._done_at

    def drain(self) -> None:
        """Return when every step that was handed out is reported; they must be finished or abandoned."""
        drained = threading.Event()
        self._promised.put(drained)
        drained.wait()

    def _report_all(self) -> None:
        while True:
            match self._promised.get():
                case threading.Event() as drained:
                    drained.set()
                case (batch, promise):
                    try:
                        self._report.on_train_batch_end(batch, promise.fetch())
                        self._done_at = time.monotonic()
                    except (tf.errors.OpError, RuntimeError):
                        pass  # the step was abandoned; `join` raises the reason
                    finally:
                        self._under_way.release()
