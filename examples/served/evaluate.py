"""Score the challenger and the champion on the same rows, and write the error of each to metrics.json."""

import argparse
import csv
import json
import os

import joblib

parser = argparse.ArgumentParser()
parser.add_argument("--challenger", required=True)
parser.add_argument("--champion")
parser.add_argument("--data", required=True)
parser.add_argument("--output", required=True)
args = parser.parse_args()


def local(uri, *names):
    """The path of an object below the mounted buckets."""
    return os.path.join(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), uri.removeprefix("gs://"), *names)


with open(local(args.data)) as file:
    rows = [(float(row["x"]), float(row["y"])) for row in csv.DictReader(file)]

metrics = {}
for name, uri in (("challenger", args.challenger), ("champion", args.champion)):
    if uri is None:  # the first model of its name has no champion before it
        continue
    found = joblib.load(local(uri, "model.joblib")).predict([[x] for x, _ in rows])
    metrics[name] = {
        "error": sum(abs(y - each) for (_, y), each in zip(rows, found, strict=True)) / len(rows)
    }

os.makedirs(local(args.output), exist_ok=True)
with open(local(args.output, "metrics.json"), "w") as file:
    json.dump(metrics, file)
print(json.dumps(metrics))
