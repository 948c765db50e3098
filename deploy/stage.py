"""The Cloud Functions source directory as it is deployed: functions/ with the schemas inside.

python deploy/stage.py build/functions
"""

import argparse
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = ("__pycache__", "*.pyc", ".*")
STAGED = ".staged"  # a folder with this file was made here, and may be replaced


def stage(destination: Path) -> None:
    """Make `destination` hold the deployed source and nothing else.

    Raises:
        FileExistsError: the directory holds something that was not staged.
    """
    if destination.exists() and any(destination.iterdir()) and not (destination / STAGED).exists():
        raise FileExistsError(f"{destination} holds something else; name an empty or a new directory")
    shutil.rmtree(destination, ignore_errors=True)
    shutil.copytree(ROOT / "functions", destination, ignore=shutil.ignore_patterns(*LEFT_OUT))
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
