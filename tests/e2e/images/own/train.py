"""Trains nothing; leaves a model and its metrics where it is told or Vertex AI says, by way of Google's client alone."""

import argparse
import json
import os
import pickle

from google.cloud import storage

parser = argparse.ArgumentParser()
parser.add_argument("--model-dir", default=os.environ["AIP_MODEL_DIR"])
bucket, _, prefix = parser.parse_args().model_dir.rstrip("/").removeprefix("gs://").partition("/")
models = storage.Client().bucket(bucket)
models.blob(f"{prefix}/model.pkl").upload_from_string(pickle.dumps({"weights": [1.0, 2.0]}))
models.blob(f"{prefix}/metrics.json").upload_from_string(json.dumps({"val_accuracy": 0.93}))
