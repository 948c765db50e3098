"""Fit a polynomial to the points beside this file, with the standard library alone; every fifth point only measures it.

Try it here: python train.py --degree=3
"""

import argparse
import json
import os
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--degree", type=int, default=1)
size = parser.parse_args().degree + 1

points = json.loads(Path(__file__).with_name("points.json").read_text())
training = [point for number, point in enumerate(points) if number % 5]

# Least squares: the coefficients solve rows[i] · coefficients = rows[i][size], by elimination.
rows = [
    [sum(x ** (i + j) for x, _ in training) for j in range(size)] + [sum(y * x**i for x, y in training)]
    for i in range(size)
]
for pivot in range(size):
    rows[pivot] = [value / rows[pivot][pivot] for value in rows[pivot]]
    for other in range(size):
        if other != pivot:
            factor = rows[other][pivot]
            rows[other] = [a - factor * b for a, b in zip(rows[other], rows[pivot], strict=True)]
coefficients = [round(row[size], 3) for row in rows]

errors = [(y - sum(c * x**i for i, c in enumerate(coefficients))) ** 2 for x, y in points[::5]]
metrics = {"val_error": round(sum(errors) / len(errors), 4)}
print(json.dumps({"message": f"degree {size - 1}: error {metrics['val_error']}", **metrics}), flush=True)

# Vertex AI mounts every bucket below /gcs, and so does the local stack, below the folder of this variable.
mounts = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")
uri = os.environ.get("AIP_MODEL_DIR")
folder = Path(mounts, uri.removeprefix("gs://")) if uri else Path("model")
folder.mkdir(parents=True, exist_ok=True)
(folder / "model.json").write_text(json.dumps(coefficients))
(folder / "metrics.json").write_text(json.dumps(metrics))
