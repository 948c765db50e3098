"""Stage the functions' source directory for deployment: functions/ with the orchestrator and its schemas inside.

python -m trainmaster.deploy.stage [--bytecode] build/functions
"""

import argparse
import compileall
import json
import shutil
from pathlib import Path

from trainmaster.resources import PACKAGE, ROOT

LEFT_OUT = (".*", "*.pyc.*")  # the last: byte code that is being written
BYTECODE = ("__pycache__", "*.pyc")
SCHEMAS = (
    "training_request.v1",
    "retraining_rule.v1",
    "order.v1",
    "policy.v1",
    "prices.v1",
    "model_export.v1",
)
"""Schemas of the documents that functions read; only tests check the documents that functions write."""
STAGED = ".staged"  # marks a folder that this command made and may replace


def stage(destination: Path, *, bytecode: bool = False) -> None:
    """Replace the content of `destination` with the source to deploy.

    `bytecode`: include it, compiled where the source is if that was not done before and is allowed there. Functions
    that start together would each compile everything.

    Raises:
        FileExistsError: the directory has content that was not staged.
    """
    if destination.exists() and any(destination.iterdir()) and not (destination / STAGED).exists():
        raise FileExistsError(f"{destination} contains other files; name an empty or new directory")
    shutil.rmtree(destination, ignore_errors=True)
    if bytecode:
        for folder in (ROOT / "functions", PACKAGE / "orchestrator"):
            compileall.compile_dir(folder, quiet=2)
    ignore = shutil.ignore_patterns(*LEFT_OUT, *(() if bytecode else BYTECODE))
    shutil.copytree(ROOT / "functions", destination, ignore=ignore)
    shutil.copytree(PACKAGE / "orchestrator", destination / "trainmaster" / "orchestrator", ignore=ignore)
    (destination / "trainmaster" / "__init__.py").touch()
    shutil.copy(PACKAGE / "partial_import.py", destination / "trainmaster")
    (destination / "schemas").mkdir()
    for schema in SCHEMAS:
        name = f"{schema}.schema.json"
        document = json.loads((ROOT / "schemas" / name).read_text())
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        (destination / "schemas" / name).write_text(text)
    (destination / STAGED).touch()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--bytecode", action="store_true", help="include byte code, for functions of this machine"
    )
    parser.add_argument("destination", type=Path)
    arguments = parser.parse_args()
    stage(arguments.destination, bytecode=arguments.bytecode)
