"""The model of a run, built the same way by everyone who trains or evaluates it."""

from typing import Any

import tensorflow as tf

from trainer.data.dataset import Subject
from trainer.training.keras_models import build_variables, moving_averages_of_all_replicas
from trainer.training.settings import batch_norm_momentum
from trainer.training.weights import StartingWeights
from trainer.workloads import ModelSpec


def built_model(subject: Subject, *, weights: StartingWeights, strategy: Any, total_steps: int) -> Any:
    """The workload's compiled model in the strategy's scope, with every variable that training needs.

    `total_steps` is how many steps the whole run has: batch normalization's averages follow it.

    Raises:
        Unusable: the model cannot be built for this data.
    """
    flags = subject.flags
    spec = ModelSpec(
        image_size=flags.image_size,
        classes=len(subject.dataset.class_names),
        learning_rate=flags.learning_rate,
        hyperparameters=flags.hyperparameters,
        weights_path=None if weights.path is None else str(weights.path),
    )
    with strategy.scope():
        with moving_averages_of_all_replicas():
            model = subject.workload.build(spec)
        build_variables(model)
    momentum = batch_norm_momentum(flags.batch_norm_momentum, total_steps)
    for layer in model._flatten_layers():  # noqa: SLF001 - those of a nested model, too; both Keras have it
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            layer.momentum = momentum
    return model
