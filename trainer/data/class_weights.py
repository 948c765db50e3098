"""The weights that classes give to examples in training, as `fit` takes them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.data.examples import Examples, batch_spec
from trainer.faults import Unusable


def weighting_by_class(examples: Examples) -> Callable[[Any], Any] | None:
    """A function from a batch to one whose weights, or ones, are multiplied with those of the classes; None without these.

    Raises:
        Unusable: the labels are not of one output, or no classes; or the weights are not by class.
    """
    if (by_class := examples.class_weight) is None:
        return None
    is_by_class = isinstance(by_class, Mapping) and by_class
    if not is_by_class or not all(isinstance(key, int | np.integer) and key >= 0 for key in by_class):
        raise Unusable(
            f"class_weight: expected a dictionary from classes, 0 and above, to weights; found {by_class!r:.80}."
        )
    labels = tf.keras.utils.unpack_x_y_sample_weight(batch_spec(examples))[1]
    if tf.nest.is_nested(labels) or labels is None or labels.shape.rank not in {1, 2}:
        raise Unusable(
            f"class_weight: the labels of a batch are {labels}; expected those of one output, [batch] or [batch, "
            f"classes]. Leave class_weight out, and give each example its weight: (x, y, weight)."
        )
    table = [float(by_class.get(number, 1)) for number in range(max(by_class) + 2)]
    is_one_hot, other = labels.shape[1:].num_elements() != 1, len(table) - 1

    def weighted_batch(batch: Any) -> Any:
        x, y, weight = tf.keras.utils.unpack_x_y_sample_weight(batch)
        classes = tf.argmax(y, axis=1) if is_one_hot else tf.cast(tf.reshape(y, [-1]), tf.int64)
        weights = tf.gather(tf.constant(table), tf.where((classes >= 0) & (classes < other), classes, other))
        if weight is not None:
            weights = tf.reshape(weights, [-1, *[1] * (weight.shape.rank - 1)]) * tf.cast(
                weight, weights.dtype
            )
        return x, y, weights

    return weighted_batch
