"""The input pipelines: shuffled batches to train on, every example once to evaluate on.

Every replica builds the same pipeline over the same examples in the same order, and
AutoShardPolicy.DATA hands each its own part of every global batch: no example is trained on
twice or left out, whatever the number of files.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds

from trainer.dataset import Subject
from trainer.faults import Unusable
from trainer.settings import evaluation_batch_size

SHUFFLE_EXAMPLES = 10_000  # encoded images in memory; a data set up to this size is shuffled whole
CACHE_LIMIT_BYTES = 2 << 30
FLOAT_BYTES = 4


def decoded(encoded: Any, image_size: tuple[int, int]) -> Any:
    """One image, string [] (JPEG, PNG, GIF's first frame or BMP), as float32 [height, width, 3] from 0 to 1.

    Grey images get three equal channels; an alpha channel is dropped. Aspect is not kept.
    Training and serving share this, so they cannot differ.
    """
    pixels = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    pixels.set_shape([None, None, 3])
    resized = tf.image.resize(pixels, image_size)
    return tf.ensure_shape(resized, [*image_size, 3]) / 255.0


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """How one data set becomes batches. Images are float32 [batch, height, width, 3], labels int64 [batch]."""

    subject: Subject
    replicas: int
    threads: int

    @property
    def global_batch_size(self) -> int:
        """Of all replicas together."""
        return self.subject.flags.batch_size * self.replicas

    def training(self, *, first_epoch: int, first_step: int, steps_per_epoch: int) -> Any:
        """Batches from step `first_step` of epoch `first_epoch` (both from 0) to the last epoch, all full.

        An epoch has `steps_per_epoch`. Its order depends on the seed and the epoch alone: a run that
        continues from a checkpoint sees what it would have seen, and what it has seen is skipped before
        it is decoded. Each epoch draws from all examples; those that do not fill a last batch are left out
        of that epoch only.
        """
        batch = self.global_batch_size
        one_pass = self._one_pass()
        examples = tf.data.Dataset.range(first_epoch, self.subject.flags.epochs).flat_map(
            lambda epoch: one_pass(epoch).repeat().take(batch * steps_per_epoch)
        )
        if first_step:
            examples = examples.skip(batch * first_step)
        # Endless by declaration: shapes stay static, and no step asks all replicas whether one has run out.
        batches = self._decoded(examples.repeat()).batch(batch, drop_remainder=True)
        return batches.prefetch(tf.data.AUTOTUNE).with_options(self._options())

    def evaluation(self) -> Any | None:
        """Every example of the evaluation split once, in a fixed order; the last batch may be smaller.

        Raises:
            Unusable: the split has too few examples to give each replica one.
        """
        dataset = self.subject.dataset
        if dataset.evaluation_split is None:
            return None
        source = self._source(dataset.evaluation_split, dataset.evaluation_examples)
        batches = self._decoded(source).batch(self._evaluation_batch_size())
        return batches.prefetch(tf.data.AUTOTUNE).with_options(self._options())

    @property
    def evaluation_steps(self) -> int:
        """Batches of `evaluation`; 0 without an evaluation split."""
        dataset = self.subject.dataset
        if dataset.evaluation_split is None:
            return 0
        return -(-dataset.evaluation_examples // self._evaluation_batch_size())

    def _evaluation_batch_size(self) -> int:
        """Of all replicas together."""
        dataset = self.subject.dataset
        count = dataset.evaluation_examples
        size = evaluation_batch_size(count, self.subject.flags.batch_size, self.replicas)
        if size is None:
            raise Unusable(
                f"--evaluation_split={dataset.evaluation_split}: {count} examples are too few for "
                f"{self.replicas} replicas. Use a larger split, or `none`."
            )
        return size

    def _one_pass(self) -> Callable[[Any], Any]:
        """The training examples in the order of a pass, which its number and the seed alone give."""
        flags, dataset = self.subject.flags, self.subject.dataset
        source = self._source(dataset.train_split, dataset.train_examples)
        buffer = min(dataset.train_examples, SHUFFLE_EXAMPLES)
        return lambda number: source.shuffle(buffer, seed=flags.seed + number, reshuffle_each_iteration=False)

    def _source(self, split: str, count: int) -> Any:
        """Encoded images and labels; with `cache` decoded ones, decoded once and kept."""
        flags, dataset = self.subject.flags, self.subject.dataset
        keys = dataset.image_key, dataset.label_key
        encoded = dataset.builder.as_dataset(
            split=split,
            decoders={keys[0]: tfds.decode.SkipDecoding()},
            read_config=tfds.ReadConfig(try_autocache=False),
        ).map(lambda example: (example[keys[0]], example[keys[1]]), num_parallel_calls=1)
        if not flags.cache:
            return encoded
        height, width = flags.image_size
        size_bytes = count * height * width * 3 * FLOAT_BYTES
        if size_bytes > CACHE_LIMIT_BYTES:
            raise Unusable(
                f"--cache: {count} images of {height}x{width} take {size_bytes >> 20} MiB "
                f"in every replica; the limit is {CACHE_LIMIT_BYTES >> 20} MiB. Remove --cache."
            )
        return self._map(encoded).cache()

    def _decoded(self, examples: Any) -> Any:
        return examples if self.subject.flags.cache else self._map(examples)

    def _map(self, examples: Any) -> Any:
        size = self.subject.flags.image_size
        return examples.map(
            lambda image, label: (decoded(image, size), label),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    def _options(self) -> Any:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
        options.threading.private_threadpool_size = self.threads
        return options
