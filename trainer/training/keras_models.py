"""The differences between models of Keras 2, which `tf.keras` is here, and of Keras 3, which `import keras` is."""

import hashlib
import importlib
from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

KERAS_2 = "tf_keras."
_OF_KERAS = (KERAS_2, "keras.")
_KERAS_3_AVERAGES = ("moving_mean", "moving_variance")  # Keras 2's names begin with the layer's


def is_keras_2(model: Any) -> bool:
    return any(kind.__module__.startswith(KERAS_2) for kind in type(model).__mro__)


def overrides(model: Any, *methods: str) -> bool:
    """Whether the model's class defines one of these methods itself, in place of Keras'."""
    return any(not getattr(type(model), name).__module__.startswith(_OF_KERAS) for name in methods)


def keras_of(model: Any) -> Any:
    """The module of the model's Keras."""
    return tf.keras if is_keras_2(model) else importlib.import_module("keras")


def metrics_to_save(model: Any) -> Any:
    """What a checkpoint can hold of the metrics; those of Keras 3 are no objects that TensorFlow tracks."""
    return model.metrics if is_keras_2(model) else model.metrics_variables


def compiled_with(model: Any) -> dict[str, Any]:
    """The arguments that `compile` was given, as far as Keras kept them."""
    return dict(getattr(getattr(model, "_compile_config", None), "config", {}))


def variables_digest(variables: Iterable[Any]) -> str:
    """SHA-256 of these values, in their order. All replicas must call this for variables that are averaged when read."""
    digest = hashlib.sha256()
    for variable in variables:
        digest.update(tf.convert_to_tensor(variable).numpy().tobytes())
    return digest.hexdigest()


def optimizer_digest(optimizer: Any) -> str:
    """Of an optimizer's single numbers, such as the learning rate, which no attribute lists for all optimizers."""
    parts = tf.train.TrackableView(optimizer).descendants()
    return variables_digest(
        part for part in parts if hasattr(part, "assign") and getattr(part, "shape", None) == ()
    )


def set_mixed_precision(floats: str) -> None:
    """Mixed precision with these floats, `bfloat16` or `float16`, in models of both that are built from now on."""
    tf.keras.mixed_precision.set_global_policy(f"mixed_{floats}")
    importlib.import_module("keras").config.set_dtype_policy(f"mixed_{floats}")


def moving_averages_of_all_replicas() -> Any:
    """A context in which the moving averages of a model are created as Keras 2 creates them.

    Each replica updates its copy, and a reader outside of steps, a checkpoint for example, gets their mean. Keras 3
    (3.15) lets every replica update a copy, too, but a reader gets the first replica's.
    """

    def create(next_creator: Callable[..., Any], **how: Any) -> Any:
        if how.get("name") in _KERAS_3_AVERAGES:
            how["synchronization"] = tf.VariableSynchronization.ON_READ
            how["aggregation"] = tf.VariableAggregation.MEAN
        return next_creator(**how)

    return tf.variable_creator_scope(create)


def build_variables(model: Any, batch: Any) -> None:
    """Create what the first training step would create: optimizer slots and metric variables.

    `batch` is the nest of tf.TensorSpec of a batch. A tf.function that creates variables is traced twice, and the first
    trace is thrown away; with large models that is seconds. Must be called in the strategy's scope, after `compile`.
    """
    optimizer, example = model.optimizer, tf.nest.map_structure(_one_of_zeros, batch)
    x, y, _ = tf.keras.utils.unpack_x_y_sample_weight(example)
    if not is_keras_2(model):
        model._symbolic_build(data_batch=(x, y))  # noqa: SLF001 - what `fit` calls under a strategy
        return
    known = getattr(model, "output", None)  # of a functional model; others compute once
    predictions = model(x) if known is None else tf.nest.map_structure(_one_of_zeros, known)
    if isinstance(optimizer, tf.keras.optimizers.legacy.Optimizer):
        optimizer._create_all_weights(model.trainable_variables)  # noqa: SLF001 - the only way in Keras 2, now frozen
    else:
        optimizer.build(model.trainable_variables)
    model.compiled_loss.build(predictions)
    if y is not None:
        model.compiled_metrics.build(predictions, y)


def _one_of_zeros(spec: Any) -> Any:
    """A batch of one tensor like this one."""
    return tf.zeros([1, *(size or 1 for size in spec.shape[1:])], spec.dtype)


def metrics_known(model: Any) -> list[str] | None:
    """The names of a built model's metrics, to which Keras 3 adds those of its outputs; None if only a step shows them.

    Reads no metric: that would wait for all replicas, and some of Keras' have no result before their first batch.
    """
    metrics = [metric for of in model.metrics for metric in getattr(of, "metrics", None) or [of]]
    if overrides(model, "train_step", "test_step", "compute_metrics", "get_metrics_result") or not all(
        type(metric).__module__.startswith(_OF_KERAS) for metric in metrics
    ):
        return None
    return [metric.name for metric in metrics]


def inputs_of(batch: Any) -> Any:
    return tf.keras.utils.unpack_x_y_sample_weight(batch)[0]


def loss_of(model: Any, batch: Any, predicted: Any, *, training: bool) -> Any:
    """The loss with the regularization losses, float [], divided by the number of replicas in sync."""
    x, y, weight = tf.keras.utils.unpack_x_y_sample_weight(batch)
    if is_keras_2(model):
        return model.compute_loss(x, y, predicted, weight)
    return model.compute_loss(x=x, y=y, y_pred=predicted, sample_weight=weight, training=training)


def update_metrics(model: Any, batch: Any, predicted: Any, loss: Any) -> None:
    """Add a replica's batch to the metrics. Reads no metric: that would wait for all replicas."""
    x, y, weight = tf.keras.utils.unpack_x_y_sample_weight(batch)
    if is_keras_2(model):  # its `compute_loss` has updated the metric `loss`
        model.compiled_metrics.update_state(y, predicted, weight)
        return
    examples = tf.shape(tf.nest.flatten(x)[0])[0]
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    model._loss_tracker.update_state(loss * tf.cast(replicas, loss.dtype), sample_weight=examples)  # noqa: SLF001
    if model._compile_metrics is not None:  # noqa: SLF001 - `compute_metrics` would read them, too
        model._compile_metrics.update_state(y, predicted, weight)  # noqa: SLF001


def inner_optimizer(model: Any) -> Any:
    """The model's optimizer, without the one of mixed_float16 around it, which scales the loss."""
    return getattr(model.optimizer, "inner_optimizer", model.optimizer)


def scaled_loss(optimizer: Any, loss: Any) -> Any:
    """`loss`, multiplied as the optimizer's loss scaling asks; mixed_float16 has one."""
    if hasattr(optimizer, "get_scaled_loss"):
        return optimizer.get_scaled_loss(loss)
    return optimizer.scale_loss(loss) if hasattr(optimizer, "scale_loss") else loss


def apply_gradients(model: Any, gradients: list[Any]) -> None:
    """Update the weights with the sum of the replicas' gradients of the scaled loss."""
    optimizer = model.optimizer
    if hasattr(optimizer, "get_unscaled_gradients"):
        gradients = optimizer.get_unscaled_gradients(gradients)
    elif hasattr(optimizer, "dynamic_scale"):  # Keras 3's loss scaling, which divides by the scale itself
        gradients = _finite_on_all_replicas_or_none(gradients)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


def _finite_on_all_replicas_or_none(gradients: list[Any]) -> list[Any]:
    """The gradients; not a number where any replica has one that is not finite.

    To skip a step that overflowed, Keras 3.15 looks at the gradients of the first replica alone.
    """
    lost = [tf.math.count_nonzero(~tf.math.is_finite(grad)) for grad in gradients if grad is not None]
    count = tf.distribute.get_replica_context().all_reduce("SUM", tf.cast(tf.add_n(lost), tf.float32))
    return [
        grad if grad is None else tf.where(count > 0, tf.constant(float("nan"), grad.dtype), grad)
        for grad in gradients
    ]
