"""The entry point: `python -m digits.train`."""

import logging
import os
from pathlib import Path

import click
import packaging
import yaml

from digits.fit import fit

LOGGER = logging.getLogger("digits")


@click.command()
@click.option("--epochs", default=1)
def main(epochs: int) -> None:
    """Train."""
    logging.basicConfig(level=logging.INFO)
    LOGGER.info("packages are read by %s", packaging.__name__)
    for epoch in range(1, epochs + 1):
        loss = fit(epoch)
        LOGGER.info("Epoch %d/%d: loss %.4f", epoch, epochs, loss)
    folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.yaml").write_text(yaml.safe_dump({"loss": loss}))


if __name__ == "__main__":
    main()
