"""The order in which examples are used, and the part of it that each worker takes.

Places count the examples of a whole run, from 0; pass i through the training split has `length` of them, from
i * `length` on. Which example is at a place depends on the seed, the pass and the place alone, never on the share.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.data.examples import mapped

BUFFERED_EXAMPLES = 10_000
UNPACKED_NUMBERS = 64


@dataclass(frozen=True, kw_only=True)
class Share:
    """The places that one worker takes: of every `block` those from `start` to before `stop`."""

    block: int
    start: Any  # an int or an int64 tensor
    stop: Any

    def has(self, places: Any) -> Any:
        """Which of `places`, int64 of any shape, are in the share; bool of the same shape."""
        within = places % self.block
        return (within >= self.start) & (within < self.stop)


@dataclass(frozen=True, kw_only=True)
class Order:
    """A share of the order of `count` examples, from place `first` on, endless: pairs of a place and an example."""

    share: Share
    seed: int
    count: int
    length: int
    first: int

    def picked(self, source: Any) -> Any:
        """The elements of `source` in this order: each pass has another permutation.

        `source` is read once, when the first element is needed, and kept. After that, only elements of the share
        are touched, and it makes no difference where the order begins.
        """
        spec = source.element_spec
        indices = self._passes().flat_map(self._indices)
        return (
            mapped(source, _packed)
            .batch(self.count)
            .flat_map(
                lambda *kept: indices.map(
                    lambda place, index: (place, _unpacked([each[index] for each in kept], spec))
                )
            )
        )

    def buffered(self, source: Any) -> Any:
        """The elements of `source` as they leave a buffer of BUFFERED_EXAMPLES, which each pass fills again.

        Every pass reads all of `source`, and the first one also what is before `first`.
        """
        own = self._passes().flat_map(lambda number: self._through_buffer(source, number))
        return own.filter(lambda place, _: self._is_due(place))

    def _passes(self) -> Any:
        return tf.data.Dataset.counter(self.first // self.length)

    def _is_due(self, places: Any) -> Any:
        return self.share.has(places) & (places >= self.first)

    def _indices(self, number: Any) -> Any:
        """Places and examples of the share in a pass; a split smaller than the pass is repeated in it."""
        within = tf.range(self.length, dtype=tf.int64)
        own = tf.boolean_mask(within, self._is_due(within + number * self.length))
        permutation = tf.random.experimental.stateless_shuffle(
            tf.range(self.count, dtype=tf.int64), seed=tf.stack([self.seed, number]), alg="philox"
        )
        return tf.data.Dataset.from_tensor_slices(
            (own + number * self.length, tf.gather(permutation, own % self.count))
        )

    def _through_buffer(self, source: Any, number: Any) -> Any:
        shuffled = source.shuffle(
            min(self.count, BUFFERED_EXAMPLES), seed=self.seed + number, reshuffle_each_iteration=False
        )
        return shuffled.repeat().take(self.length).enumerate(number * self.length)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Batches of different sizes, each a range of `count` examples; in order, and no example in two."""

    ranges: Sequence[range]
    count: int

    def batched(self, source: Any, decode: Callable[[Any], Any] | None) -> Any:
        """A batch for each part; only elements of `source` that are in one are decoded."""
        part_of = np.full(self.count, -1)
        for number, part in enumerate(self.ranges):
            part_of[part.start : part.stop] = number
        numbers = tf.constant(part_of)
        own = source.take(self.count).enumerate().filter(lambda place, _: numbers[place] >= 0)
        sizes = tf.constant([len(part) for part in self.ranges], tf.int64)
        largest = max(map(len, self.ranges))
        batches = mapped_examples(own, decode).group_by_window(
            key_func=lambda place, _: numbers[place],
            reduce_func=lambda _, part: part.map(lambda _, example: example).batch(largest),
            window_size_func=lambda number: sizes[number],
        )
        return batches.apply(tf.data.experimental.assert_cardinality(len(self.ranges)))


def mapped_examples(pairs: Any, function: Callable[[Any], Any] | None) -> Any:
    """Pairs of a place and an example, with `function` of the example."""
    if function is None:
        return pairs
    return mapped(pairs, lambda pair: (pair[0], function(pair[1])))


def _packed(example: Any) -> tuple[Any, ...]:
    """The tensors of an example, all but small ones as strings.

    Of many strings, a data set makes one tensor without holding every example twice; and shapes may differ.
    """
    return tuple(
        each if _is_small(each) else tf.io.serialize_tensor(each) for each in tf.nest.flatten(example)
    )


def _unpacked(kept: Sequence[Any], spec: Any) -> Any:
    """The example of this specification that `_packed` made these of."""
    return tf.nest.pack_sequence_as(
        spec,
        [
            each if _is_small(of) else tf.ensure_shape(tf.io.parse_tensor(each, of.dtype), of.shape)
            for each, of in zip(kept, tf.nest.flatten(spec), strict=True)
        ],
    )


def _is_small(tensor: Any) -> bool:
    """Of a tensor or its specification."""
    shape = tensor.shape
    return bool(shape.is_fully_defined() and shape.num_elements() <= UNPACKED_NUMBERS)
