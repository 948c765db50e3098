"""From an encoded image to what the model takes. Training and serving share it, so they cannot differ."""

from typing import Any

import tensorflow as tf


def decoded(encoded: Any, image_size: tuple[int, int]) -> Any:
    """One image, string [] (JPEG, PNG, GIF's first frame or BMP), as float32 [height, width, 3] from 0 to 1.

    Grey images get three equal channels; an alpha channel is dropped. Aspect is not kept.
    """
    pixels = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    pixels.set_shape([None, None, 3])
    resized = tf.image.resize(pixels, image_size)
    return tf.ensure_shape(resized, [*image_size, 3]) / 255.0
