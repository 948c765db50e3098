"""The way from an encoded image to its class, which training, evaluation and serving share."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def decoded_pixels(encoded: Any, image_size: tuple[int, int]) -> Any:
    """One image, string [] (JPEG, PNG, GIF's first frame or BMP), as uint8 [height, width, 3].

    Grey images get three equal channels; an alpha channel is dropped. Aspect is not kept.
    Resizing gives fractions, which are rounded, so that an image from --cache is the one that serving decodes.
    """
    image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    resized = tf.image.resize(image, image_size)
    return tf.ensure_shape(tf.cast(tf.round(resized), tf.uint8), [*image_size, 3])


def scaled_images(images: Any) -> Any:
    """uint8 from 0 to 255, of any shape, as float32 from 0 to 1."""
    # Not a division: of that, TensorFlow makes this multiplication in some functions, an export's for one.
    return tf.cast(images, tf.float32) * (1 / 255)


def serving_signatures(model: Any, image_size: tuple[int, int], class_names: Sequence[str]) -> dict[str, Any]:
    """One signature, `serving_default`.

    Takes `image_bytes`, string [batch]: encoded images of any size. Gives `probabilities`, float32
    [batch, classes], and `class_name`, string [batch]: the most probable one. (Vertex AI sends inputs
    whose name ends in `_bytes` as base64.)
    """

    def serve(image_bytes: Any) -> dict[str, Any]:
        decoded = tf.TensorSpec([*image_size, 3], tf.uint8)
        images = tf.map_fn(
            lambda image: decoded_pixels(image, image_size), image_bytes, fn_output_signature=decoded
        )
        given = model(scaled_images(images), training=False)
        # One sigmoid unit is the probability of the second of two classes.
        probabilities = tf.concat([1 - given, given], axis=1) if given.shape[-1] == 1 else given
        names = tf.gather(list(class_names), tf.argmax(probabilities, axis=1))
        return {"probabilities": probabilities, "class_name": names}

    specification = [tf.TensorSpec([None], tf.string, name="image_bytes")]
    return {"serving_default": tf.function(serve, input_signature=specification)}
