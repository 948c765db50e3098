"""Transfer learning on this machine: the head alone, --train=head, against all layers, from the same weights.

python bench/head_training.py [--weights PATH] [--rounds 1]

Both sides are whole processes, from start to export, of ResNet50 on the demo's data, 416 pictures of 64 x 64 pixels,
evaluated on the 224 others. The head's time includes that of its features. ImageNet's weights need a network, so
without --weights both start from those of a ResNet50 that is trained here, before the clock starts, on other pictures
of the same kind: those that examples/demo_dataset.py draws from another seed.

The exit status says whether the head alone comes within one point of the accuracy of all layers in half of their time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SIDE = 64
SIDES = {
    "all layers": ("--epochs=6", "--batch_size=48"),  # the workload's learning rate, as in the codelab
    # Steps on features cost next to nothing, and each epoch writes a checkpoint: small batches, and few epochs.
    "head": ("--train=head", "--epochs=6", "--batch_size=8", "--learning_rate=0.001"),
}
WITHIN, SHARE = 0.01, 0.5

PRETRAINING = f"""
import sys
import trainer
import tensorflow as tf, tensorflow_datasets as tfds
from trainer.images.classification import ModelSpec
from trainer.workloads.resnet50 import build
data_dir, weights = sys.argv[1:]
tf.keras.utils.set_random_seed(1)
images = tfds.load("cassava", data_dir=data_dir, split="train", as_supervised=True, shuffle_files=False)
images = images.map(lambda image, label: (tf.image.resize(image, [{SIDE}, {SIDE}]) / 255.0, label)).cache()
model = build(ModelSpec(image_size=({SIDE}, {SIDE}), classes=5, learning_rate=5e-4))
for layer in model.layers:
    layer.momentum = 0.9  # of batch normalization, for so few steps
model.fit(images.shuffle(2000, seed=1).batch(32), epochs=6, verbose=0)
tf.keras.Model(model.input, model.get_layer("features").input).save_weights(weights)
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    wall_s: float
    cpu_s: float
    peak_mib: float
    accuracy: float
    features_s: float


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, help="of ResNet50 without its top, in Keras' HDF5 format")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        draw(scratch / "data")
        weights = options.weights or pretrained(scratch)
        costs: dict[str, list[Cost]] = {side: [] for side in SIDES}
        for number in range(options.rounds):
            for side, measured in costs.items():
                measured.append(cost(side, weights, scratch, scratch / f"{side.replace(' ', '-')}-{number}"))
    return show(costs)


def draw(data_dir: Path, *options: str) -> None:
    command = [sys.executable, str(ROOT / "examples/demo_dataset.py"), "--data_dir", str(data_dir), *options]
    subprocess.run(command, check=True, capture_output=True)


def pretrained(scratch: Path) -> Path:
    """Weights of a ResNet50 that was trained on 832 other pictures."""
    weights = scratch / "weights.h5"
    draw(scratch / "others", "--seed=2", "--examples=1280")
    command = [sys.executable, "-c", PRETRAINING, str(scratch / "others"), str(weights)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return weights


def cost(side: str, weights: Path, scratch: Path, out: Path) -> Cost:
    out.mkdir()
    command = [
        sys.executable, "-m", "trainer.task", f"--data_dir={scratch / 'data'}", f"--weights={weights}",
        f"--image_size={SIDE}", "--evaluation_split=validation+test", f"--job_dir={out}", *SIDES[side],
    ]  # fmt: skip
    started = os.times().elapsed
    with (out / "log").open("wb") as log, (out / "errors").open("wb") as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | {"MALLOC_ARENA_MAX": "2"}, stdout=log, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{side} failed: {(out / 'errors').read_text()[-2000:]}")
    events = [json.loads(line) for line in (out / "log").read_text().splitlines()]
    (exported,) = (event for event in events if event["event"] == "model_exported")
    return Cost(
        wall_s=os.times().elapsed - started,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mib=usage.ru_maxrss / 1024,
        accuracy=exported["metrics"]["val_accuracy"],
        features_s=sum(event["seconds"] for event in events if event["event"] == "features_computed"),
    )


def show(costs: dict[str, list[Cost]]) -> int:
    medians = {
        side: Cost(
            **{name: statistics.median(vars(one)[name] for one in measured) for name in vars(measured[0])}
        )
        for side, measured in costs.items()
    }
    whole, head = medians["all layers"], medians["head"]
    print(f"{'':12}{'wall':>10}{'CPU':>10}{'peak':>12}{'accuracy':>10}{'features':>10}")
    for side, found in medians.items():
        features = f"{found.features_s:8.1f} s" if found.features_s else f"{'-':>10}"
        print(
            f"{side:12}{found.wall_s:8.1f} s{found.cpu_s:8.1f} s{found.peak_mib:8.0f} MiB{found.accuracy:10.3f}{features}"
        )
    print(
        f"{'ratio':12}{head.wall_s / whole.wall_s:10.2f}{head.cpu_s / whole.cpu_s:10.2f}"
        f"{head.peak_mib / whole.peak_mib:12.2f}{head.accuracy - whole.accuracy:+10.3f}"
    )
    is_reached = head.accuracy >= whole.accuracy - WITHIN and head.wall_s <= SHARE * whole.wall_s
    print(f"within one point in half of the time: {'yes' if is_reached else 'no'}")
    return 0 if is_reached else 1


if __name__ == "__main__":
    sys.exit(main())
