"""What the trainer's steps leave in small models on two devices, as JSON by case: `python -m` this module."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import trainer  # noqa: F401  # chooses what tf.keras is, before TensorFlow is loaded

import keras as keras_3  # isort: skip
import numpy as np  # isort: skip
import tensorflow as tf  # isort: skip

from trainer.data.examples import Examples
from trainer.faults import Unusable
from trainer.parameter_server.steps import CoordinatedSteps, require_one_output
from trainer.replicas.cluster import ClusterSpec
from trainer.settings.settings import TrainingSettings
from trainer.storage import outputs_from
from trainer.training.keras_models import build_variables, moving_averages_of_all_replicas
from trainer.training.model import built_model
from trainer.training.steps import Steps
from trainer.workload import Data, TrainingRun, Workload

keras_2: Any = tf.keras  # TensorFlow has no types
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
STRATEGY = tf.distribute.MirroredStrategy()
BATCH, STEPS = 8, 4
RANDOM_NUMBERS = np.random.default_rng(3)
IMAGES = RANDOM_NUMBERS.random((BATCH * STEPS + 6, 8, 8, 3), dtype=np.float32)  # the last batch is smaller
LABELS = RANDOM_NUMBERS.integers(0, 3, len(IMAGES))

ONE_AT_A_TIME = TrainingSettings()
WARMUP_STEPS = 3
WARMING = TrainingSettings(warmup_steps=WARMUP_STEPS)
COMPILED = TrainingSettings(jit=True, steps_per_execution=3)
SPEC = (tf.TensorSpec([None, 8, 8, 3]), tf.TensorSpec([None], tf.int64))


class OwnStep(tf.keras.Sequential):  # type: ignore[misc]  # TensorFlow has no types
    """Each step ends with a bias of ones."""

    def train_step(self, batch: Any) -> Any:
        found = super().train_step(batch)
        self.layers[-1].bias.assign(tf.ones([3]))
        return found


def small_model(keras: Any, *, kind: Any = None, optimizer: Any = None, momentum: float = 0.5) -> Any:
    """A compiled model with a nested backbone and a regularization loss."""
    keras.utils.set_random_seed(5)
    layers = keras.layers
    with moving_averages_of_all_replicas():
        backbone = keras.Sequential(
            [
                layers.Input((8, 8, 3)),
                layers.Conv2D(4, 3, kernel_regularizer=keras.regularizers.L2(0.1)),
                layers.BatchNormalization(momentum=momentum),
                layers.GlobalAveragePooling2D(),
            ]
        )
        head = layers.Dense(3, activation="softmax", dtype="float32")
        model = (kind or keras.Sequential)([layers.Input((8, 8, 3)), backbone, head])
    model.compile(
        optimizer=optimizer or keras.optimizers.SGD(0.1, momentum=0.9),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    return model


HALVES = Examples(
    lambda: tf.data.Dataset.from_tensor_slices((IMAGES / 2, LABELS)),
    on_device=lambda batch: (batch[0] * 2, batch[1]),
)
"""Examples that are IMAGES again on the device."""


def data(*, endless: bool = True, halves: bool = False) -> Any:
    examples = HALVES.load() if halves else tf.data.Dataset.from_tensor_slices((IMAGES, LABELS))
    batches = (
        examples.take(BATCH * STEPS).repeat().batch(BATCH, drop_remainder=True)
        if endless
        else examples.batch(BATCH)
    )
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return STRATEGY.experimental_distribute_dataset(batches.with_options(options))


def contents(model: Any, logs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "moving means": [
            each.numpy().tolist() for each in model.non_trainable_variables if "moving_mean" in each.name
        ],
        "weights": [np.asarray(each.numpy()).ravel().tolist() for each in model.weights],
        "logs": {name: float(value) for name, value in logs.items()},
        "rate": float(tf.convert_to_tensor(model.optimizer.learning_rate)),
    }


def trained(
    keras: Any, settings: TrainingSettings = ONE_AT_A_TIME, *, halves: bool = False, **how: Any
) -> dict[str, Any]:
    """A model after STEPS steps, `steps_per_execution` at a time."""
    with STRATEGY.scope():
        model = small_model(keras, **how)
        build_variables(model, SPEC)
        steps = Steps(model, settings, Data(training=HALVES) if halves else None)
        batches = iter(data(halves=halves))
        for first in range(0, STEPS, settings.steps_per_execution):
            steps.train(batches, min(settings.steps_per_execution, STEPS - first))
        return contents(model, steps.read_metrics()[0])


def fitted() -> dict[str, Any]:
    """A model after the steps of Keras 2's `fit`."""
    with STRATEGY.scope():
        model = small_model(keras_2)
        step, batches = model.make_train_function(), iter(data())
        for _ in range(STEPS):
            step(batches)
        return contents(model, model.get_metrics_result())


def warmed_by_hand(keras: Any) -> dict[str, Any]:
    """A model after STEPS steps, of whose learning rate the first has a quarter, and from the fourth on all have the whole."""
    with STRATEGY.scope():
        model = small_model(keras)
        build_variables(model, SPEC)
        steps, batches = Steps(model, ONE_AT_A_TIME), iter(data())
        whole = tf.convert_to_tensor(model.optimizer.learning_rate)
        for number in range(STEPS):
            model.optimizer.learning_rate.assign(whole * min((number + 1) / WARMUP_STEPS, 1))
            steps.train(batches, 1)
        model.optimizer.learning_rate.assign(whole)
        return contents(model, steps.read_metrics()[0])


def with_schedule(keras: Any, of: Any) -> str:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    return refused(lambda: Steps(small_model(keras, optimizer=of.SGD(schedule)), WARMING))


def evaluated(keras: Any, per_execution: int = 1) -> dict[str, Any]:
    """The metrics by the trainer's steps, of several at once from halves, and computed from all predictions."""
    halves = per_execution > 1
    with STRATEGY.scope():
        model = small_model(keras)
        build_variables(model, SPEC)
        of = Data(training=HALVES, evaluation=HALVES) if halves else None
        steps = Steps(model, TrainingSettings(steps_per_execution=per_execution), of)
        examples = data(endless=False, halves=halves)
        by_steps = steps.evaluate(examples, STEPS + 1, keras_2.callbacks.CallbackList())
    predicted = np.asarray(model(IMAGES, training=False))
    loss = -np.log(predicted[np.arange(len(LABELS)), LABELS]).mean() + sum(map(float, model.losses))
    whole = {"loss": float(loss), "accuracy": float((predicted.argmax(axis=1) == LABELS).mean())}
    return {"by steps": by_steps, "whole": whole}


def overflowed(keras: Any) -> list[Any]:
    """Trainable weights at the start, after a step whose gradients overflow, and once the scale has come down."""
    precision = keras.mixed_precision
    choose = getattr(precision, "set_global_policy", None) or precision.set_dtype_policy
    choose("mixed_float16")
    try:
        with STRATEGY.scope():
            optimizer = precision.LossScaleOptimizer(keras.optimizers.Adam(0.1), initial_scale=2.0**40)
            model = small_model(keras, optimizer=optimizer)
            build_variables(model, SPEC)
            steps, batches = Steps(model, ONE_AT_A_TIME), iter(data())
            found = []
            for count in (0, 1, 40):
                for _ in range(count):
                    steps.train(batches, 1)
                found.append([each.numpy().ravel().tolist() for each in model.trainable_variables])
            return found
    finally:
        choose("float32")


def refused(make: Callable[[], object]) -> str:
    """Why the steps cannot be made."""
    try:
        make()
    except Unusable as unusable:
        return str(unusable)
    return ""


def nested_momentum() -> list[float]:
    """Of batch normalization in the backbone of a run with 50 steps: of Keras' default, and of the model's own choice."""
    return [*momenta(built_with(0.99)), *momenta(built_with(0.5))]


def built_with(momentum: float) -> Any:
    examples = Examples(lambda: tf.data.Dataset.from_tensor_slices((IMAGES, LABELS)))
    run = TrainingRun(
        workload=Workload(
            build=lambda _: small_model(keras_2, momentum=momentum), data=lambda _: Data(training=examples)
        ),
        settings=TrainingSettings(),
        cluster=ClusterSpec(),
        outputs=outputs_from({}, None),
        environment={},
    )
    return built_model(run.with_data(), strategy=STRATEGY, total_steps=50)


def momenta(model: Any) -> list[float]:
    (backbone,) = (layer for layer in model.layers if hasattr(layer, "layers"))
    return [layer.momentum for layer in backbone.layers if hasattr(layer, "momentum")]


CASES: Mapping[str, Callable[[], Any]] = {
    "by fit": fitted,
    "halves": lambda: trained(keras_2, halves=True),
    "warming up, three at once": lambda: trained(
        keras_2, TrainingSettings(warmup_steps=WARMUP_STEPS, steps_per_execution=3)
    ),
    "warming up with a legacy schedule": lambda: with_schedule(keras_2, keras_2.optimizers.legacy),
    "own step": lambda: trained(keras_2, kind=OwnStep),
    "own step, compiled": lambda: refused(
        lambda: Steps(small_model(keras_2, kind=OwnStep), TrainingSettings(jit=True))
    ),
    "Keras 3 with parameter servers": lambda: refused(
        lambda: CoordinatedSteps(small_model(keras_3), ONE_AT_A_TIME, None)
    ),
    "two outputs with parameter servers": lambda: refused(
        lambda: require_one_output((SPEC[0], {"a": SPEC[1], "b": SPEC[1]}))
    ),
    "nested momentum": nested_momentum,
} | {
    f"{name} of Keras {number}": case
    for number, keras in ((2, keras_2), (3, keras_3))
    for name, case in {
        "plain": lambda keras=keras: trained(keras),
        "warming up": lambda keras=keras: trained(keras, WARMING),
        "warmed by hand": lambda keras=keras: warmed_by_hand(keras),
        "warming up with a schedule": lambda keras=keras: with_schedule(keras, keras.optimizers),
        "compiled, three at once": lambda keras=keras: trained(keras, COMPILED),
        "evaluated": lambda keras=keras: evaluated(keras, 3 if keras is keras_3 else 1),
        "overflowed": lambda keras=keras: overflowed(keras),
    }.items()
}

if __name__ == "__main__":
    Path("cases.json").write_text(json.dumps({name: case() for name, case in CASES.items()}))
