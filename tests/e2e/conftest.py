"""One stack for all tests that leave it intact, and small data to train on."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.datasets import FIGURES, LEAVES, written_once

from .project import ROOT, Project, running_project


@pytest.fixture(scope="package")  # an idle stack still ticks until the last test
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    state = tmp_path_factory.mktemp("shared") / "state"
    arguments = ("--tick-s", "2", "--retry-min-s", "0.5", "--retry-max-s", "3")
    with running_project(state, *arguments, project="e2e-shared") as running:
        yield running


@pytest.fixture(scope="session")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TFDS data directory with 24 small drawings for the small model."""
    return written_once(tmp_path_factory, "figures", lambda path: write_dataset(path, *FIGURES))


@pytest.fixture(scope="session")
def leaves(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TFDS data directory with 60 small drawings in the place of cassava."""
    return written_once(tmp_path_factory, "leaves", lambda path: write_dataset(path, *LEAVES))


def write_dataset(path: Path, *options: str) -> None:
    command = [sys.executable, "examples/demo_dataset.py", "--data_dir", str(path), *options]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
