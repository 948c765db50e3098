"""Progress of steps that run elsewhere: Keras announces them when they are handed out, not when they are done."""

import queue
import threading
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from trainer.reporting import ProgressReport

HANDED_OUT_WITHIN_S = 30.0  # how long an epoch's end waits for the reports of steps that are done


class RemoteProgressReport(ProgressReport):
    """Reports as ProgressReport does, each step when its worker is done with it.

    Keras hands over a promise of a step's logs as soon as the step is queued. Waiting for it there
    would leave all workers but one idle, so a thread waits.
    """

    def __init__(
        self, *, replica: str, replicas: int, epochs: int, steps_per_epoch: int, global_batch_size: int
    ) -> None:
        super().__init__(
            replica=replica,
            replicas=replicas,
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            global_batch_size=global_batch_size,
        )
        self._promised: queue.SimpleQueue[tuple[int, Any] | threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._report_all, name="progress", daemon=True).start()

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        self._promised.put((batch, logs))

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any]) -> None:
        drained = threading.Event()
        self._promised.put(drained)
        drained.wait(HANDED_OUT_WITHIN_S)
        super().on_epoch_end(epoch, logs)

    def _report_all(self) -> None:
        while True:
            match self._promised.get():
                case threading.Event() as drained:
                    drained.set()
                case (batch, promise):
                    try:
                        logs = promise.fetch() if hasattr(promise, "fetch") else promise
                    except (tf.errors.OpError, RuntimeError):
                        continue  # the step was given up; the training itself says why
                    super().on_train_batch_end(batch, logs)
