"""Counts the readings of each label in a folder of a bucket, as a model that always answers the most frequent one."""

import argparse
import collections
import csv
import json
import os
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True, help="a folder, gs://BUCKET/FOLDER")
args = parser.parse_args()


def mounted(uri: str) -> Path:
    """The folder of a Cloud Storage path; buckets are mounted below /gcs."""
    return Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), uri.removeprefix("gs://"))


labels = collections.Counter()
for file in sorted(mounted(args.data).glob("*.csv")):
    labels.update(label for _, _, label in csv.reader(file.read_text().splitlines()))
most_frequent, count = labels.most_common(1)[0]

model = mounted(os.environ["AIP_MODEL_DIR"])
model.mkdir(parents=True, exist_ok=True)
(model / "model.json").write_text(json.dumps({"label": most_frequent}))
(model / "metrics.json").write_text(json.dumps({"accuracy": count / labels.total()}))
