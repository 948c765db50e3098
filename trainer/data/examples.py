"""Single examples, which a program trains and evaluates on, and the functions that make batches of them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from trainer.events import report_event
from trainer.faults import Unusable, reason_of

COUNTED_LIMIT = 1_000_000_000
REPAIR_OF_SHAPES = "Give survive.Examples pad=True, which pads them to the longest of a batch, or make their shapes equal in decode."
REPAIR_OF_DATA = "Correct the data, or the functions of its Examples that read it."


@dataclass(frozen=True, eq=False)
class Examples:
    """A split as single examples, and how they become batches; every function is one of TensorFlow operations.

    An example is any nest of tensors, dictionaries for example. A batch must be `x`, `(x, y)` or `(x, y, weight)` at
    the end, as Keras' `fit` takes it.

    Attributes:
        load: a finite tf.data.Dataset of single examples, in the same order at every call, cheap to read: still encoded
            images, TFRecords or lines of text. Called once the strategy exists, on every replica, often more than once;
            with parameter servers, by each worker, in a graph that the chief makes.
        count: the number of examples; None if the data set knows it, or to count it once at the start. Of a data set that
            does not know it, only the first `count` are used: too low a count is not found.
        decode: from a loaded example to one of fixed shapes. Only for examples that this worker uses, once per use;
            with --cache once per run, its result is what is kept.
        augment: of a decoded example and a seed, int64 [2], the example to train on. Never kept, and never called for an
            evaluation. With stateless random operations of the seed, a restarted run sees what it would have seen.
        batch: what is done to a whole batch, last of all on the host.
        on_device: what is done to a whole batch where the model computes, at the start of each step: images that are
            scaled here travel to the device as uint8.
        size_bytes: of all loaded examples. Up to 2 GiB they are kept in memory and shuffled completely; others, and
            those of unknown size, are shuffled in a buffer. None: unknown, unless all shapes are fixed.
        pad: how examples of different lengths, RaggedTensors too, make a batch: each tensor is padded at its end to the
            longest of the batch. True: with 0, False or an empty string; or a nest of values in the form of an example,
            where None stands for these. None: examples of different shapes are refused.
        class_weight: from class to weight, 1 for others, as `fit` takes it: the label of one output, a number or one-hot,
            chooses it, and a weight that the example has is multiplied with it. For training only.
    """

    load: Callable[[], Any]  # Any: TensorFlow has no types
    count: int | None = None
    decode: Callable[[Any], Any] | None = None
    augment: Callable[[Any, Any], Any] | None = None
    batch: Callable[[Any], Any] | None = None
    on_device: Callable[[Any], Any] | None = None
    size_bytes: int | None = None
    pad: Any = None
    class_weight: Mapping[int, float] | None = None


def counted_examples(examples: Examples, name: str) -> Examples:
    """The examples with their number, for which it reads all where it must, and their size if it is known.

    Raises:
        Unusable: `load` does not return a finite tf.data.Dataset with examples, or its files do not exist.
    """
    import tensorflow as tf

    data = examples.load()
    if not isinstance(data, tf.data.Dataset):
        raise Unusable(
            f"The {name} examples: load() returned {type(data).__name__}; expected a tf.data.Dataset of single "
            f"examples, for example tf.data.Dataset.from_tensor_slices((features, labels))."
        )
    known = int(data.cardinality())
    if known == tf.data.INFINITE_CARDINALITY:
        raise Unusable(f"The {name} examples: load() is endless. Remove repeat(): a run counts its passes.")
    count = known if known >= 0 else examples.count
    if count is None:
        try:
            count = int(data.take(COUNTED_LIMIT).reduce(np.int64(0), lambda sum_, *_: sum_ + 1))
        except tf.errors.InvalidArgumentError as error:
            raise Unusable(
                f"The {name} examples cannot be read: {reason_of(error)}. {REPAIR_OF_DATA}"
            ) from error
        except (tf.errors.NotFoundError, tf.errors.DataLossError, tf.errors.PermissionDeniedError) as error:
            raise Unusable(
                f"The {name} examples cannot be read: {reason_of(error)}. Check the paths in load()."
            ) from error
        report_event(
            "examples_counted",
            f"read {count} {name} examples to count them; survive.Examples(count={count}) would spare it",
            examples=count,
        )
    if examples.count not in (None, count):
        raise Unusable(
            f"The {name} examples: count={examples.count}, but load() has {count}. Correct or remove it."
        )
    if not count:
        raise Unusable(f"There are no {name} examples: load() is empty. Check the files that it reads.")
    example_bytes = size_of(data.element_spec)
    size_bytes = examples.size_bytes if example_bytes is None else example_bytes * count

    def load() -> Any:
        """The data set, with an error at its end where `count` is too high: else its examples would only come more often."""
        return examples.load().take(count).apply(tf.data.experimental.assert_cardinality(count))

    return replace(examples, load=examples.load if known >= 0 else load, count=count, size_bytes=size_bytes)


def steps_per_epoch(examples: int, global_batch_size: int, cap: int | None) -> int:
    """Full batches in one pass over the training split; at least 1, at most `cap`."""
    return min(max(1, examples // global_batch_size), cap or examples)


def evaluation_parts(examples: int, batch_size: int, replicas: int) -> list[range]:
    """Every replica's part of every batch of an evaluation, as examples counted from 0: part i is for replica i % `replicas`.

    A part has at most `batch_size` examples, and at most one more than any other.

    Raises:
        Unusable: a part would be empty: convolutions of empty batches fail on CPUs (TensorFlow 2.21 with oneDNN).
    """
    batches = -(-examples // (batch_size * replicas))
    parts = batches * replicas
    if not 0 < parts <= examples:
        raise Unusable(
            f"The evaluation split has {examples} examples, too few for {replicas} replicas. Use a larger split, "
            f"or none (--evaluation_split=none for images)."
        )
    return [range(examples * part // parts, examples * (part + 1) // parts) for part in range(parts)]


def size_of(spec: Any) -> int | None:
    """The bytes of an example of this specification; None if a shape is not fixed, or a tensor has strings."""
    import tensorflow as tf

    sizes = [
        math.prod(tensor.shape) * tensor.dtype.size
        if isinstance(tensor, tf.TensorSpec) and tensor.shape.is_fully_defined() and tensor.dtype != tf.string
        else None
        for tensor in tf.nest.flatten(spec)
    ]
    return None if None in sizes else sum(filter(None, sizes))


def mapped_data(data: Any, function: Callable[[Any], Any] | None) -> Any:
    """A data set with `function` of each element, tuples in one piece. Raises Unusable if the function cannot take them."""
    import tensorflow as tf

    if function is None:
        return data
    is_tuple = type(data.element_spec) is tuple
    try:
        return data.map(
            lambda *parts: function(parts if is_tuple else parts[0]),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
    except (ValueError, TypeError) as error:
        raise Unusable(f"An example cannot be read: {reason_of(error)}. {REPAIR_OF_DATA}") from error


def batched_examples(data: Any, size: int, *, pad: Any, drop_remainder: bool = False) -> Any:
    """Batches of this size of decoded examples, each padded as the attribute `pad` of Examples says.

    Raises:
        Unusable: the examples cannot be padded, or are RaggedTensors that should not be.
    """
    import tensorflow as tf

    spec = data.element_spec
    if pad is None:
        if any(isinstance(tensor, tf.RaggedTensorSpec) for tensor in tf.nest.flatten(spec)):
            raise Unusable(f"The examples are RaggedTensors, which make no batch. {REPAIR_OF_SHAPES}")
        return data.batch(size, drop_remainder=drop_remainder)

    def value_for(of: Any, value: Any = None) -> Any:
        return tf.zeros([], of.dtype) if value is None else tf.constant(value, of.dtype)

    def dense(tensor: Any, value: Any) -> Any:
        return tensor.to_tensor(value) if isinstance(tensor, tf.RaggedTensor) else tensor

    try:
        values = tf.nest.map_structure(value_for, spec, *([] if pad is True else [pad]))
        data = mapped_data(data, lambda example: tf.nest.map_structure(dense, example, values))
        return data.padded_batch(size, padding_values=values, drop_remainder=drop_remainder)
    except (ValueError, TypeError) as error:
        raise Unusable(
            f"pad={pad!r} does not fit the examples: {reason_of(error)}. Give True, or a value for each tensor in the form "
            f"of an example; each tensor needs a known number of dimensions."
        ) from error


@lru_cache(maxsize=8)
def batch_spec(examples: Examples) -> Any:
    """The specification of a batch of these as the model gets it, a nest of tf.TensorSpec with None as its size."""
    data = batched_examples(mapped_data(examples.load(), examples.decode), 2, pad=examples.pad)
    spec: Any = mapped_data(mapped_data(data, examples.batch), examples.on_device).element_spec
    return spec
