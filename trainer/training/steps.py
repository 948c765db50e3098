"""Steps of training and evaluation: TensorFlow functions that compute on every replica of a strategy.

Keras' own functions are not used. Keras 3's fail under MultiWorkerMirroredStrategy, and Keras 2's read every metric
twice across all replicas in each step. These work with models of both.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from trainer.faults import Unusable
from trainer.settings.settings import TrainingSettings
from trainer.training import keras_models as keras


class Steps:
    """The steps of one compiled model; must be used in its strategy's scope.

    Batches are what `tf.keras.utils.unpack_x_y_sample_weight` takes. A model that overrides `train_step`,
    `test_step` or `compute_metrics` computes with these.
    """

    def __init__(self, model: Any, settings: TrainingSettings) -> None:
        """Nothing is traced before the first step.

        Raises:
            Unusable: the settings need the trainer's step, but the model overrides it.
        """
        self.model = model
        self.settings = settings
        self._train = tf.function(self._distributed_function(self._training_step()), reduce_retracing=True)
        self._test = tf.function(self._distributed_function(self._evaluation_step()), reduce_retracing=True)

    def train(self, batches: Any, count: int) -> Mapping[str, Any]:
        """The metrics of the epoch so far, as tensors, over all replicas and after `count` further steps.

        `batches` is an iterator of a distributed data set. All replicas must call this with the same `count`, at
        most `steps_per_execution`.
        """
        return dict(self._train(batches, *self._count_of(count)))

    def finish(self) -> None:
        """Return when every step that was started is finished; here they are once `train` returns."""

    def evaluate(self, data: Any, steps: int, callbacks: Any) -> dict[str, float]:
        """The metrics over `steps` batches of a distributed data set, each example with the same weight."""
        self.model.reset_metrics()
        callbacks.on_test_begin()
        batches, at_once = iter(data), self.settings.steps_per_execution
        logs: Mapping[str, Any] = {}
        for step in range(0, steps, at_once):
            callbacks.on_test_batch_begin(step)
            end = min(step + at_once, steps)
            logs = self._test(batches, *self._count_of(end - step))
            callbacks.on_test_batch_end(end - 1, logs)
        metrics = {name: float(value) for name, value in logs.items()}
        callbacks.on_test_end(metrics)
        return metrics

    def _count_of(self, count: int) -> tuple[Any, ...]:
        """The number of steps as an argument, where a call may run several."""
        return () if self.settings.steps_per_execution == 1 else (tf.constant(count),)

    def _distributed_function(self, step: Callable[[Any], object]) -> Callable[..., Mapping[str, Any]]:
        """A function that runs `step` on every replica for the next batches, and returns the metrics of all replicas."""
        model, strategy = self.model, self.model.distribute_strategy

        def run_one(batches: Any) -> Mapping[str, Any]:
            strategy.run(step, args=(next(batches),))
            return dict(model.get_metrics_result())

        def run_several(batches: Any, count: Any) -> Mapping[str, Any]:
            for _ in tf.range(count):
                strategy.run(step, args=(next(batches),))
            return dict(model.get_metrics_result())

        # One step without a loop: TensorFlow optimizes its graph better.
        return run_one if self.settings.steps_per_execution == 1 else run_several

    def _training_step(self) -> Callable[[Any], object]:
        model, settings = self.model, self.settings
        if keras.overrides(model, "train_step", "compute_metrics"):
            if settings.jit:
                raise Unusable(
                    f"--jit: the model's class, {type(model).__name__}, has its own train_step or compute_metrics, which "
                    f"the flag would replace. Remove the flag, or the method."
                )
            own_step: Callable[[Any], object] = model.train_step
            return own_step
        gradients_of = self._gradients_of
        if settings.jit:
            gradients_of = tf.function(gradients_of, jit_compile=True, reduce_retracing=True)

        def step(batch: Any) -> None:
            # Keras scales the loss by the number of replicas, and its optimizers add up the replicas' gradients.
            keras.apply_gradients(model, gradients_of(batch))

        return step

    def _evaluation_step(self) -> Callable[[Any], object]:
        model = self.model
        if keras.overrides(model, "test_step", "compute_metrics"):
            own_step: Callable[[Any], object] = model.test_step
            return own_step

        def step(batch: Any) -> None:
            predicted = model(keras.inputs_of(batch), training=False)
            loss = keras.loss_of(model, batch, predicted, training=False)
            keras.update_metrics(model, batch, predicted, loss)

        return step

    def _gradients_of(self, batch: Any) -> list[Any]:
        """The gradients of one replica's batch; updates the metrics and the moving averages of the layers."""
        model = self.model
        with tf.GradientTape() as tape:
            predicted = model(keras.inputs_of(batch), training=True)
            loss = keras.loss_of(model, batch, predicted, training=True)
            scaled = keras.scaled_loss(model.optimizer, loss)
        keras.update_metrics(model, batch, predicted, loss)
        gradients: list[Any] = tape.gradient(scaled, model.trainable_variables)
        return gradients
