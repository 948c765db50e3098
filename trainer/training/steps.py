"""Steps of training and evaluation: TensorFlow functions that compute on every replica of a strategy.

Metrics are read between steps and not in each: reading waits for the device and for all replicas.

Keras' own functions are not used. Keras 3's fail under MultiWorkerMirroredStrategy, and Keras 2's read every metric
twice across all replicas in each step. These work with models of both.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import tensorflow as tf

from trainer.data.class_weights import weighting_by_class
from trainer.faults import Unusable
from trainer.settings.settings import TrainingSettings
from trainer.training import keras_models as keras
from trainer.training.reporting import plain_numbers
from trainer.workload import Data

DONE = True  # what a function of steps returns, for coordinators that wait for one


class Steps:
    """The steps of one compiled model; must be used in its strategy's scope.

    Batches are what `tf.keras.utils.unpack_x_y_sample_weight` takes. A model that overrides `train_step`,
    `test_step` or `compute_metrics` computes with these.
    """

    def __init__(self, model: Any, settings: TrainingSettings, data: Data | None = None) -> None:
        """Nothing is traced before the first step. Of `data`, steps do what is `on_device`, and weigh classes.

        Raises:
            Unusable: the settings need the trainer's step, but the model overrides it, or a learning rate that they can
                change, but the model has a schedule.
        """
        self.model = model
        self.settings = self._compiled_settings(settings)
        train, test = self._training_step(), self._evaluation_step()
        if data is not None:
            train = _after(data.training.on_device, _after(weighting_by_class(data.training), train))
            test = _after(data.evaluation.on_device if data.evaluation else None, test)
        # Eagerly where the model is compiled so, which is for looking into a step.
        function: Any = (
            (lambda step: step) if model.run_eagerly else partial(tf.function, reduce_retracing=True)
        )
        self._train = function(self._distributed_function(self._warming_up(self._on_replicas(train))))
        self._test = function(self._distributed_function(self._on_replicas(test)))
        self._read = function(self._metrics_and_mean)

    def _compiled_settings(self, settings: TrainingSettings) -> TrainingSettings:
        """The settings, and where they say nothing, what the model is compiled with."""
        compiled = keras.compiled_with(self.model)
        if self.model.run_eagerly and settings.jit:
            raise Unusable("--jit: the model is compiled with run_eagerly=True. Remove one of the two.")
        at_once = int(compiled.get("steps_per_execution") or 1)
        return replace(
            settings,
            jit=settings.jit or (compiled.get("jit_compile") is True and not self.model.run_eagerly),
            steps_per_execution=settings.steps_per_execution if settings.steps_per_execution > 1 else at_once,
        )

    def train(self, batches: Any, count: int) -> None:
        """Run `count` steps, at most `steps_per_execution`; `batches` is an iterator of a distributed data set.

        All replicas must call this with the same `count`.
        """
        self._train(batches, *self._count_of(count))

    def read_metrics(self, seconds: float = 0.0) -> tuple[dict[str, float], float]:
        """The metrics of the epoch so far, over all replicas, and the mean of the replicas' `seconds`.

        All replicas must call this after the same step.
        """
        metrics, mean = self._read(tf.constant(seconds))
        return plain_numbers(metrics), float(mean)

    def _metrics_and_mean(self, seconds: Any) -> tuple[dict[str, Any], Any]:
        strategy = self.model.distribute_strategy
        mean = strategy.reduce("MEAN", strategy.run(lambda: tf.identity(seconds)), axis=None)
        return dict(self.model.get_metrics_result()), mean

    def has_finite_weights(self) -> bool:
        """Whether no trainable weight is an infinity or not a number."""
        # Not a tf.function: its trace would take ten times as long.
        finite = [tf.reduce_all(tf.math.is_finite(weight)) for weight in self.model.trainable_variables]
        return bool(tf.reduce_all(finite))

    def finish(self) -> None:
        """Return when every step that was started is finished; here they are once `train` returns."""

    def evaluate(
        self, data: Any, steps: int, callbacks: Any, *, reads_each: bool = False
    ) -> dict[str, float]:
        """The metrics over `steps` batches of a distributed data set, each example with the same weight.

        `reads_each`: callbacks get the metrics after each step.
        """
        self.model.reset_metrics()
        callbacks.on_test_begin()
        batches, at_once = iter(data), self.settings.steps_per_execution
        for step in range(0, steps, at_once):
            callbacks.on_test_batch_begin(step)
            end = min(step + at_once, steps)
            self._test(batches, *self._count_of(end - step))
            callbacks.on_test_batch_end(end - 1, self.read_metrics()[0] if reads_each else {})
        metrics, _ = self.read_metrics()
        callbacks.on_test_end(metrics)
        return metrics

    def _count_of(self, count: int) -> tuple[Any, ...]:
        """The number of steps as an argument, where a call may run several."""
        return () if self.settings.steps_per_execution == 1 else (tf.constant(count),)

    def _distributed_function(self, run: Callable[[Any], None]) -> Callable[..., Any]:
        """A function that calls `run`, which takes the next batches."""

        def run_one(batches: Any) -> Any:
            run(batches)
            return DONE

        def run_several(batches: Any, count: Any) -> Any:
            for _ in tf.range(count):
                run(batches)
            return DONE

        # One step without a loop: TensorFlow optimizes its graph better.
        return run_one if self.settings.steps_per_execution == 1 else run_several

    def _on_replicas(self, step: Callable[[Any], object]) -> Callable[[Any], None]:
        """A function that runs `step` on every replica for the next batches."""
        strategy = self.model.distribute_strategy

        def run(batches: Any) -> None:
            strategy.run(step, args=(next(batches),))

        return run

    def _warming_up(self, run: Callable[[Any], None]) -> Callable[[Any], None]:
        """`run`, its first steps at a part of the learning rate. Between steps the rate is whole: callbacks may change it.

        The optimizer counts the steps, so that a restarted run continues the rise.
        """
        if not (steps := self.settings.warmup_steps):
            return run
        optimizer = keras.inner_optimizer(self.model)
        rate = optimizer.learning_rate
        if isinstance(optimizer.get_config().get("learning_rate"), Mapping):
            raise Unusable(
                "--warmup_steps: the model's optimizer has a LearningRateSchedule, which the flag would change. Let the "
                "schedule begin with the warm-up, or remove the flag."
            )

        def run_at_part(batches: Any) -> None:
            whole = tf.convert_to_tensor(rate)
            done = tf.cast(tf.convert_to_tensor(optimizer.iterations), whole.dtype)
            rate.assign(whole * tf.minimum((done + 1) / steps, 1))
            run(batches)
            rate.assign(whole)

        return run_at_part

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


def _after(prepare: Callable[[Any], Any] | None, step: Callable[[Any], object]) -> Callable[[Any], object]:
    """`step`, after what is done to a batch on the device."""
    return step if prepare is None else lambda batch: step(prepare(batch))
