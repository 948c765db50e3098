"""Training of a model's head alone: what the layers before it make of each example is computed once, and kept.

Those layers, the backbone, are frozen and compute as they do when the model is served: batch normalization uses its
averages, dropout is off. Checkpoints, evaluations and the export are those of the whole model.

Every worker keeps all features, so which examples share a batch does not depend on the number of workers.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.checkpoints.files import Position
from trainer.data.examples import Examples, batch_spec, size_of
from trainer.data.pipeline import distributed
from trainer.events import report
from trainer.faults import Unusable
from trainer.training import keras_models as keras
from trainer.training.attempt import Training
from trainer.training.loop import Batches
from trainer.training.model import backbone_of, fitting, head_of

FEATURES_LIMIT_BYTES = 2 << 30


@dataclass(frozen=True, kw_only=True)
class HeadTraining(Training):
    """Trains the layers after the workload's `head` layer on that layer's outputs."""

    def _trained(self, model: Any) -> Any:
        with self.strategy.scope():
            head = head_of(model, self._layer)
            keras.build_variables(head, self._batch_of_features(model))
        return head

    def _batches(self, place: Position, model: Any) -> Batches:
        data, batch = self.run.data, self._batch_of_features(model)
        each = size_of(tf.nest.map_structure(lambda of: tf.TensorSpec(of.shape[1:], of.dtype), batch))
        splits = [split for split in (data.training, data.evaluation) if split is not None]
        _check_size(each, sum(split.count or 0 for split in splits))
        backbone = backbone_of(model, self._layer)
        kept = [self._with_features(split, backbone) for split in splits]
        featured = replace(data, training=kept[0], evaluation=kept[1] if len(kept) > 1 else None)
        # Features are kept already; a cache would be a second copy.
        settings = replace(self.settings, cache=False)
        of_features = replace(self, run=replace(self.run, loaded=featured, settings=settings))
        return super(HeadTraining, of_features)._batches(place, model)

    @property
    def _layer(self) -> str:
        return str(self.run.workload.head)

    def _batch_of_features(self, model: Any) -> Any:
        """The nest of tf.TensorSpec of a batch that the head is trained on."""
        output = backbone_of(model, self._layer).output
        features = tf.nest.map_structure(lambda each: tf.TensorSpec(each.shape, each.dtype), output)
        return _with_inputs(batch_spec(self.run.data.training), features)

    def _with_features(self, of: Examples, backbone: Any) -> Examples:
        """The examples with their features in place of the inputs, in the same order, on every worker.

        Each worker reads and decodes a share of them, and its devices compute the features of that share.
        """
        began, count = time.monotonic(), of.count or 0
        pipeline = replace(self.pipeline, examples=of)
        steps = -(-count // pipeline.global_batch_size)
        with self.strategy.scope(), fitting(batch_spec(of)):
            compute = tf.function(partial(_of_all_replicas, self.strategy, backbone))
            batches = iter(distributed(self.strategy, pipeline.once))
            found = [[each.numpy() for each in tf.nest.flatten(compute(next(batches)))] for _ in range(steps)]
        columns = [np.concatenate(parts)[:count] for parts in zip(*found, strict=True)]
        seconds = round(time.monotonic() - began, 1)
        report(
            "features_computed",
            f"{self.cluster.replica} has the features of {count} examples after {seconds} s",
            replica=self.cluster.replica,
            examples=count,
            bytes=sum(column.nbytes for column in columns),
            seconds=seconds,
        )
        spec = _with_inputs(batch_spec(of), backbone.output)
        return Examples(
            load=lambda: tf.data.Dataset.range(count),
            count=count,
            decode=_row_of(columns, spec),
            size_bytes=count * tf.int64.size,
        )


def _of_all_replicas(strategy: Any, backbone: Any, batch: Any) -> Any:
    """The batches of all replicas in their order, with features for inputs."""

    def gathered(own: Any) -> Any:
        found = _with_inputs(own, backbone(keras.inputs_of(own), training=False))
        if strategy.num_replicas_in_sync == 1:
            return found
        replica = tf.distribute.get_replica_context()
        # A batch that comes from outside has no device yet, and the collective operation asks for it.
        return tf.nest.map_structure(lambda each: replica.all_gather(tf.identity(each), axis=0), found)

    found = strategy.run(gathered, args=(batch,))
    return tf.nest.map_structure(lambda each: strategy.experimental_local_results(each)[0], found)


def _with_inputs(batch: Any, inputs: Any) -> Any:
    """A batch, or its specification, with others in place of what the model takes."""
    return (inputs, *batch[1:]) if type(batch) is tuple else inputs


def _row_of(columns: list[Any], spec: Any) -> Callable[[Any], Any]:
    """A function from the number of an example to the example."""
    with tf.device("CPU:0"):  # a GPU's memory is for the model
        kept = [tf.constant(column) for column in columns]
    return lambda number: tf.nest.pack_sequence_as(spec, [each[number] for each in kept])


def _check_size(each: int | None, count: int) -> None:
    if each is None:
        raise Unusable(
            "--train=head: the shape of an example's features is not fixed, so their size is unknown. Give the model "
            "inputs of fixed shape, or let the workload's `head` name a later layer, one after pooling for example."
        )
    if each * count > FEATURES_LIMIT_BYTES:
        raise Unusable(
            f"--train=head: the features of {count} examples, {each} bytes each, take {each * count >> 20} MiB in every "
            f"replica; the limit is {FEATURES_LIMIT_BYTES >> 20} MiB. Let the workload's `head` name a later layer, one "
            f"after pooling for example, or train on fewer examples."
        )
