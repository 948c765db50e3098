"""The order in which examples are used, and the part of it that each worker takes.

Places count the examples of a whole run, from 0; pass i through the training split has `length` of them, from
i * `length` on. Which example is at a place depends on the seed, the pass and the place alone, never on the share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

BUFFERED_EXAMPLES = 10_000


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
    """A share of the order of `count` examples, from place `first` on, endless."""

    share: Share
    seed: int
    count: int
    length: int
    first: int

    def picked(self, source: Any) -> Any:
        """The elements of `source`, pairs of scalars, in this order: each pass has another permutation.

        `source` is read once, when the first element is needed, and kept. After that, only elements of the share
        are touched, and it makes no difference where the order begins.
        """
        indices = self._passes().flat_map(self._indices)
        return source.batch(self.count).flat_map(
            lambda one, other: indices.map(lambda index: (one[index], other[index]))
        )

    def buffered(self, source: Any) -> Any:
        """The elements of `source` as they leave a buffer of BUFFERED_EXAMPLES, which each pass fills again.

        Every pass reads all of `source`, and the first one also what is before `first`.
        """
        own = self._passes().flat_map(lambda number: self._through_buffer(source, number))
        return own.filter(lambda place, _: self._is_due(place)).map(lambda _, example: example)

    def _passes(self) -> Any:
        return tf.data.Dataset.counter(self.first // self.length)

    def _is_due(self, places: Any) -> Any:
        return self.share.has(places) & (places >= self.first)

    def _indices(self, number: Any) -> Any:
        """Of the share's examples in a pass; a split smaller than the pass is repeated in it."""
        within = tf.range(self.length, dtype=tf.int64)
        own = tf.boolean_mask(within, self._is_due(within + number * self.length))
        permutation = tf.random.experimental.stateless_shuffle(
            tf.range(self.count, dtype=tf.int64), seed=tf.stack([self.seed, number]), alg="philox"
        )
        return tf.data.Dataset.from_tensor_slices(tf.gather(permutation, own % self.count))

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

    def marked(self, source: Any) -> Any:
        """The elements of `source`, pairs, that are in a part, each with the number of its part as a third value."""
        part_of = np.full(self.count, -1)
        for number, part in enumerate(self.ranges):
            part_of[part.start : part.stop] = number
        numbers = tf.constant(part_of)
        own = source.enumerate().filter(lambda place, _: numbers[place] >= 0)
        return own.map(lambda place, pair: (*pair, numbers[place]))

    def batched(self, marked: Any) -> Any:
        """A batch for each part: of what `marked` gave, the first two values, which may have been mapped since."""
        sizes = tf.constant([len(part) for part in self.ranges], tf.int64)
        largest = max(map(len, self.ranges))
        batches = marked.group_by_window(
            key_func=lambda _, __, number: number,
            reduce_func=lambda _, part: part.map(lambda one, other, _: (one, other)).batch(largest),
            window_size_func=lambda number: sizes[number],
        )
        return batches.apply(tf.data.experimental.assert_cardinality(len(self.ranges)))
