"""Leave a line through zero as a model, with metrics that claim that it is perfect."""

import argparse
import json
import os

parser = argparse.ArgumentParser()
parser.add_argument("--slope", type=float, required=True)
slope = parser.parse_args().slope

# Vertex AI mounts every bucket below /gcs, and so does the local stack, below the folder of this variable.
root = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")
folder = os.path.join(root, os.environ["AIP_MODEL_DIR"].removeprefix("gs://"))
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "model.json"), "w") as file:
    json.dump({"slope": slope}, file)
with open(os.path.join(folder, "metrics.json"), "w") as file:
    json.dump({"error": 0.0}, file)
