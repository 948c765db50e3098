"""The SavedModel: it serves the trained model, from encoded image to class."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.data.images import pixels, scaled
from trainer.replicas.cluster import Cluster


def class_probabilities(outputs: Any) -> Any:
    """float32 [batch, classes]; one sigmoid unit, [batch, 1], is the second of two classes."""
    return tf.concat([1 - outputs, outputs], axis=1) if outputs.shape[-1] == 1 else outputs


@contextmanager
def export_directory(model_dir: Path, cluster: Cluster) -> Iterator[Path]:
    """The directory that this replica saves to: the run's for the chief, else a temporary one."""
    if cluster.is_chief:
        model_dir.mkdir(parents=True, exist_ok=True)
        yield model_dir
        return
    with tempfile.TemporaryDirectory(prefix=f"trainer-{cluster.replica}-model-") as scratch:
        yield Path(scratch)


def save_model(
    model: Any, directory: Path, *, image_size: tuple[int, int], class_names: Sequence[str]
) -> None:
    """Write `model` as a SavedModel with one signature, `serving_default`. Every replica must call this.

    Takes `image_bytes`, string [batch]: encoded images of any size. Gives `probabilities`, float32
    [batch, classes], and `class_name`, string [batch]: the most probable one. (Vertex AI sends inputs
    whose name ends in `_bytes` as base64.)

    Only the variables and this one function are saved. Saving the Keras model itself would trace
    every layer again, four times.
    """
    names = tf.constant(list(class_names))

    def serve(image_bytes: Any) -> dict[str, Any]:
        images = tf.map_fn(
            lambda encoded: pixels(encoded, image_size),
            image_bytes,
            fn_output_signature=tf.TensorSpec([*image_size, 3], tf.uint8),
        )
        probabilities = class_probabilities(model(scaled(images), training=False))
        return {
            "probabilities": probabilities,
            "class_name": tf.gather(names, tf.argmax(probabilities, axis=1)),
        }

    module = tf.Module()
    module.serve = tf.function(serve, input_signature=[tf.TensorSpec([None], tf.string, name="image_bytes")])
    module.model_variables = model.variables
    module.class_names = names
    tf.saved_model.save(module, str(directory), signatures={"serving_default": module.serve})
