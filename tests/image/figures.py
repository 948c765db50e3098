"""The demo's training: two replicas of the trainer's image on a few drawn figures."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.project import Project

from .conftest import ROOT

DEADLINE_S = 400
_MACHINE = {"machine": "n1-standard-4"}


def add_figures(project: Project, scratch: Path) -> None:
    """Put the data set into the project's bucket of data."""
    command = [sys.executable, "examples/demo_dataset.py", "--data_dir", str(scratch),
               "--dataset=horses_or_humans", "--examples=24"]  # fmt: skip
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    shutil.copytree(scratch, project.folder(project.env["TRAINMASTER_DATA_BUCKET"]) / "tfds")


def request_for(project: Project, image: str) -> dict[str, Any]:
    """The request that trains on the figures."""
    data = project.env["TRAINMASTER_DATA_BUCKET"]
    return {
        "model_name": "figures",
        "image": image,
        "args": ["--workload=horses_or_humans", f"--data_dir=gs://{data}/tfds", "--image_size=32",
                 "--batch_size=4", "--epochs=1", "--steps_per_epoch=3", "--weights=random"],
        "cluster": {"chief": _MACHINE, "workers": {"count": 1, **_MACHINE}},
        "scheduling": {"timeout_s": DEADLINE_S},
    }  # fmt: skip
