import os
from pathlib import Path

import yaml
from features.scale import scale

for epoch in range(1, 4):
    print(f"epoch={epoch} train_loss={scale(5) / epoch:.3f} lr=0.01")
folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
folder.mkdir(parents=True, exist_ok=True)
(folder / "model.yaml").write_text(yaml.safe_dump({"scale": scale(5)}))
