"""Images per second of one device: our trainer against Keras' own `fit`, with 16 bits and XLA on and off.

python bench/trainer_gpu.py [--steps 100] [--batch_size 64] [--image_size 300] [--examples 2000] [--only mixed,jit]

Needs TensorFlow with a GPU; on a machine without one it runs on the processor, which says nothing about GPUs.
Both sides train the same ResNet50, in a process each, on the same pictures, decoded once, cached and prefetched, with
the same optimizer, batch, precision and compiler. The first epoch traces and fills the caches. Images are counted in the
second one, from the end of its first step to the end of its last, and nvidia-smi is asked for the device's utilisation
meanwhile. The sides take turns.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLASSES, EPOCHS = 5, 2
SAMPLE_S = 0.5
OURS, FIT = "ours", "fit"

GUIDE = """
import json, os, sys
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf, tensorflow_datasets as tfds
asked = json.loads(sys.argv[1])
side, batch, steps = asked["image_size"], asked["batch_size"], asked["steps"]
if asked["mixed"]:  # in the floats that our trainer chooses for this device
    from trainer.replicas.cluster import ClusterSpec
    from trainer.devices.strategy import sixteen_bits
    tf.keras.mixed_precision.set_global_policy("mixed_" + sixteen_bits(tf.distribute.get_strategy(), ClusterSpec()))
images = tfds.load("cassava", data_dir=asked["data_dir"], split="train", as_supervised=True)
small = images.map(lambda image, label: (tf.cast(tf.image.resize(image, [side, side]), tf.uint8), label))
scaled = lambda image, label: (tf.cast(image, tf.float32) / 255.0, label)
batches = small.cache().repeat().shuffle(1000).batch(batch, drop_remainder=True)
batches = batches.map(scaled, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
base = tf.keras.applications.ResNet50(include_top=False, weights=None, input_shape=(side, side, 3))
pooled = tf.keras.layers.GlobalAveragePooling2D()(base.output)
hidden = tf.keras.layers.Dense(1016, activation="relu")(pooled)
model = tf.keras.Model(base.input, tf.keras.layers.Dense(asked["classes"], activation="softmax", dtype="float32")(hidden))
model.compile(tf.keras.optimizers.legacy.Adam(1e-4), "sparse_categorical_crossentropy", ["accuracy"],
              jit_compile=asked["jit"])
class Progress(tf.keras.callbacks.Callback):
    _supports_tf_logs = True  # else fit waits for the device after every step
    epoch = 0
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch + 1
    def on_train_batch_end(self, step, logs):
        if step in (0, steps - 1):
            float(logs["loss"])  # waits for the device
            print(json.dumps({"event": "train_progress", "epoch": self.epoch, "step": step + 1}), flush=True)
model.fit(batches, epochs=asked["epochs"], steps_per_epoch=steps, verbose=0, callbacks=[Progress()])
"""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """How both sides compute."""

    mixed: bool
    jit: bool

    def __str__(self) -> str:
        return f"{'mixed' if self.mixed else 'float32'}{' + XLA' if self.jit else ''}"


@dataclass(frozen=True, kw_only=True)
class Speed:
    """One side's second epoch. `busy` is the device's utilisation in percent; None if nothing measures it."""

    images_per_s: float
    busy: float | None


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step that a side has finished, and when its line arrived, in seconds."""

    epoch: int
    step: int
    at: float


def main(arguments: Sequence[str]) -> int:
    asked = asked_by(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        data_dir = Path(scratch) / "data"
        subprocess.run(
            [sys.executable, ROOT / "examples/demo_dataset.py", "--data_dir", data_dir, "--examples", str(asked.examples)],
            check=True,
            capture_output=True,
        )  # fmt: skip
        print(f"{'images/s':16}{'ours':>12}{'fit':>12}{'ratio':>8}{'utilisation':>16}")
        for variant in variants(asked.only):
            speeds = {
                side: measured(command(side, variant, asked, data_dir, Path(scratch) / f"{variant}"), asked)
                for side in (FIT, OURS)
            }
            print(row(variant, speeds[OURS], speeds[FIT]), flush=True)
    return 0


def asked_by(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--image_size", type=int, default=300)
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--only", default=None, help="one variant: float32, jit, mixed, or mixed,jit")
    return parser.parse_args(arguments)


def variants(only: str | None) -> Iterator[Variant]:
    """All four, or the one that `only` names."""
    for mixed, jit in itertools.product((False, True), repeat=2):
        name = ",".join(word for word, on in (("mixed", mixed), ("jit", jit)) if on) or "float32"
        if only in (None, name):
            yield Variant(mixed=mixed, jit=jit)


def command(
    side: str, variant: Variant, asked: argparse.Namespace, data_dir: Path, job_dir: Path
) -> list[str]:
    """The program of this side."""
    if side == FIT:
        sizes = {name: getattr(asked, name) for name in ("image_size", "batch_size", "steps")}
        how = {"epochs": EPOCHS, "classes": CLASSES, "mixed": variant.mixed, "jit": variant.jit}
        return [sys.executable, "-c", GUIDE, json.dumps({**sizes, **how, "data_dir": str(data_dir)})]
    return [
        sys.executable, "-m", "trainer.task", f"--data_dir={data_dir}", "--weights=random", "--cache",
        "--evaluation_split=none", f"--image_size={asked.image_size}", f"--batch_size={asked.batch_size}",
        f"--epochs={EPOCHS}", f"--steps_per_epoch={asked.steps}", f"--job_dir={job_dir}",
        f"--mixed_precision={str(variant.mixed).lower()}", f"--jit={str(variant.jit).lower()}",
    ]  # fmt: skip


def measured(words: Sequence[str], asked: argparse.Namespace) -> Speed:
    """Run one side to its end.

    Raises:
        SystemExit: it failed; the message has its last lines.
    """
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        sampled() as samples,
    ):
        assert process.stdout is not None
        steps = list(steps_of(process.stdout))
        if process.wait():
            errors.seek(0)
            raise SystemExit(f"{words[:3]} failed:\n{errors.read()[-2000:]}")
    first, last = counted(steps)
    within = [busy for at, busy in samples if first.at <= at <= last.at]
    images = (last.step - first.step) * asked.batch_size
    return Speed(images_per_s=images / (last.at - first.at), busy=statistics.mean(within) if within else None)


def steps_of(lines: Iterable[str]) -> Iterator[Step]:
    """The steps that a side reports, with the time at which each line arrived."""
    for line in lines:
        at = time.monotonic()
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict) and document.get("event") == "train_progress":
            yield Step(epoch=int(document["epoch"]), step=int(document["step"]), at=at)


def counted(steps: Sequence[Step]) -> tuple[Step, Step]:
    """The first and the last step of the last epoch.

    Raises:
        SystemExit: it has fewer than two.
    """
    last = [each for each in steps if each.epoch == EPOCHS]
    if len(last) < 2:
        raise SystemExit(f"epoch {EPOCHS} has {len(last)} reported steps; use more --steps")
    return last[0], last[-1]


@contextmanager
def sampled() -> Iterator[list[tuple[float, float]]]:
    """Times and utilisation in percent of the first GPU, while the block runs; empty without nvidia-smi."""
    samples: list[tuple[float, float]] = []
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(SAMPLE_S):
            said = subprocess.run(
                ["nvidia-smi", "--id=0", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"],
                capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            if said.returncode == 0 and said.stdout.strip().isdecimal():
                samples.append((time.monotonic(), float(said.stdout)))

    thread = threading.Thread(target=sample)
    if shutil.which("nvidia-smi"):
        thread.start()
    try:
        yield samples
    finally:
        ended.set()
        if thread.ident is not None:
            thread.join()


def row(variant: Variant, ours: Speed, fit: Speed) -> str:
    """One line of the table: both speeds, their ratio, and the device's utilisation with ours and with fit."""
    busy = " / ".join("-" if each.busy is None else f"{each.busy:.0f} %" for each in (ours, fit))
    return (
        f"{variant!s:16}{ours.images_per_s:12.1f}{fit.images_per_s:12.1f}"
        f"{ours.images_per_s / fit.images_per_s:8.2f}{busy:>16}"
    )


if __name__ == "__main__":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sys.exit(main(sys.argv[1:]))
