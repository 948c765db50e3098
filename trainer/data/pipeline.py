"""The input pipelines: shuffled batches to train on, every example once to evaluate on.

Each worker has a pipeline and decodes only its own part of every global batch. Which examples a global batch
has depends on the seed, the epoch and the step alone, so the number of workers can change between attempts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.data.examples import Examples, batched_examples, evaluation_parts, mapped_data, size_of
from trainer.data.order import Order, batches_of
from trainer.events import report_event
from trainer.faults import Unusable
from trainer.settings.settings import TrainingSettings

KEPT_LIMIT_BYTES = CACHE_LIMIT_BYTES = 2 << 30  # of loaded and of decoded examples


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """How counted examples become batches, each for one replica; a worker with several replicas gives them batches in turn.

    `replicas` counts those in sync, of all workers together.
    """

    examples: Examples
    evaluated: Examples | None
    settings: TrainingSettings
    replicas: int

    @property
    def global_batch_size(self) -> int:
        """Of all replicas together."""
        return self.settings.batch_size * self.replicas

    def training(self, worker: Any, *, first_epoch: int, first_step: int, steps_per_epoch: int) -> Any:
        """A worker's batches from step `first_step` of epoch `first_epoch` on, both from 0; all full and endless.

        `worker` is its tf.distribute.InputContext. Each epoch draws from all examples; those that do not fill a last
        batch are left out of that epoch only.
        """
        batch = self.global_batch_size
        part = batch // worker.num_input_pipelines
        start = part * worker.input_pipeline_id
        return self.shuffled_batches(
            block=batch,
            start=start,
            stop=start + part,
            length=batch * steps_per_epoch,
            first=batch * (first_epoch * steps_per_epoch + first_step),
        )

    def evaluation(self, worker: Any) -> Any:
        """A worker's part of every example of the evaluation split once, in a fixed order.

        Every replica gets a batch in each of `evaluation_steps`; the sizes of all batches differ by at most one.

        Raises:
            Unusable: the split has too few examples to give each replica one.
        """
        of, local = self._evaluated, self.replicas // worker.num_input_pipelines
        parts = [
            part
            for number, part in enumerate(self._evaluation_parts())
            if number % self.replicas // local == worker.input_pipeline_id
        ]
        batches = batches_of(parts, of)
        if self.settings.cache:
            _check_cache(of)
            batches = batches.cache()
        return self._made_ahead(mapped_data(batches, of.batch))

    def in_shards(self) -> Any:
        """The evaluation split for Keras' exact evaluation, which hands out shards of it, cut where SHARD_HINT is."""
        of, hint = self._evaluated, tf.data.experimental.SHARD_HINT
        # Counted before it is cut, the marked place makes a negative number of examples, which Keras may take for
        # endless; behind a filter nothing is counted.
        shard = of.load().shard(hint, hint).filter(lambda *_: True)
        decoded = mapped_data(shard, of.decode)
        ready = mapped_data(batched_examples(decoded, self.settings.batch_size, pad=of.pad), of.batch)
        ready = mapped_data(ready, of.on_device)  # here: the steps are Keras'
        # Keras' exact evaluation gives labels to the metrics as they come. In one dimension, binary accuracy would take
        # a batch for one example; Keras' other evaluations add the second.
        if type(ready.element_spec) is tuple:
            ready = mapped_data(ready, lambda batch: (batch[0], *map(_with_two_dimensions, batch[1:])))
        return self._made_ahead(ready, tf.data.experimental.AutoShardPolicy.HINT)

    @property
    def evaluation_steps(self) -> int:
        """Batches of `evaluation` for each replica; 0 without an evaluation split."""
        return len(self._evaluation_parts()) // self.replicas if self.evaluated else 0

    @property
    def _evaluated(self) -> Examples:
        assert self.evaluated is not None, "asked for where there is a split"  # noqa: S101 - for the type checker
        return self.evaluated

    def _evaluation_parts(self) -> list[range]:
        return evaluation_parts(self._evaluated.count or 0, self.settings.batch_size, self.replicas)

    def shuffled_batches(self, **share: Any) -> Any:
        """Endless full batches of training examples: a share of their order, `length`, `first` and the share as Order's."""
        of, seed = self.examples, self.settings.seed
        order = Order(seed=seed, count=of.count or 0, **share)
        decode, augment = of.decode, of.augment
        self._warn_of_few_examples()
        if self.settings.cache:
            _check_cache(of)
            pairs, decode = order.ordered_elements(mapped_data(of.load(), decode)), None
        else:
            is_kept = of.size_bytes is not None and of.size_bytes <= KEPT_LIMIT_BYTES
            pairs = (order.ordered_elements if is_kept else order.buffered_elements)(of.load())

        def usable_example(pair: tuple[Any, Any]) -> Any:
            place, example = pair
            example = decode(example) if decode else example
            return augment(example, tf.stack([seed, place])) if augment else example

        # Endless by declaration: shapes stay static, and no step asks all replicas whether one has run out.
        examples = mapped_data(pairs, usable_example).repeat()
        batches = batched_examples(examples, self.settings.batch_size, pad=of.pad, drop_remainder=True)
        return self._made_ahead(mapped_data(batches, of.batch))

    def _warn_of_few_examples(self) -> None:
        count, batch, replicas = self.examples.count or 0, self.global_batch_size, self.replicas
        if 0 < count < batch:
            size = count // replicas
            repair = f"--batch_size={size}" if size else f"more examples, or fewer than {replicas} replicas"
            report_event(
                "examples_repeated",
                f"{count} training examples do not fill a step's {batch}: each step trains on every one about "
                f"{batch / count:.1f} times, and the metrics count it as often. Use {repair}",
                severity="WARNING",
                examples=count,
                global_batch_size=batch,
            )

    def _made_ahead(self, batches: Any, policy: Any = tf.data.experimental.AutoShardPolicy.OFF) -> Any:
        """Batches that are made ahead of the steps that use them."""
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        options.threading.private_threadpool_size = tf.config.threading.get_inter_op_parallelism_threads()
        return batches.prefetch(tf.data.AUTOTUNE).with_options(options)


def _with_two_dimensions(labels: Any) -> Any:
    return tf.nest.map_structure(lambda y: y[:, tf.newaxis] if y.shape.rank == 1 else y, labels)


def _check_cache(of: Examples) -> None:
    """Refuse to keep decoded examples that are too large."""
    example_bytes, count = size_of(mapped_data(of.load(), of.decode).element_spec), of.count or 0
    if example_bytes is None:
        raise Unusable(
            "--cache: the shapes of decoded examples are not fixed, so their size is unknown. Remove --cache."
        )
    if example_bytes * count > CACHE_LIMIT_BYTES:
        raise Unusable(
            f"--cache: {count} decoded examples of {example_bytes} bytes take {example_bytes * count >> 20} MiB in every "
            f"replica; the limit is {CACHE_LIMIT_BYTES >> 20} MiB. Remove --cache."
        )


def distributed_batches(strategy: Any, batches_of: Callable[[Any], Any]) -> Any:
    """What `batches_of` gives for each worker's tf.distribute.InputContext, copied to the devices ahead of the steps.

    All strategies but the default copy by themselves; for that one, they are copied to the first GPU, if there is any.
    """
    batches, gpus = (
        strategy.distribute_datasets_from_function(batches_of),
        tf.config.list_logical_devices("GPU"),
    )
    if gpus and isinstance(batches, tf.data.Dataset):
        return batches.apply(tf.data.experimental.prefetch_to_device(gpus[0].name))
    return batches
