"""Clusters of a small model that tests kill, freeze and start again."""

import json
import os
import select
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.trainer.conftest import ENDS_WITHIN_S, ROOT, Replica, Runner, two_replicas

# Convolution, batch normalization where asked, Adam: what a checkpoint must hold, in as little as that.
# The pauses make steps last, so that tests hit them, at no cost of the processor.
SMALL = """
import time

from trainer.images.classification import image_classification
from trainer.settings.setting import Setting, one_of, whole_number


def build(spec):
    import tensorflow as tf

    if spec.hyperparameters["keras"] == "3":
        import keras
    else:
        keras = tf.keras
    layers = keras.layers

    class Pause(layers.Layer):
        def call(self, images, training=None):
            seconds = spec.hyperparameters["step_ms" if training else "evaluation_step_ms"] / 1000
            if not seconds:
                return images
            with tf.control_dependencies([tf.py_function(lambda: time.sleep(seconds), [], [])]):
                return tf.identity(images)

    model = keras.Sequential([layers.Input((*spec.image_size, 3)), Pause(), layers.Conv2D(8, 3, strides=2)])
    if spec.hyperparameters["norm"] == "batch":
        model.add(layers.BatchNormalization())
    for layer in (layers.ReLU(), layers.GlobalAveragePooling2D(), layers.Dense(spec.classes, activation="softmax")):
        model.add(layer)
    optimizers = keras.optimizers if keras is not tf.keras else keras.optimizers.legacy
    adam = optimizers.Adam(spec.learning_rate)
    model.compile(optimizer=adam, loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


WORKLOAD = image_classification(
    build=build, dataset="cassava", image_size=(16, 16), batch_size=4, epochs=3, learning_rate=0.01,
    hyperparameters={
        "keras": Setting(one_of("2", "3"), "the version that builds the model", "2"),
        "norm": Setting(one_of("batch", "none"), "of the convolution", "batch"),
        "step_ms": Setting(whole_number(0), "pause before each step", 0),
        "evaluation_step_ms": Setting(whole_number(0), "pause before each step of an evaluation", 0),
    },
)
"""


@dataclass(kw_only=True)
class Small(Runner):
    """Starts replicas of a tree that has the workload `small`."""

    arguments: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.tree = self.root / "tree"
        shutil.copytree(ROOT / "trainer", self.tree / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
        (self.tree / "trainer" / "workloads" / "small.py").write_text(SMALL)

    def start(
        self,
        run: str,
        *arguments: str,
        tf_config: dict[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Replica:
        variables = {**({"TF_CONFIG": json.dumps(tf_config)} if tf_config else {}), **(environment or {})}
        flags = ("--workload=small", *self.arguments, *arguments)
        return self.start_replica(*flags, environment=variables, run=run)

    def cluster(
        self, run: str, *arguments: str, configs: list[dict[str, Any]] | None = None
    ) -> list[Replica]:
        """A chief and a worker."""
        return [self.start(run, *arguments, tf_config=config) for config in configs or two_replicas()]


def statuses(replicas: list[Replica], within_s: float = ENDS_WITHIN_S) -> list[int]:
    """The exit statuses of all, which must arrive within this number of seconds."""
    deadline = time.monotonic() + within_s
    return [replica.process.wait(max(0.1, deadline - time.monotonic())) for replica in replicas]


def weights_of(replicas: list[Replica]) -> str:
    """The hash of the final weights, which all replicas that finished must agree on."""
    (found,) = {replica.events("train_finished")[0]["weights_sha256"] for replica in replicas}
    return str(found)


def has_reached(epoch: int, step: int) -> Callable[[Replica], bool]:
    """Whether a replica has reported that step of that epoch, both from 1."""
    return lambda replica: any(
        (line["epoch"], line["step"]) >= (epoch, step) for line in replica.events("train_progress")
    )


def has_saved(epoch: int, step: int) -> Callable[[Replica], bool]:
    return lambda replica: any(
        (line["epoch"], line["step"]) >= (epoch, step) for line in replica.events("checkpoint_saved")
    )


def hold_upload(run_dir: Path, number: int) -> Path:
    """A pipe in the place of a checkpoint's largest file: its upload lasts until `release_upload`."""
    pipe = run_dir / "checkpoints" / "chief" / f"ckpt-{number}.data-00000-of-00001"
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    return pipe


def release_upload(pipe: Path) -> None:
    """Let the upload that waits at `pipe` continue, with a file in its place."""
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reading:
        readable = select.poll()
        readable.register(reading, select.POLLIN)
        assert readable.poll(ENDS_WITHIN_S * 1000), "no upload waits here"
        os.set_blocking(reading.fileno(), True)
        content = reading.read()
    partial = pipe.with_name(f".{pipe.name}")
    partial.write_bytes(content)
    partial.replace(pipe)


def output_tails(replicas: list[Replica]) -> str:
    """Why they failed, for a test that did."""
    return "\n".join(
        replica.out.read_text()[-1500:] + replica.err.read_text()[-1500:] for replica in replicas
    )
