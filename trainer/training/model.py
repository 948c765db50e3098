"""The model of a run, built the same way by everyone who trains or evaluates it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from trainer.data.examples import batch_spec
from trainer.faults import Unusable, reason_of
from trainer.settings.numbers import KERAS_BATCH_NORM_MOMENTUM, batch_norm_momentum
from trainer.settings.settings import HEAD
from trainer.training.backbone import freeze_backbone
from trainer.training.keras_models import build_variables, moving_averages_of_all_replicas
from trainer.workload import Run


def built_model(run: Run, *, strategy: Any, total_steps: int) -> Any:
    """The workload's compiled model in the strategy's scope, with every variable that training needs.

    `total_steps` is how many steps the whole run has: batch normalization's averages follow it.

    Raises:
        Unusable: it is not a compiled Keras model, or it does not fit the data.
    """
    spec = batch_spec(run.data.training)
    with strategy.scope():
        with moving_averages_of_all_replicas():
            model = run.workload.build(run)
        if getattr(model, "optimizer", None) is None:
            raise Unusable(
                f"The function that builds the model returned a {type(model).__name__} that is not compiled; "
                f"expected a model of tf.keras or keras. Call model.compile(...) and return the model."
            )
        if run.settings.train == HEAD:
            freeze_backbone(model, str(run.workload.head))
        with fitting(spec):
            build_variables(model, spec)
    momentum = batch_norm_momentum(run.settings.batch_norm_momentum, total_steps)
    for layer in model._flatten_layers():  # noqa: SLF001 - those of a nested model, too; both Keras have it
        normalizes = any(
            kind.__name__ == "BatchNormalization" for kind in type(layer).__mro__
        )  # of either Keras
        if normalizes and (run.settings.batch_norm_momentum or layer.momentum == KERAS_BATCH_NORM_MOMENTUM):
            layer.momentum = momentum
    return model


@contextmanager
def fitting(spec: Any) -> Iterator[None]:
    """A context in which model and data meet for the first time.

    Raises:
        Unusable: TensorFlow or Keras refuses their shapes or types.
    """
    try:
        yield
    except (ValueError, TypeError, tf.errors.InvalidArgumentError) as error:
        if "ollective" in str(error):  # a peer's fault
            raise
        raise Unusable(
            f"The model does not fit the data: {reason_of(error)}. A batch is {_words(spec)}. Correct the shapes or "
            f"types of the data, or those that the model and its loss take."
        ) from error


def _words(nest: Any) -> str:
    """Types and shapes of the tensors of a nest."""
    found = tf.nest.map_structure(lambda each: f"{each.dtype.name} {list(each.shape)}", nest)
    return str(found).replace("'", "")
