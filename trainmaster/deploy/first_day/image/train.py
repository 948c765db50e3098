"""The program of the first day: prints what its replica sees, waits, reports a score and writes a small model."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

MODEL_DIR = os.environ.get("AIP_MODEL_DIR", "")
METRIC_FILE = os.environ.get("CLOUD_ML_HP_METRIC_FILE", "")

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=0.0)
parser.add_argument("--units", type=float, default=1.0)
args = parser.parse_args()

seen = {
    "message": "what this replica sees",
    "argv": sys.argv[1:],
    "variables": sorted(os.environ),
    "CLUSTER_SPEC": os.environ.get("CLUSTER_SPEC"),
    "TF_CONFIG": os.environ.get("TF_CONFIG"),
}
print(json.dumps(seen), flush=True)
time.sleep(args.seconds)

if METRIC_FILE:  # in the file format of cloudml-hypertune
    line = {"timestamp": time.time(), "trial": os.environ["CLOUD_ML_TRIAL_ID"], "score": str(args.units)}
    Path(METRIC_FILE).parent.mkdir(parents=True, exist_ok=True)
    Path(METRIC_FILE).write_text(json.dumps({**line, "global_step": "1"}) + "\n", encoding="utf-8")
if MODEL_DIR:
    folder = Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), MODEL_DIR.removeprefix("gs://"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.json").write_text(json.dumps({"units": args.units}), encoding="utf-8")
print("done", flush=True)
