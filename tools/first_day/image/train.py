"""The program of the first day: prints what its replica sees, waits, and reports a score."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

METRIC_FILE = os.environ.get("CLOUD_ML_HP_METRIC_FILE")

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=0.0)
parser.add_argument("--units", type=float, default=1.0)
args = parser.parse_args()

spec = {name: os.environ.get(name) for name in ("CLUSTER_SPEC", "TF_CONFIG")}
print(
    json.dumps({"message": "seen", "argv": sys.argv[1:], "variables": sorted(os.environ), **spec}), flush=True
)
time.sleep(args.seconds)

if METRIC_FILE:  # in the file format of cloudml-hypertune
    line = {"timestamp": time.time(), "trial": os.environ["CLOUD_ML_TRIAL_ID"], "score": str(args.units)}
    Path(METRIC_FILE).parent.mkdir(parents=True, exist_ok=True)
    Path(METRIC_FILE).write_text(json.dumps({**line, "global_step": "1"}) + "\n", encoding="utf-8")
