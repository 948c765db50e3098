"""A two-replica training job on this machine: ours against the recipe of TensorFlow's own guide.

python bench/trainer_throughput.py [--rounds 1]

Both train the same ResNet50 on the same generated pictures for the same steps, with one backup per
epoch and an export at the end. The guide's recipe is compile, fit, model.save
(https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras); what it leaves open is as in ours: the
optimizer, images decoded in parallel and ahead of the steps, and the image's setting of the allocator.
Steps per second are the chief's, from the end of each epoch's first step to that of its last. The sides take turns.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
IMAGE_SIZE, BATCH, EPOCHS, STEPS = 64, 16, 2, 10

GUIDE = f"""
import json, os, sys, tempfile
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf, tensorflow_datasets as tfds
data_dir, out = sys.argv[1:]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
def dataset(split):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    images = tfds.load("cassava", data_dir=data_dir, split=split, as_supervised=True, shuffle_files=False)
    scaled = images.map(lambda image, label: (tf.image.resize(image, [{IMAGE_SIZE}, {IMAGE_SIZE}]) / 255.0, label),
                        num_parallel_calls=tf.data.AUTOTUNE)
    batches = scaled.repeat().batch({BATCH} * strategy.num_replicas_in_sync)
    return batches.prefetch(tf.data.AUTOTUNE).with_options(options)
def report(step, logs):
    print(json.dumps({{"event": "train_progress", "step": step + 1}}), flush=True)
with strategy.scope():
    base = tf.keras.applications.ResNet50(include_top=False, weights=None, input_shape=({IMAGE_SIZE}, {IMAGE_SIZE}, 3))
    pooled = tf.keras.layers.GlobalAveragePooling2D()(base.output)
    hidden = tf.keras.layers.Dense(1016, activation="relu")(pooled)
    model = tf.keras.Model(base.input, tf.keras.layers.Dense(5, activation="softmax")(hidden))
    model.compile(tf.keras.optimizers.legacy.Adam(1e-4), "sparse_categorical_crossentropy", ["accuracy"])
model.fit(dataset("train"), epochs={EPOCHS}, steps_per_epoch={STEPS}, verbose=0,
          validation_data=dataset("validation"), validation_steps=3,
          callbacks=[tf.keras.callbacks.LambdaCallback(on_train_batch_end=report),
                     tf.keras.callbacks.BackupAndRestore(out + "/backup")])
chief = strategy.cluster_resolver.task_type == "chief"
with tempfile.TemporaryDirectory() as scratch:
    model.save(out + "/model" if chief else scratch, save_format="tf")
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Of both replicas together, but `peak_mib`, which is the larger one's, and `steps_per_s`, the chief's."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    steps_per_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as scratch:
        data_dir = Path(scratch) / "data"
        subprocess.run(
            [sys.executable, ROOT / "examples/demo_dataset.py", "--data_dir", data_dir],
            check=True,
            capture_output=True,
        )
        costs: dict[str, list[Cost]] = {"guide": [], "ours": []}
        for number in range(rounds):
            for side, measured in costs.items():
                measured.append(cost(side, data_dir, Path(scratch) / f"{side}-{number}"))
    show(costs)


def cost(side: str, data_dir: Path, out: Path) -> Cost:
    out.mkdir()
    started = os.times().elapsed
    processes = [replica(side, environment, data_dir, out) for environment in cluster()]
    steps_per_s = speed_of(processes[0])
    usages = [os.wait4(process.pid, 0)[1:] for process in processes]
    if any(status for status, _ in usages):
        raise SystemExit(f"{side} failed: {(out / 'log').read_text()[-2000:]}")
    return Cost(
        wall_s=os.times().elapsed - started,
        cpu_s=sum(usage.ru_utime + usage.ru_stime for _, usage in usages),
        peak_mib=max(usage.ru_maxrss for _, usage in usages) / 1024,
        steps_per_s=steps_per_s,
    )


def speed_of(chief: "subprocess.Popen[str]") -> float:
    """Steps per second after the first one of each epoch, by the arrival of the lines that report them; 0 without any."""
    began, seconds, steps = 0.0, 0.0, 0
    for line in chief.stdout or ():
        progress = json.loads(line) if line.startswith("{") else {}
        if progress.get("event") != "train_progress":
            continue
        if progress["step"] == 1:
            began = time.monotonic()
        if progress["step"] == STEPS:
            seconds, steps = seconds + time.monotonic() - began, steps + STEPS - 1
    return steps / seconds if steps else 0.0


def cluster() -> list[dict[str, str]]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    for listener in listeners:
        listener.close()
    members = {"chief": addresses[:1], "worker": addresses[1:]}
    return [{"TF_CONFIG": json.dumps({"cluster": members, "task": {"type": t, "index": 0}})} for t in members]


def replica(side: str, environment: dict[str, str], data_dir: Path, out: Path) -> "subprocess.Popen[str]":
    ours = [
        "-m", "trainer.task", f"--data_dir={data_dir}", "--weights=random", f"--image_size={IMAGE_SIZE}",
        f"--batch_size={BATCH}", f"--epochs={EPOCHS}", f"--steps_per_epoch={STEPS}", f"--job_dir={out}",
    ]  # fmt: skip
    arguments = ours if side == "ours" else ["-c", GUIDE, str(data_dir), str(out)]
    is_chief = json.loads(environment["TF_CONFIG"])["task"]["type"] == "chief"
    with (out / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=os.environ | environment | {"MALLOC_ARENA_MAX": "2"},  # the image's setting
            stdout=subprocess.PIPE if is_chief else log,
            stderr=log,
            text=True,
        )


def show(costs: dict[str, list[Cost]]) -> None:
    medians = {
        side: [
            statistics.median(values)
            for values in zip(*(vars(one).values() for one in measured), strict=True)
        ]
        for side, measured in costs.items()
    }
    ratio = [ours / guide for ours, guide in zip(medians["ours"], medians["guide"], strict=True)]
    print(f"{'':8}{'wall':>10}{'CPU':>10}{'peak':>12}{'steps/s':>10}")
    for side, (wall_s, cpu_s, peak_mib, steps_per_s) in medians.items():
        print(f"{side:8}{wall_s:8.1f} s{cpu_s:8.1f} s{peak_mib:8.0f} MiB{steps_per_s:10.2f}")
    print(f"{'ratio':8}{ratio[0]:10.2f}{ratio[1]:10.2f}{ratio[2]:12.2f}{ratio[3]:10.2f}")


if __name__ == "__main__":
    main()
