"""The model of a run, built the same way by everyone who trains or evaluates it."""

from typing import Any

import tensorflow as tf

from trainer.settings import batch_norm_momentum
from trainer.subject import Subject
from trainer.training import create_training_variables
from trainer.weights import StartingWeights
from trainer.workloads import ModelSpec


def built_model(subject: Subject, *, weights: StartingWeights, strategy: Any, total_steps: int) -> Any:
    """The workload's compiled model in the strategy's scope, with every variable that training needs.

    `total_steps` is how many steps the whole run has: batch normalization's averages follow it.

    Raises:
        Unusable: the model cannot be built for this data.
    """
    settings = subject.settings
    spec = ModelSpec(
        image_size=settings.image_size,
        classes=len(subject.dataset.class_names),
        learning_rate=settings.learning_rate,
        hyperparameters=settings.hyperparameters,
        weights_path=None if weights.path is None else str(weights.path),
    )
    with strategy.scope():
        model = subject.workload.build(spec)
        create_training_variables(model)
    momentum = batch_norm_momentum(settings.batch_norm_momentum, total_steps)
    for layer in model.layers:
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            layer.momentum = momentum
    return model
