import json
import os
from importlib.metadata import version
from pathlib import Path

import yaml

for step in range(10, 40, 10):
    print(json.dumps({"step": step, "loss": 1 / step}))
folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
folder.mkdir(parents=True, exist_ok=True)
(folder / "model.yaml").write_text(yaml.safe_dump({"pyyaml": version("pyyaml")}))
