"""Data sets for several test files, written once for all workers of a test run."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

LEAVES = ("--dataset=cassava", "--examples=60", "--image_size=32")
FIGURES = ("--dataset=horses_or_humans", "--examples=24")
"""Options of examples/demo_dataset.py for data sets of small models."""


def written_once(factory: pytest.TempPathFactory, name: str, write: Callable[[Path], object]) -> Path:
    """The folder of that name, which the first worker that needs it fills with `write`. Do not change it."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent  # shared by all workers
    folder = base / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            partial.mkdir(exist_ok=True)  # another worker may have failed halfway
            write(partial)
            partial.rename(folder)
    return folder
