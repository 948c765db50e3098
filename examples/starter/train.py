"""Learns which side of a line points are on, with the standard library alone. Replace it by your own training.

Try it here: python train.py --epochs=20
"""

import argparse
import json
import math
import os
import random
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--learning_rate", type=float, default=0.1)
args = parser.parse_args()


def folder(variable: str, otherwise: str) -> Path:
    """The folder of a Cloud Storage path that Vertex AI sets; buckets are mounted below /gcs."""
    uri = os.environ.get(variable)
    mounts = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")
    path = Path(mounts, uri.removeprefix("gs://")) if uri else Path(otherwise)
    path.mkdir(parents=True, exist_ok=True)
    return path


def score(model: dict, x: float, y: float) -> float:
    """The probability that the point is above the line."""
    return 1 / (1 + math.exp(-(model["x"] * x + model["y"] * y + model["bias"])))


def accuracy(model: dict) -> float:
    """The share of the validation points that the model puts on their side."""
    return sum(round(score(model, x, y)) == label for x, y, label in validation) / len(validation)


draw = random.Random(0)  # noqa: S311 - example data
points = [(draw.uniform(-1, 1), draw.uniform(-1, 1)) for _ in range(2000)]
examples = [(x, y, float(y > 0.5 * x + 0.2)) for x, y in points]
training, validation = examples[:1500], examples[1500:]

# A preempted machine is replaced, and the program starts again: continue after the last checkpoint.
checkpoint = folder("AIP_CHECKPOINT_DIR", "checkpoints") / "checkpoint.json"
state = {"epoch": 0, "model": {"x": 0.0, "y": 0.0, "bias": 0.0}}
if checkpoint.exists():
    state = json.loads(checkpoint.read_text())
    print(f"continuing after epoch {state['epoch']}")
model = state["model"]

for epoch in range(state["epoch"] + 1, args.epochs + 1):
    for x, y, label in training:
        error = label - score(model, x, y)
        model["x"] += args.learning_rate * error * x
        model["y"] += args.learning_rate * error * y
        model["bias"] += args.learning_rate * error
    loss = -sum(math.log(abs(1 - label - score(model, x, y)) + 1e-9) for x, y, label in training) / len(
        training
    )
    # A line that is one JSON object becomes a structured log entry; its numbers become the curves of the run's page.
    progress = {"epoch": epoch, "epochs": args.epochs, "loss": loss, "val_accuracy": accuracy(model)}
    message = f"epoch {epoch}/{args.epochs}: loss {loss:.4f}, accuracy {accuracy(model):.3f}"
    print(json.dumps({"message": message, **progress}), flush=True)
    unfinished = checkpoint.with_suffix(".tmp")
    unfinished.write_text(json.dumps({"epoch": epoch, "model": model}))
    unfinished.replace(checkpoint)

model_dir = folder("AIP_MODEL_DIR", "model")
(model_dir / "model.json").write_text(json.dumps(model))
(model_dir / "metrics.json").write_text(json.dumps({"val_accuracy": accuracy(model)}))
print(f"saved the model to {model_dir}: accuracy {accuracy(model):.3f}")
