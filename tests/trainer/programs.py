"""Programs of users, as small as may be: `python -m tests.trainer.programs NAME FOLDER [flags]`."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainer import survive

# isort: split
import keras as keras_3
import numpy as np
import tensorflow as tf

COUNT, SIDE = 40, 4
RANDOM = np.random.default_rng(5)
ROOMS = RANDOM.random((COUNT, 3), dtype=np.float32)
TOWNS = RANDOM.integers(0, 4, COUNT)
PRICES = (ROOMS.sum(axis=1) + TOWNS).astype(np.float32)


def houses() -> Any:
    """Two inputs and two outputs, by name."""
    keras, layers = tf.keras, tf.keras.layers
    rooms, town = layers.Input((3,), name="rooms"), layers.Input((), dtype="int64", name="town")
    hidden = layers.Concatenate()([rooms, layers.Embedding(4, 2)(town)])
    outputs = {
        "price": layers.Dense(1, name="price")(hidden),
        "is_dear": layers.Dense(1, activation="sigmoid", name="is_dear")(hidden),
    }
    model = keras.Model({"rooms": rooms, "town": town}, outputs)
    model.compile(
        keras.optimizers.SGD(0.05),
        loss={"price": "mse", "is_dear": "binary_crossentropy"},
        metrics={"is_dear": ["accuracy"]},
    )
    return model


def sold() -> Any:
    labels = {"price": PRICES[:, np.newaxis], "is_dear": (PRICES.mean() < PRICES)[:, np.newaxis]}
    return tf.data.Dataset.from_tensor_slices(({"rooms": ROOMS, "town": TOWNS}, labels))


class Stop(tf.keras.callbacks.Callback):  # type: ignore[misc]  # TensorFlow has no types
    """Ends the training after the second epoch."""

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        assert "val_price_loss" in logs
        self.model.stop_training = epoch == 1


def tabular(_: Path, settings: survive.TrainingSettings) -> None:
    examples = survive.Examples(sold)
    metrics = survive.run(houses, examples, examples, settings=settings, callbacks=[Stop()])
    Path(settings.job_dir or "", f"{os.environ.get('NAME', 'chief')}.returned").write_text(
        str(metrics["val_loss"])
    )


def write_records(path: str) -> None:
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(COUNT):
            picture = RANDOM.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
            writer.write(tf.make_tensor_proto(picture).SerializeToString())


def parsed(record: Any) -> Any:
    """A picture and its kind."""
    picture = tf.ensure_shape(tf.io.parse_tensor(record, tf.uint8), [SIDE, SIDE, 3])
    return picture, tf.cast(picture[0, 0, 0], tf.int64) % 3


def brighter(example: Any, seed: Any) -> Any:
    picture, kind = example
    picture = tf.image.stateless_random_brightness(picture, 0.3, seed)
    return tf.image.stateless_random_flip_left_right(picture, seed), kind


def pictures() -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input((SIDE, SIDE, 3)), layers.Flatten(), layers.Dense(3, activation="softmax")]
    )
    model.compile(tf.keras.optimizers.legacy.Adam(0.01), "sparse_categorical_crossentropy", ["accuracy"])
    return model


class Crash(tf.keras.callbacks.Callback):  # type: ignore[misc]  # as above
    """Ends the process in the second epoch, where the environment asks for it."""

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:  # noqa: ARG002 - Keras' signature
        epoch = int(self.model.optimizer.iterations) // self.params["steps"]
        if os.environ.get("CRASH") and epoch == 1 and batch == 3:
            os._exit(9)


def records(folder: Path, settings: survive.TrainingSettings) -> None:
    path = folder / "pictures.tfrecord"
    if not path.exists():
        write_records(str(path))
    examples = survive.Examples(
        lambda: tf.data.TFRecordDataset(str(path)),
        decode=parsed,
        augment=brighter,
        batch=lambda batch: (tf.cast(batch[0], tf.float32) / 255, batch[1]),
    )
    stop = tf.keras.callbacks.EarlyStopping("loss", min_delta=100, patience=2)  # after the third epoch
    survive.run(pictures, examples, settings=settings, callbacks=lambda: [Crash(), stop], name="pictures")


def lines(folder: Path, settings: survive.TrainingSettings) -> None:
    """Text, one example a line, through a layer that looks words up."""

    def build() -> Any:
        layers = tf.keras.layers
        words = layers.TextVectorization(vocabulary=["good", "bad", "film"], output_sequence_length=4)
        model = tf.keras.Sequential(
            [
                layers.Input((), dtype="string"), words, layers.Embedding(5, 2), layers.GlobalAveragePooling1D(),
                layers.Dense(1, activation="sigmoid"),
            ]
        )  # fmt: skip
        model.compile(tf.keras.optimizers.legacy.SGD(0.5), "binary_crossentropy", ["accuracy"])
        return model

    def split(line: Any) -> Any:
        label, text = tf.unstack(tf.strings.split(line, "\t"), 2)
        return text, tf.strings.to_number(label)

    examples = survive.Examples(lambda: tf.data.TextLineDataset(str(folder / "lines.txt")), decode=split)
    survive.run(build, examples, examples, settings=settings)


def refused(folder: Path, settings: survive.TrainingSettings) -> None:
    """Print why each of these cannot be trained, one sentence a line."""
    slices = tf.data.Dataset.from_tensor_slices
    good = survive.Examples(lambda: slices((ROOMS, PRICES)))

    def dense(inputs: int, *, is_compiled: bool = True, keras: Any = tf.keras) -> Any:
        model = keras.Sequential([keras.layers.Input((inputs,)), keras.layers.Dense(1)])
        if is_compiled:
            model.compile("sgd", "mse")
        return model

    def wrong_labels() -> Any:
        model = tf.keras.Sequential(
            [tf.keras.layers.Input((3,)), tf.keras.layers.Dense(2, activation="softmax")]
        )
        model.compile("sgd", "categorical_crossentropy")
        return model

    def number(line: Any) -> Any:
        return tf.strings.to_number([line] * 3), tf.constant(1.0)

    def uncounted() -> Any:
        return slices((ROOMS, PRICES)).filter(lambda *_: True)

    def too_wide(example: Any) -> Any:
        return tf.reshape(example[0], [4]), example[1]

    (folder / "odd.txt").write_text("1\n2\nodd\n3\n")

    def lines() -> Any:
        return tf.data.TextLineDataset(str(folder / "odd.txt"))

    cases: Sequence[tuple[Any, ...]] = (
        (lambda: dense(3, is_compiled=False), good),
        (lambda: "a model", good),
        (lambda: dense(4), good),
        (wrong_labels, survive.Examples(lambda: slices((ROOMS, np.stack([TOWNS] * 3, axis=1))))),
        (lambda: dense(3), survive.Examples(lambda: [1, 2])),
        (lambda: dense(3), survive.Examples(lambda: slices(ROOMS).repeat())),
        (lambda: dense(3), survive.Examples(lambda: slices(ROOMS[:0]))),
        (lambda: dense(3), survive.Examples(lambda: slices(ROOMS), count=7)),
        (lambda: dense(3), survive.Examples(lambda: tf.data.TextLineDataset(str(folder / "none.txt")))),
        (lambda: dense(3), survive.Examples(lambda: lines().map(number))),
        (lambda: dense(3), survive.Examples(lines, count=4, decode=number)),
        (lambda: dense(3), survive.Examples(uncounted, count=90)),
        (lambda: dense(3), survive.Examples(lambda: slices((ROOMS, PRICES)), decode=too_wide)),
        (lambda: dense(3), survive.Examples(lambda: slices(ROOMS))),
        (lambda: dense(3, keras=keras_3), survive.Examples(lambda: slices(ROOMS))),
        (lambda: dense(3), good, survive.Examples(uncounted, count=90)),
    )
    trial = {"CLOUD_ML_TRIAL_ID": "5", "CLOUD_ML_HP_METRIC_FILE": str(folder / "metrics")}
    evaluator = {"cluster": {"chief": ["c:1"]}, "task": {"type": "evaluator", "index": 0}}
    other = replace(settings, reported_metrics=("loss_of_price",), job_dir=str(folder / "other"))
    tries: Sequence[tuple[Any, ...]] = (
        (cases[2], {"TF_CONFIG": json.dumps(evaluator)}, settings),
        *((case, {}, settings) for case in cases),
        ((lambda: dense(3), good), trial, settings),
        ((lambda: dense(3), good, good), trial, settings),
        ((lambda: dense(3, keras=keras_3), good, good), trial, settings),
        ((lambda: dense(3, keras=keras_3), good, good), trial, other),  # after an evaluation
    )
    for (build, *splits), variables, asked in tries:
        data = survive.Data(training=splits[0], evaluation=splits[1] if splits[1:] else None)
        workload = survive.Workload(build=lambda _, build=build: build(), data=lambda _, data=data: data)  # type: ignore[misc]  # mypy infers no type
        try:
            survive.attempt(workload, asked, variables)
        except survive.Unusable as unusable:
            print("REFUSED", unusable)  # noqa: T201
        else:
            print("TRAINED")  # noqa: T201


def trial(_: Path, settings: survive.TrainingSettings) -> None:
    """A model with the metric `mae`, of the Keras that the environment names."""
    keras: Any = keras_3 if os.environ["KERAS"] == "3" else tf.keras
    rate, units = float(os.environ.get("RATE", "0.01")), int(os.environ.get("UNITS", "2"))

    class Unsaved(keras.Model):  # type: ignore[misc]  # TensorFlow has no types
        def __init__(self, layers: Any) -> None:
            super().__init__()
            self.inside = keras.Sequential(layers)

        def call(self, x: Any, training: bool = False) -> Any:
            return self.inside(x, training=training)

    def build() -> Any:
        layers = [
            keras.layers.Input((3,)), keras.layers.Dense(units), keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.1), keras.layers.Dense(1),
        ]  # fmt: skip
        model = Unsaved(layers) if os.environ.get("UNSAVED") else keras.Sequential(layers)
        model.compile(keras.optimizers.SGD(rate), "mse", metrics=["mae"])
        return model

    examples = survive.Examples(lambda: tf.data.Dataset.from_tensor_slices((ROOMS, PRICES)))
    survive.run(build, examples, examples, settings=settings)


if __name__ == "__main__":
    program, place, *flags = sys.argv[1:]
    globals()[program](Path(place), survive.settings_from(flags, prog=program))
