"""The signature of an exported classifier: from encoded image to class."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trainer.images.pixels import pixels, scaled


def serving(model: Any, image_size: tuple[int, int], class_names: Sequence[str]) -> dict[str, Any]:
    """One signature, `serving_default`.

    Takes `image_bytes`, string [batch]: encoded images of any size. Gives `probabilities`, float32
    [batch, classes], and `class_name`, string [batch]: the most probable one. (Vertex AI sends inputs
    whose name ends in `_bytes` as base64.)
    """

    def serve(image_bytes: Any) -> dict[str, Any]:
        images = tf.map_fn(
            lambda encoded: pixels(encoded, image_size),
            image_bytes,
            fn_output_signature=tf.TensorSpec([*image_size, 3], tf.uint8),
        )
        probabilities = class_probabilities(model(scaled(images), training=False))
        return {
            "probabilities": probabilities,
            "class_name": tf.gather(list(class_names), tf.argmax(probabilities, axis=1)),
        }

    specification = [tf.TensorSpec([None], tf.string, name="image_bytes")]
    return {"serving_default": tf.function(serve, input_signature=specification)}


def class_probabilities(outputs: Any) -> Any:
    """float32 [batch, classes]; one sigmoid unit, [batch, 1], is the second of two classes."""
    return tf.concat([1 - outputs, outputs], axis=1) if outputs.shape[-1] == 1 else outputs
