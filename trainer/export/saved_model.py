"""The SavedModel: its variables, and functions that serve them.

One traced function from encoded image to class, which training uses too, in place of `model.save`: that
traces every layer again and ties loaders to its classes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.replicas.ending import is_loss_of_peer

REASON_CHARS = 300


def save_model(model: Any, directory: Path, signatures: Mapping[str, Any]) -> None:
    """Write the model's variables and these functions as a SavedModel.

    Saving the Keras model itself would trace every layer again, four times.
    """
    module = tf.Module()
    module.functions = list(signatures.values())
    module.model_variables = model.variables
    module.tables = [
        attribute
        for layer in model._flatten_layers()  # noqa: SLF001 - both Keras have it
        for attribute in vars(layer).values()
        if isinstance(attribute, tf.saved_model.experimental.TrackableResource)
    ]
    tf.saved_model.save(module, str(directory), signatures=dict(signatures))


def save_keras_model(model: Any, path: Path) -> str:
    """Write the file that `load_model` of the model's Keras loads, without the optimizer's slots.

    Returns why Keras cannot save such a model, and then leaves no file; empty if it can.
    """
    optimizer, model.optimizer = model.optimizer, None  # the file keeps what `compile` was given
    try:
        if type(model).get_config is tf.keras.Model.get_config:  # Keras 2 saves what it cannot build again
            type(model).from_config(model.get_config())
        model.save(path)
    except Exception as error:
        if isinstance(error, OSError) or is_loss_of_peer(error):
            raise
        path.unlink(missing_ok=True)
        return " ".join(str(error).split())[:REASON_CHARS].rstrip(".")
    finally:
        model.optimizer = optimizer
    return ""


def plain_serving(model: Any, x: Any) -> dict[str, Any]:
    """One signature, `serving_default`, that takes what the model takes and gives what it gives.

    `x` is the nest of tf.TensorSpec of a batch of inputs. A single tensor is called `inputs`, those of a dictionary as
    in it, and others `inputs_0`, `inputs_1`, …; outputs likewise.
    """
    names = _tensors_by_name(x, "inputs")
    flat = [tf.TensorSpec([None, *spec.shape[1:]], spec.dtype, name=name) for name, spec in names.items()]

    def serve(*tensors: Any) -> dict[str, Any]:
        return _tensors_by_name(model(tf.nest.pack_sequence_as(x, tensors), training=False), "outputs")

    return {"serving_default": tf.function(serve, input_signature=flat)}


def _tensors_by_name(nest: Any, one: str) -> dict[str, Any]:
    """The tensors of a nest, by name."""
    flat = tf.nest.flatten(nest)
    if isinstance(nest, Mapping) and len(flat) == len(nest):
        return {str(name): nest[name] for name in sorted(nest)}
    return {one: flat[0]} if len(flat) == 1 else {f"{one}_{number}": item for number, item in enumerate(flat)}
