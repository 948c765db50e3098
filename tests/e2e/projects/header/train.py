# /// script
# requires-python = ">=3.10"
# dependencies = [
#   "pyyaml>=6",
# ]
# ///
import os
from pathlib import Path

import yaml

for epoch in (1, 2, 3):
    print({"epoch": epoch, "val_accuracy": 1 - 0.5**epoch})
folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
folder.mkdir(parents=True, exist_ok=True)
(folder / "model.yaml").write_text(yaml.safe_dump({"header": True}))
