"""A trial's report to its study after each epoch: metrics of the evaluation, under their plain names."""

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from trainer.loop import EVALUATED
from trainer.metric_file import MetricFile
from trainer.reporting import numbers


class MetricReport(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """A checkpoint is written before each evaluation: what was reported is never trained again."""

    def __init__(self, file: MetricFile, *, names: Sequence[str], steps_per_epoch: int) -> None:
        super().__init__()
        self._file = file
        self._names = names
        self._steps_per_epoch = steps_per_epoch

    def on_epoch_end(self, epoch: int, logs: Mapping[str, Any]) -> None:
        self.report(numbers(logs), epochs=epoch + 1)

    def report(self, metrics: Mapping[str, float], *, epochs: int) -> None:
        """Report what was reached after so many epochs; the step counts training steps from the very beginning."""
        evaluated = {name: metrics[EVALUATED + name] for name in self._names if EVALUATED + name in metrics}
        self._file.report(evaluated, step=epochs * self._steps_per_epoch)
