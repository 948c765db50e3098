"""One stack for all tests that leave it intact, and small data to train on."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.datasets import FIGURES, written_once

from .project import OWN, ROOT, Project, own_image_uri, running_project


@pytest.fixture(scope="package")  # an idle stack still ticks until the last test
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    state = tmp_path_factory.mktemp("shared") / "state"
    image = f"{own_image_uri('e2e-shared')}={OWN}"
    arguments = ("--tick-s", "2", "--retry-min-s", "0.5", "--retry-max-s", "3", "--image", image)
    with running_project(state, *arguments, project="e2e-shared") as running:
        yield running


@pytest.fixture(scope="session")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TFDS data directory with 24 small drawings for the small model."""

    def write(path: Path) -> None:
        command = [sys.executable, "examples/demo_dataset.py", "--data_dir", str(path), *FIGURES]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    return written_once(tmp_path_factory, "figures", write)
