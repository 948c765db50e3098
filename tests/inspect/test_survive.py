"""A script that imports the library of the trainer's image, which is not in its folder."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainmaster.resources import ROOT

SURVIVES = """
import os, pathlib
from trainer import survive
print(survive.TrainingSettings(epochs=1).epochs)
model = os.environ["AIP_" + "MODEL_DIR"].replace("gs://", os.environ["TRAINMASTER_GCS_ROOT"] + "/")
pathlib.Path(model, "saved_model.pb").touch()
"""
ALONE = """
model_name: small
{program}
cluster: {{chief: {{machine: n1-standard-4}}}}
"""


def inspected(folder: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    """The status and the findings of the command in the folder, which has no checkout on its import path."""
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from trainmaster.cli.command import main; sys.exit(main())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, "inspect", "train.py", "--json", *options],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "status"),
    [("script: {file: train.py}", 0), ("image: gcr.io/p/own:1", 1)],
    ids=["script", "image"],
)
def test_a_smoke_run_finds_the_package_as_scripts_do_and_other_images_do_not(
    tmp_path: Path, program: str, status: int
) -> None:
    (tmp_path / "train.py").write_text(SURVIVES)
    (tmp_path / "request.yaml").write_text(ALONE.format(program=program))
    found, findings = inspected(tmp_path, "--smoke", "--request", "request.yaml")
    assert found == status, findings
    said = " ".join(each["found"] for each in findings)
    assert ("No module named 'trainer'" in said) == bool(status)
