import os
from importlib.metadata import version
from pathlib import Path

import yaml

folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
folder.mkdir(parents=True, exist_ok=True)
(folder / "model.yaml").write_text(yaml.safe_dump({"pyyaml": version("pyyaml")}))
