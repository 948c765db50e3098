"""The input pipelines: shuffled batches to train on, every example once to evaluate on.

Every replica builds the same pipeline over the same examples in the same order, and
AutoShardPolicy.DATA hands each its own part of every global batch: no example is trained on
twice or left out, whatever the number of files.
"""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds

from trainer.dataset import Dataset
from trainer.faults import Unusable
from trainer.images import decoded
from trainer.settings import evaluation_batch_size

SHUFFLE_EXAMPLES = 10_000  # encoded images in memory; a data set up to this size is shuffled whole
CACHE_LIMIT_BYTES = 2 << 30
FLOAT_BYTES = 4


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """How one data set becomes batches. Images are float32 [batch, height, width, 3], labels int64 [batch]."""

    dataset: Dataset
    image_size: tuple[int, int]
    batch_size: int  # of each replica
    replicas: int
    cache: bool
    seed: int
    threads: int

    def training(self, *, first_epoch: int, first_step: int, epochs: int, steps_per_epoch: int) -> Any:
        """Batches from step `first_step` of epoch `first_epoch` to epoch `epochs` - 1 (all from 0), all full.

        An epoch has `steps_per_epoch`. Its order depends on the seed and the epoch alone: a run that
        continues from a checkpoint sees what it would have seen, and what it has seen is skipped before
        it is decoded. An epoch draws from all examples anew; those that fill no last batch are left out
        of that epoch only.
        """
        taken = self.batch_size * self.replicas * steps_per_epoch
        source = self._source(self.dataset.train_split, self.dataset.train_examples)
        buffer = min(self.dataset.train_examples, SHUFFLE_EXAMPLES)

        def epoch_examples(epoch: Any) -> Any:
            order = source.shuffle(buffer, seed=self.seed + epoch, reshuffle_each_iteration=False)
            return order.repeat().take(taken)

        examples = tf.data.Dataset.range(first_epoch, epochs).flat_map(epoch_examples)
        if first_step:
            examples = examples.skip(self.batch_size * self.replicas * first_step)
        # Endless by declaration: shapes stay static, and no step asks all replicas whether one has run out.
        batches = self._decoded(examples.repeat()).batch(self.batch_size * self.replicas, drop_remainder=True)
        return batches.prefetch(tf.data.AUTOTUNE).with_options(self._options())

    def evaluation(self) -> Any | None:
        """Every example of the evaluation split once, in a fixed order; the last batch may be smaller.

        Raises:
            Unusable: the split has too few examples to give each replica one.
        """
        if self.dataset.evaluation_split is None:
            return None
        count = self.dataset.evaluation_examples
        source = self._source(self.dataset.evaluation_split, count)
        batches = self._decoded(source).batch(self._evaluation_batch_size())
        return batches.prefetch(tf.data.AUTOTUNE).with_options(self._options())

    @property
    def evaluation_steps(self) -> int:
        """Batches of `evaluation`; 0 without an evaluation split."""
        if self.dataset.evaluation_split is None:
            return 0
        return -(-self.dataset.evaluation_examples // self._evaluation_batch_size())

    def _evaluation_batch_size(self) -> int:
        """Of all replicas together."""
        count = self.dataset.evaluation_examples
        size = evaluation_batch_size(count, self.batch_size, self.replicas)
        if size is None:
            raise Unusable(
                f"--evaluation_split={self.dataset.evaluation_split}: {count} examples are too few for "
                f"{self.replicas} replicas. Name a larger split, or `none`."
            )
        return size

    def _source(self, split: str, count: int) -> Any:
        """Encoded images and labels; with `cache` decoded ones, decoded once and kept."""
        keys = self.dataset.image_key, self.dataset.label_key
        encoded = self.dataset.builder.as_dataset(
            split=split,
            decoders={keys[0]: tfds.decode.SkipDecoding()},
            read_config=tfds.ReadConfig(try_autocache=False),
        ).map(lambda example: (example[keys[0]], example[keys[1]]), num_parallel_calls=1)
        if not self.cache:
            return encoded
        size_bytes = count * self.image_size[0] * self.image_size[1] * 3 * FLOAT_BYTES
        if size_bytes > CACHE_LIMIT_BYTES:
            raise Unusable(
                f"--cache: {count} images of {self.image_size[0]}x{self.image_size[1]} take {size_bytes >> 20} MiB "
                f"in every replica; at most {CACHE_LIMIT_BYTES >> 20} MiB are cached. Leave --cache out."
            )
        return self._map(encoded).cache()

    def _decoded(self, examples: Any) -> Any:
        return examples if self.cache else self._map(examples)

    def _map(self, examples: Any) -> Any:
        return examples.map(
            lambda image, label: (decoded(image, self.image_size), label),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    def _options(self) -> Any:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        options.threading.private_threadpool_size = self.threads
        return options
