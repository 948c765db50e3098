"""Pictures that a downloaded model was not trained on, and the classes that it gives them."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MANIFEST_NAME = "export.json"
UNSEEN_IMAGES = 50


def count_right(model: Path, data_dir: str, log: Path) -> tuple[int, int]:
    """How many of the first test pictures the model classifies correctly, at most UNSEEN_IMAGES, and of how many.

    Args:
        model: the folder of a SavedModel that the trainer exported, with its manifest.
        data_dir: the TFDS data directory that it was trained on.
        log: gets what TensorFlow writes to standard error.

    Raises:
        OSError: the folder holds no manifest, or no SavedModel.
    """
    manifest = json.loads((model / MANIFEST_NAME).read_bytes())
    # TensorFlow then loads Keras, which is not needed here, only when it is used: a third of the start.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    with _errors_to(log):
        import tensorflow as tf
        import tensorflow_datasets as tfds

        builder = tfds.builder(manifest["dataset"]["name"], data_dir=data_dir)
        name_of = builder.info.features["label"].int2str
        raw = {"image": tfds.decode.SkipDecoding()}
        split = builder.as_dataset(split=f"test[:{UNSEEN_IMAGES}]", decoders=raw)
        images, labels = zip(
            *((each["image"], each["label"]) for each in split.as_numpy_iterator()), strict=True
        )
        loaded = tf.saved_model.load(str(model))
        serve = loaded.signatures["serving_default"]
        (argument,) = serve.structured_input_signature[1]
        best = serve(**{argument: tf.constant(list(images))})["probabilities"].numpy().argmax(axis=1)
    names = [manifest["class_names"][index] for index in best]
    return sum(name == name_of(label) for name, label in zip(names, labels, strict=True)), len(names)


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Standard error of this process, native code included, goes to `log`: TensorFlow greets there at import."""
    kept = os.dup(2)
    with log.open("ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
