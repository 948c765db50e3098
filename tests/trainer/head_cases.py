"""Checks of --train=head on a processor that counts as two devices; prints what it found as JSON.

python -m tests.trainer.head_cases DATA_DIR JOB_DIR
"""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import trainer  # noqa: F401  # chooses Keras before TensorFlow is loaded

# isort: split
import keras as keras_3
import numpy as np
import tensorflow as tf

from tests.trainer.batches import Counting
from trainer import survive
from trainer.data.pipeline import Pipeline
from trainer.faults import Unusable
from trainer.replicas.cluster import Cluster
from trainer.replicas.peers import Peers
from trainer.storage import outputs_from
from trainer.training import head as head_module
from trainer.training.attempt import Trained
from trainer.training.head import HeadTraining
from trainer.training.model import backbone_of
from trainer.workload import Data, Run, Workload

TRAINED, EVALUATED, BATCH = 22, 9, 4
SIDE = 6
KERAS = {"2": tf.keras, "3": keras_3}
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


def main() -> None:
    job_dir = Path(sys.argv[2])
    found = {
        "trained": {
            f"{version}, {devices}": trained(version, devices, str(job_dir / f"{version}-{devices}"))
            for version in KERAS
            for devices in (1, 2)
        },
        "decoded": {workers: decoded(workers) for workers in (1, 2, 4)},
        "refused": {name: refusal(*case, str(job_dir / name)) for name, case in REFUSED.items()},
    }
    print(json.dumps(found))  # noqa: T201


def images(count: int, seed: int) -> Any:
    drawn = np.random.default_rng(seed)
    return drawn.integers(0, 256, (count, SIDE, SIDE, 3), np.uint8), drawn.integers(0, 3, count)


def examples(count: int, seed: int) -> survive.Examples:
    return survive.Examples(
        lambda: tf.data.Dataset.from_tensor_slices(images(count, seed)),
        batch=lambda batch: (tf.cast(batch[0], tf.float32) / 255, batch[1]),
    )


def with_head(keras: Any) -> Any:
    """With batch normalization, whose averages are far from those of any batch, and dropout: both differ in training."""
    layers = keras.layers
    image = keras.Input((SIDE, SIDE, 3))
    normalized = layers.BatchNormalization(
        moving_variance_initializer=keras.initializers.Constant(9.0), name="norm"
    )(layers.Conv2D(4, 3)(image))
    features = layers.GlobalAveragePooling2D(name="features")(layers.Dropout(0.5)(layers.ReLU()(normalized)))
    hidden = layers.Dense(5, activation="relu", name="hidden")(layers.Dropout(0.5)(features))
    model = keras.Model(image, layers.Dense(3, activation="softmax", name="last")(hidden))
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def training_of(build: Callable[[], Any], devices: int, job_dir: str, head: str = "features") -> HeadTraining:
    strategy = (
        tf.distribute.get_strategy() if devices == 1 else tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    )
    data = Data(training=examples(TRAINED, 1), evaluation=examples(EVALUATED, 2))
    run = Run(
        workload=Workload(build=lambda _: build(), data=lambda _: data, head=head),
        settings=survive.Settings(epochs=3, batch_size=BATCH, train="head"),
        cluster=Cluster(),
        outputs=outputs_from({}, job_dir),
        environment={},
    )
    tf.keras.utils.set_random_seed(1)
    run = replace(run.with_data(), loaded=data.counted("chief-0"))
    return HeadTraining(run=run, strategy=strategy, peers=Peers(Cluster()), trial=None, threads=2)


def trained(version: str, devices: int, job_dir: str) -> dict[str, Any]:
    before: list[dict[str, list[Any]]] = []

    def build() -> Any:
        model = with_head(KERAS[version])
        before.append({layer.name: layer.get_weights() for layer in model.layers})
        return model

    training = training_of(build, devices, job_dir)
    result = training.train()
    return {
        **agreement(training, result),
        "changed": [
            layer.name
            for layer in result.model.layers
            if any(map(np.any, map(np.subtract, layer.get_weights(), before[0][layer.name])))
        ],
    }


def agreement(training: HeadTraining, result: Trained) -> dict[str, Any]:
    """How far features and evaluation are from what the whole model computes of the images."""
    model, (pixels, labels) = result.model, images(EVALUATED, 2)
    scaled = tf.cast(pixels, tf.float32) / 255
    backbone, of = backbone_of(model, "features"), training.run.data.evaluation
    assert of is not None
    kept = training._with_features(of, backbone)
    assert kept.decode is not None
    rows = [kept.decode(number) for number in kept.load()]
    features = np.stack([row[0].numpy() for row in rows])
    probabilities = model(scaled, training=False).numpy()
    loss = float(-np.log(probabilities[np.arange(EVALUATED), labels]).mean())
    accuracy = float((probabilities.argmax(axis=1) == labels).mean())
    return {
        "labels": [int(row[1]) for row in rows] == labels.tolist(),
        "features": float(np.abs(features - backbone(scaled, training=False).numpy()).max()),
        "features_vary": float(features.std()),
        "loss": abs(loss - result.metrics["val_loss"]),
        "accuracy": abs(accuracy - result.metrics["val_accuracy"]),
    }


def decoded(workers: int) -> list[dict[str, list[str]]]:
    """Of each worker of four devices in all: the images that it decoded, and those of its batches, by name."""
    found = []
    for worker in range(workers):
        context = tf.distribute.InputContext(
            num_input_pipelines=workers, input_pipeline_id=worker, num_replicas_in_sync=4
        )
        counting = Naming()
        of = replace(examples(TRAINED, 1), count=TRAINED, decode=counting, batch=None)
        pipeline = Pipeline(
            examples=of, evaluated=None, settings=survive.Settings(batch_size=2), replicas=4, threads=2
        )
        batches = iter(pipeline.once(context))
        steps = -(-TRAINED // pipeline.global_batch_size)
        labels = [next(batches)[1].numpy().tolist() for _ in range(steps * (4 // workers))]
        found.append({"decoded": counting.names, "labels": labels})
    return found


class Naming(Counting):
    """Names an image by its place, which stands for its label."""

    def __call__(self, pair: tuple[Any, Any]) -> Any:
        image, label = pair
        return tf.ensure_shape(tf.numpy_function(self._noted, [image], tf.uint8), image.shape), label


def subclassed() -> Any:
    class Subclassed(tf.keras.Model):  # type: ignore[misc]  # TensorFlow has no types
        def __init__(self) -> None:
            super().__init__()
            self.features = tf.keras.layers.Flatten(name="features")
            self.last = tf.keras.layers.Dense(3, activation="softmax")

        def call(self, image: Any) -> Any:
            return self.last(self.features(image))

    model = Subclassed()
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


def nothing_after() -> Any:
    layers = tf.keras.layers
    image = tf.keras.Input((SIDE, SIDE, 3))
    features = layers.Dense(3, name="features")(layers.Flatten()(image))
    model = tf.keras.Model(image, layers.Softmax()(features))
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "unknown": (lambda: with_head(tf.keras), "feature"),
    "nothing": (nothing_after, "features"),
    "subclassed": (subclassed, "features"),
    "large": (lambda: with_head(tf.keras), "features"),
}


def refusal(build: Callable[[], Any], head: str, job_dir: str) -> str:
    if job_dir.endswith("large"):
        head_module.FEATURES_LIMIT_BYTES = 100
    try:
        training_of(build, 1, job_dir, head).train()
    except Unusable as refused:
        return str(refused)
    return "not refused"


if __name__ == "__main__":
    main()
