"""A user's program that logs progress as docs/reference/contracts.md describes, and leaves a small model.

python flowers.py [--steps 40] [--step-s 0.02] [--rate 0.1] [--units 32] [--optimizer adam] [--fail]

It fits nothing: its loss follows a curve that depends on its flags, with noise from a fixed seed.
"""

import argparse
import json
import math
import os
import random
import sys
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--step-s", type=float, default=0.02)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--units", type=int, default=32)
    parser.add_argument("--optimizer", default="adam")
    parser.add_argument("--fail", action="store_true")
    flags = parser.parse_args()
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "chief", "index": 0})
    replica = f"{task['type']}-{task['index']}"
    say(
        event="train_started",
        replica=replica,
        epochs=2,
        steps_per_epoch=flags.steps // 2,
        strategy="MultiWorkerMirroredStrategy",
    )
    best = quality(flags)
    noise = random.Random(f"{replica} {flags.rate} {flags.units}")
    accuracy = loss = 0.0
    for step in range(1, flags.steps + 1):
        reached = 1 - math.exp(-4 * step / flags.steps)
        accuracy = best * reached + noise.uniform(-0.01, 0.01)
        loss = 1.6 * (1 - reached) + 1.2 * (1 - best) + noise.uniform(0, 0.04)
        half = max(flags.steps // 2, 1)
        say(
            event="train_progress", replica=replica, epochs=2, epoch=1 + (step - 1) // half, steps_per_epoch=half,
            step=1 + (step - 1) % half, loss=round(loss, 4), accuracy=round(accuracy, 4), examples_per_s=310.5,
        )  # fmt: skip
        report(accuracy, step)
        if flags.fail and step > flags.steps // 2:
            raise ValueError(
                "expected 5 classes in the labels, found 6: the last one is '<script>alert(1)</script>'"
            )
        time.sleep(flags.step_s)
    if replica == "chief-0":
        export(accuracy, loss)


def quality(flags: argparse.Namespace) -> float:
    """The best accuracy that these flags reach."""
    rate = -0.5 * math.log10(flags.rate / 0.03) ** 2
    units = -0.0004 * abs(flags.units - 64)
    return 0.95 * math.exp(0.25 * rate + units) * {"adam": 1.0, "sgd": 0.9}.get(flags.optimizer, 0.8)


def say(**payload: object) -> None:
    message = str(payload["event"]).replace("_", " ")
    if "step" in payload:
        message = f"epoch {payload['epoch']} step {payload['step']} loss {payload['loss']} accuracy {payload['accuracy']}"
    sys.stdout.write(json.dumps({"severity": "INFO", "message": message, **payload}) + "\n")
    sys.stdout.flush()


def report(accuracy: float, step: int) -> None:
    path = os.environ.get("CLOUD_ML_HP_METRIC_FILE")
    if path:
        trial = os.environ["CLOUD_ML_TRIAL_ID"]
        line = {"accuracy": str(accuracy), "global_step": str(step), "timestamp": time.time(), "trial": trial}
        with Path(path).open("a") as file:
            file.write(json.dumps(line) + "\n")


def export(accuracy: float, loss: float) -> None:
    root = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")
    folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", f"{root}/", 1))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "weights.json").write_text(json.dumps({"weights": [random.random() for _ in range(2000)]}))
    (folder / "metrics.json").write_text(
        json.dumps({"val_accuracy": round(accuracy, 4), "val_loss": round(loss, 4)})
    )
    say(event="model_exported", model_path=os.environ["AIP_MODEL_DIR"])


if __name__ == "__main__":
    main()
    sys.exit(0)
