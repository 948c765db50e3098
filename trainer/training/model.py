"""The model of a run, built in the same way by every replica that trains or evaluates it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from trainer.data.examples import REPAIR_OF_DATA, batch_spec
from trainer.faults import Unusable, is_of_data, reason_of
from trainer.settings.settings import KERAS_BATCH_NORM_MOMENTUM, batch_norm_momentum
from trainer.training.keras_models import build_variables, moving_averages_of_all_replicas
from trainer.workload import TrainingRun

_TOO_FEW = re.compile(r"expected to contain (\d+) elements but contained only (\d+)")  # of assert_cardinality


def built_model(run: TrainingRun, *, strategy: Any, total_steps: int) -> Any:
    """The workload's compiled model in the strategy's scope, with every variable that training needs.

    `total_steps` is how many steps the whole run has: batch normalization's averages follow it.

    Raises:
        Unusable: it is not a compiled Keras model, or it does not fit the data.
    """
    spec = batch_spec(run.data.training)
    if tf.keras.Model.__module__.startswith("keras."):
        raise Unusable(
            "tf.keras is Keras 3 in this program, because it imports tensorflow.keras before trainer, which chooses Keras 2. "
            "Import trainer first."
        )
    with strategy.scope():
        with moving_averages_of_all_replicas():
            model = run.workload.build(run)
        if getattr(model, "optimizer", None) is None:
            raise Unusable(
                f"The function that builds the model returned a {type(model).__name__} that is not compiled; "
                f"expected a model of tf.keras or keras. Call model.compile(...) and return the model."
            )
        with fitting(spec):
            build_variables(model, spec)
    for layer in model._flatten_layers():  # noqa: SLF001 - those of a nested model, too; both Keras have it
        # By name, as it may be of either Keras.
        normalizes = any(kind.__name__ == "BatchNormalization" for kind in type(layer).__mro__)
        if normalizes and layer.momentum == KERAS_BATCH_NORM_MOMENTUM:
            layer.momentum = batch_norm_momentum(total_steps)
    return model


@contextmanager
def fitting(spec: Any) -> Iterator[None]:
    """A context in which model and data meet for the first time.

    Raises:
        Unusable: TensorFlow or Keras refuses their shapes or types, or an example cannot be read.
    """
    try:
        yield
    except (
        ValueError,
        TypeError,
        tf.errors.InvalidArgumentError,
        tf.errors.FailedPreconditionError,
    ) as error:
        too_few = _TOO_FEW.search(str(error))
        is_other = isinstance(error, tf.errors.FailedPreconditionError) and not too_few
        if "ollective" in str(error) or is_other:  # a peer's fault
            raise
        if too_few:
            raise Unusable(
                f"The examples: count={too_few[1]}, but load() has only {too_few[2]}. Correct or remove it."
            ) from error
        if is_of_data(error):
            raise Unusable(f"An example cannot be read: {reason_of(error)}. {REPAIR_OF_DATA}") from error
        why = f"{reason_of(error)}. A batch is {_types_and_shapes(spec)}."
        if tf.keras.utils.unpack_x_y_sample_weight(spec)[1] is None:
            raise Unusable(
                f"The examples have no labels, and the model cannot be trained on them: {why} Give pairs (inputs, labels) "
                f"if the loss needs labels; else correct the shapes or types of the data."
            ) from error
        raise Unusable(
            f"The model does not fit the data: {why} Correct the shapes or types of the data, or those that the model "
            f"and its loss take."
        ) from error


def _types_and_shapes(nest: Any) -> str:
    """Types and shapes of the tensors of a nest."""
    words = tf.nest.map_structure(lambda spec: f"{spec.dtype.name} {list(spec.shape)}", nest)
    return str(words).replace("'", "")
