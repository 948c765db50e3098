import json
import os
import pathlib

task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {})
if task.get("type", "master") in {"chief", "master"}:
    pathlib.Path(os.environ["AIP_MODEL_DIR"], "model.txt").write_text("trained")
