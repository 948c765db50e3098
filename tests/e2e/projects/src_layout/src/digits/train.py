"""The entry point: `python -m digits.train`."""

import json
import os
from pathlib import Path

import click
import packaging
import yaml

from digits.fit import fit


@click.command()
@click.option("--epochs", default=1)
def main(epochs: int) -> None:
    """Train."""
    loss = fit(epochs)
    print(json.dumps({"event": "train_progress", "epoch": epochs, "loss": loss}), packaging.__name__)
    folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.yaml").write_text(yaml.safe_dump({"loss": loss}))


if __name__ == "__main__":
    main()
