"""From an encoded image to what the model gets; training, evaluation and serving share it."""

from typing import Any

import tensorflow as tf


def pixels(encoded: Any, image_size: tuple[int, int]) -> Any:
    """One image, string [] (JPEG, PNG, GIF's first frame or BMP), as uint8 [height, width, 3].

    Grey images get three equal channels; an alpha channel is dropped. Aspect is not kept.
    Resizing gives fractions, which are rounded, so that an image from --cache is the one that serving decodes.
    """
    found = tf.io.decode_image(encoded, channels=3, expand_animations=False)
    found.set_shape([None, None, 3])
    resized = tf.image.resize(found, image_size)
    return tf.ensure_shape(tf.cast(tf.round(resized), tf.uint8), [*image_size, 3])


def scaled(images: Any) -> Any:
    """uint8 from 0 to 255, of any shape, as float32 from 0 to 1."""
    # Not a division: of that, TensorFlow makes this multiplication in some functions, an export's for one.
    return tf.cast(images, tf.float32) * (1 / 255)
