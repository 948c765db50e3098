"""The model of a run, built the same way by everyone who trains or evaluates it."""

from typing import Any

import tensorflow as tf

from trainer.dataset import Subject
from trainer.settings import batch_norm_momentum
from trainer.weights import StartingWeights
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
        model = subject.workload.build(spec)
        _create_training_variables(model)
    # A metric's result is already that of all replicas. By default Keras adds the replicas' copies of it.
    model.distribute_reduction_method = "first"
    momentum = batch_norm_momentum(flags.batch_norm_momentum, total_steps)
    for layer in model.layers:
        if isinstance(layer, tf.keras.layers.BatchNormalization):
            layer.momentum = momentum
    return model


def _create_training_variables(model: Any) -> None:
    """Create what the first training step would create: optimizer slots and metric variables.

    A tf.function that creates variables is traced twice, and the first trace is thrown away; with
    large models that is seconds. Must be called in the strategy's scope.
    """
    optimizer = model.optimizer
    if isinstance(optimizer, tf.keras.optimizers.legacy.Optimizer):
        optimizer._create_all_weights(model.trainable_variables)  # noqa: SLF001 - the only way in Keras 2, now frozen
    else:
        optimizer.build(model.trainable_variables)
    predictions, labels = tf.zeros([1, *model.output_shape[1:]]), tf.zeros([1], tf.int64)
    model.compiled_loss.build(predictions)
    model.compiled_metrics.build(predictions, labels)
