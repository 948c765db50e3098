"""The input pipelines: shuffled batches to train on, every example once to evaluate on.

Each worker has a pipeline and decodes only its own part of every global batch. Which examples a global batch
has depends on the seed, the epoch and the step alone, so the number of workers can change between attempts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_datasets as tfds

from trainer.data.dataset import Subject
from trainer.data.images import pixels, scaled
from trainer.data.order import Order, Parts, Share
from trainer.faults import Unusable
from trainer.training.settings import evaluation_parts

KEPT_LIMIT_BYTES = 2 << 30  # of encoded images: larger splits are shuffled in a buffer as they are read
CACHE_LIMIT_BYTES = 2 << 30


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """How one data set becomes batches. Images are float32 [batch, height, width, 3], labels int64 [batch].

    A batch is one replica's; a worker with several replicas gives them batches in turn.

    Attributes:
        replicas: in sync, those of all workers together.
        decode: one image, as `pixels` does it.
        kept_limit_bytes: the training split is kept in memory up to this size.
    """

    subject: Subject
    replicas: int
    threads: int
    decode: Callable[[Any, tuple[int, int]], Any] = pixels
    kept_limit_bytes: int = KEPT_LIMIT_BYTES

    @property
    def global_batch_size(self) -> int:
        """Of all replicas together."""
        return self.subject.flags.batch_size * self.replicas

    def training(self, worker: Any, *, first_epoch: int, first_step: int, steps_per_epoch: int) -> Any:
        """A worker's batches from step `first_step` of epoch `first_epoch` on, both from 0; all full and endless.

        `worker` is its tf.distribute.InputContext. Each epoch has `steps_per_epoch` steps and draws from all
        examples; those that do not fill a last batch are left out of that epoch only. A run that continues
        from a checkpoint sees what it would have seen.
        """
        batch = self.global_batch_size
        part = batch // worker.num_input_pipelines
        start = part * worker.input_pipeline_id
        examples = self._shuffled(
            Share(block=batch, start=start, stop=start + part),
            length=batch * steps_per_epoch,
            first=batch * (first_epoch * steps_per_epoch + first_step),
        )
        return self._batches(examples, self.subject.flags.batch_size)

    def evaluation(self, worker: Any) -> Any:
        """A worker's part of every example of the evaluation split once, in a fixed order.

        `worker` is its tf.distribute.InputContext. Every replica gets a batch in each of `evaluation_steps`, the
        sizes of all batches differ by at most one.

        Raises:
            Unusable: the split has too few examples to give each replica one.
        """
        dataset, local = self.subject.dataset, self.replicas // worker.num_input_pipelines
        own = Parts(
            ranges=[
                part
                for number, part in enumerate(self._evaluation_parts())
                if number % self.replicas // local == worker.input_pipeline_id
            ],
            count=dataset.evaluation_examples,
        )
        batches = own.batched(self._decoded(own.marked(self._encoded(dataset.evaluation_split))))
        if self.subject.flags.cache:
            self._check_cache(dataset.evaluation_examples)
            batches = batches.cache()
        return self._ready(batches)

    @property
    def evaluation_steps(self) -> int:
        """Batches of `evaluation` for each replica; 0 without an evaluation split."""
        if self.subject.dataset.evaluation_split is None:
            return 0
        return len(self._evaluation_parts()) // self.replicas

    def _evaluation_parts(self) -> list[range]:
        dataset = self.subject.dataset
        count = dataset.evaluation_examples
        parts = evaluation_parts(count, self.subject.flags.batch_size, self.replicas)
        if parts is None:
            raise Unusable(
                f"--evaluation_split={dataset.evaluation_split}: {count} examples are too few for "
                f"{self.replicas} replicas. Use a larger split, or `none`."
            )
        return parts

    def _shuffled(self, share: Share, *, length: int, first: int) -> Any:
        """Decoded training images and labels: a share of their order, from place `first` on."""
        flags, dataset = self.subject.flags, self.subject.dataset
        order = Order(share=share, seed=flags.seed, count=dataset.train_examples, length=length, first=first)
        source = self._encoded(dataset.train_split)
        if flags.cache:
            self._check_cache(dataset.train_examples)
            return self._unpacked(order.picked(self._packed(self._decoded(source))))
        return self._decoded(order.picked(source) if self._is_kept() else order.buffered(source))

    def _packed(self, examples: Any) -> Any:
        """Images as strings: of many strings, a data set makes one tensor without holding every image twice."""
        return examples.map(lambda image, label: (tf.io.serialize_tensor(image), label))

    def _unpacked(self, examples: Any) -> Any:
        shape = (*self.subject.flags.image_size, 3)
        return examples.map(
            lambda image, label: (tf.ensure_shape(tf.io.parse_tensor(image, tf.uint8), shape), label)
        )

    def _is_kept(self) -> bool:
        """Whether the encoded training split is small enough for memory."""
        split = self.subject.dataset.builder.info.splits[self.subject.dataset.train_split]
        size_bytes: int = sum(
            Path(part.filename).stat().st_size * part.take // max(1, part.examples_in_shard)
            for part in split.file_instructions
        )
        return size_bytes <= self.kept_limit_bytes

    def _encoded(self, split: str | None) -> Any:
        """Encoded images and labels, in the order of the files."""
        dataset = self.subject.dataset
        keys = dataset.image_key, dataset.label_key
        return dataset.builder.as_dataset(
            split=split,
            decoders={keys[0]: tfds.decode.SkipDecoding()},
            read_config=tfds.ReadConfig(try_autocache=False),
        ).map(lambda example: (example[keys[0]], example[keys[1]]), num_parallel_calls=1)

    def _decoded(self, examples: Any) -> Any:
        """With the first of each example's values, an encoded image, decoded."""
        size = self.subject.flags.image_size
        return examples.map(
            lambda encoded, *others: (self.decode(encoded, size), *others),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    def _check_cache(self, count: int) -> None:
        """Refuse to keep this number of decoded images if they are too large."""
        height, width = self.subject.flags.image_size
        size_bytes = count * height * width * 3
        if size_bytes > CACHE_LIMIT_BYTES:
            raise Unusable(
                f"--cache: {count} images of {height}x{width} take {size_bytes >> 20} MiB "
                f"in every replica; the limit is {CACHE_LIMIT_BYTES >> 20} MiB. Remove --cache."
            )

    def _batches(self, examples: Any, size: int) -> Any:
        # Endless by declaration: shapes stay static, and no step asks all replicas whether one has run out.
        return self._ready(examples.repeat().batch(size, drop_remainder=True))

    def _ready(self, batches: Any, policy: Any = tf.data.experimental.AutoShardPolicy.OFF) -> Any:
        """Batches with images from 0 to 1, made ahead of the steps that use them."""
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        options.threading.private_threadpool_size = self.threads
        floats = batches.map(
            lambda images, labels: (scaled(images), labels),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return floats.prefetch(tf.data.AUTOTUNE).with_options(options)


def distributed(strategy: Any, batches_of: Callable[[Any], Any], *, device: str | None = None) -> Any:
    """What `batches_of` gives for each worker's tf.distribute.InputContext, copied to the devices ahead of the steps.

    All strategies but the default copy by themselves; for that one, `device` is where the steps run: the first GPU
    if None, and if there is none, nothing is copied.
    """
    batches = strategy.distribute_datasets_from_function(batches_of)
    device = device or next((gpu.name for gpu in tf.config.list_logical_devices("GPU")), None)
    if device is None or not isinstance(batches, tf.data.Dataset):
        return batches
    return batches.apply(tf.data.experimental.prefetch_to_device(device))
