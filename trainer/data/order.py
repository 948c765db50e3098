"""The order in which examples are used, and the part of it that each worker takes.

Places count the examples of a whole run, from 0; pass i through the training split has `length` of them, from
i * `length` on. Which example is at a place depends on the seed, the pass and the place alone, never on the share.

An order of indices, not of files: data sets have fewer files than replicas. `tf.random.experimental.index_shuffle` is
not used, because its permutations of a few hundred examples are far from uniform.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.data.examples import Examples, batched_examples, mapped_data

BUFFERED_EXAMPLES = 10_000


@dataclass(frozen=True, kw_only=True)
class Order:
    """A share of the order of `count` examples, from place `first` on, endless: pairs of a place and an example.

    The share has, of every `block` places, those from `start` to before `stop`.
    """

    block: int
    start: Any  # an int or an int64 tensor
    stop: Any
    seed: int
    count: int
    length: int
    first: int

    def ordered_elements(self, source: Any) -> Any:
        """The elements of `source` in this order: each pass has another permutation.

        `source` is read once, when the first element is needed, and kept. After that, only elements of the share
        are touched, and it makes no difference where the order begins.
        """
        spec, indices = source.element_spec, self._pass_numbers().flat_map(self._places_and_indices)

        def in_order(*kept: Any) -> Any:
            return indices.map(
                lambda place, index: (place, _unpacked_example([column[index] for column in kept], spec))
            )

        return mapped_data(source, _packed_tensors).batch(self.count).flat_map(in_order)

    def buffered_elements(self, source: Any) -> Any:
        """The elements of `source` as they leave a buffer of BUFFERED_EXAMPLES, which each pass fills again.

        Every pass reads all of `source`, and the first one also what is before `first`.
        """

        def through_buffer(number: Any) -> Any:
            shuffled = source.shuffle(
                min(self.count, BUFFERED_EXAMPLES), seed=self.seed + number, reshuffle_each_iteration=False
            )
            return shuffled.repeat().take(self.length).enumerate(number * self.length)

        return self._pass_numbers().flat_map(through_buffer).filter(lambda place, _: self._is_due(place))

    def _pass_numbers(self) -> Any:
        return tf.data.Dataset.counter(self.first // self.length)

    def _is_due(self, places: Any) -> Any:
        """Which of `places`, int64 of any shape, are in the share; bool of the same shape."""
        within = places % self.block
        return (within >= self.start) & (within < self.stop) & (places >= self.first)

    def _places_and_indices(self, number: Any) -> Any:
        """Places and examples of the share in a pass; a split smaller than the pass is repeated in it."""
        within = tf.range(self.length, dtype=tf.int64)
        places = tf.boolean_mask(within, self._is_due(within + number * self.length))
        permutation = tf.random.experimental.stateless_shuffle(
            tf.range(self.count, dtype=tf.int64), seed=tf.stack([self.seed, number]), alg="philox"
        )
        return tf.data.Dataset.from_tensor_slices(
            (places + number * self.length, tf.gather(permutation, places % self.count))
        )


def batches_of(ranges: Sequence[range], of: Examples) -> Any:
    """A batch of decoded examples for each of the ranges, which ascend; only examples that are in one are decoded."""
    mask = np.zeros(ranges[-1].stop, bool)
    for part in ranges:
        mask[part.start : part.stop] = True
    is_own, sizes = tf.constant(mask), [len(part) for part in ranges]
    numbered_examples = of.load().take(len(mask)).enumerate().filter(lambda place, _: is_own[place])
    examples = mapped_data(numbered_examples.map(lambda _, example: example), of.decode)
    if of.pad is None:
        batches = batched_examples(examples, max(sizes), pad=None).rebatch(sizes)
    else:  # padded batches cannot be cut again; windows take longer
        batch_at = tf.constant(np.repeat(np.arange(len(sizes)), sizes))
        batches = examples.enumerate().group_by_window(
            lambda place, _: batch_at[place],
            lambda _, part: batched_examples(part.map(lambda _, example: example), max(sizes), pad=of.pad),
            window_size_func=lambda number: tf.constant(sizes, tf.int64)[number],
        )
    return batches.apply(tf.data.experimental.assert_cardinality(len(ranges)))


def _packed_tensors(example: Any) -> tuple[Any, ...]:
    """The tensors of an example as strings.

    Of many strings, a data set makes one tensor without holding every example twice; and shapes may differ.
    """
    return tuple(map(tf.io.serialize_tensor, tf.nest.flatten(example)))


def _unpacked_example(kept: Sequence[Any], spec: Any) -> Any:
    """The example of this specification that `_packed_tensors` made these of."""
    return tf.nest.pack_sequence_as(
        spec,
        [
            tf.ensure_shape(tf.io.parse_tensor(tensor, of.dtype), of.shape)
            for tensor, of in zip(kept, tf.nest.flatten(spec), strict=True)
        ],
    )
