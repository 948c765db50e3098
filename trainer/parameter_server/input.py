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
        examples = self.subject.dataset.train_examples
        return self._batches(
            self._shuffled(share, length=examples, first=examples * first_pass), self.subject.flags.batch_size
        )

    def in_shards(self) -> Any:
        """The evaluation split for Keras' exact evaluation, which hands out shards of it, each evaluated once.

        The place marked with SHARD_HINT is where TensorFlow cuts: before decoding, so that every
        image is decoded by one worker only.
        """
        dataset = self.subject.dataset
        assert dataset.evaluation_split is not None, "asked for where there is one"  # noqa: S101 - for the type checker
        hint = tf.data.experimental.SHARD_HINT
        if self.subject.flags.cache:
            self._check_cache(dataset.evaluation_examples)
        source = self._encoded(dataset.evaluation_split)
        # Counted before it is cut, the marked place makes a negative number of examples, which Keras may take for
        # endless; behind a filter nothing is counted.
        shard = source.shard(hint, hint).filter(lambda *_: True)
        # Keras' exact evaluation gives labels to the metrics as they come. In one dimension, binary accuracy would take
        # a batch for one example; Keras' other evaluations add the second.
        batches = (
            self._decoded(shard)
            .batch(self.subject.flags.batch_size)
            .map(lambda image, label: (image, label[:, tf.newaxis]))
        )
        return self._ready(batches, tf.data.experimental.AutoShardPolicy.HINT)
