"""What each worker reads: its share of the examples, and shards of the evaluation split."""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.data.order import Share
from trainer.data.pipeline import Pipeline


@dataclass(frozen=True, kw_only=True)
class WorkerPipeline(Pipeline):
    """Batches for one worker at a time: `replicas` is how many devices it has.

    TensorFlow does not split these batches: of a data set that a function makes, each device of a worker takes the
    next element whole (OwnedMultiDeviceIterator in tensorflow/python/distribute/input_lib.py, TensorFlow 2.21).
    """

    workers: int

    def for_worker(self, *, first_pass: int) -> Any:
        """Endless batches for the worker that calls this, in a function that the coordinator has it run.

        All workers compute the same order of examples, a different one in each pass, and each takes every
        n-th of them: while they keep pace, an epoch trains every example about once. While a worker is
        away, its share is not trained; the next pass distributes the examples again.
        """
        worker = tf.cast(tf.distribute.coordinator.experimental_get_current_worker_index(), tf.int64)
        share = Share(block=self.workers, start=worker, stop=worker + 1)
        count = self.examples.count or 0
        return self.shuffled(share, length=count, first=count * first_pass)
