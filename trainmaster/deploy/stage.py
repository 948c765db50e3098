"""The Cloud Functions source directory as it is deployed: functions/ with the schemas inside.

python -m trainmaster.deploy.stage build/functions
"""

import argparse
import shutil
from pathlib import Path

from trainmaster.resources import PACKAGE, ROOT

LEFT_OUT = ("__pycache__", "*.pyc", ".*", "memory.py")
STAGED = ".staged"  # a folder with this file was made here, and may be replaced


def stage(destination: Path) -> None:
    """Make `destination` hold the deployed source and nothing else.

    Raises:
        FileExistsError: the directory holds something that was not staged.
    """
    if destination.exists() and any(destination.iterdir()) and not (destination / STAGED).exists():
        raise FileExistsError(f"{destination} holds something else; name an empty or a new directory")
    shutil.rmtree(destination, ignore_errors=True)
    ignore = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(ROOT / "functions", destination, ignore=ignore)
    shutil.copytree(PACKAGE / "orchestrator", destination / "trainmaster" / "orchestrator", ignore=ignore)
    (destination / "trainmaster" / "__init__.py").touch()
    for schema in sorted((ROOT / "schemas").glob("*.schema.json")):
        (destination / "schemas").mkdir(exist_ok=True)
        shutil.copy(schema, destination / "schemas")
    (destination / STAGED).touch()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("destination", type=Path)
    stage(parser.parse_args().destination)
