"""Needs of the machine that must be met before anything is installed."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)
"""The Pythons that every package of the lock has a wheel for; tests/tools/set_up/ asks the package index."""

INSTALLED_MB, DOWNLOADED_MB = 22.0, 8.5
"""Room that a package needs in .venv, and meanwhile in the temporary folder: measured averages over the lock, x86-64."""


def refuse_other_pythons() -> None:
    """End this process with a sentence unless its Python is supported."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    names = [f"python3.{minor}" for minor in range(NEWEST[1], OLDEST[1] - 1, -1)]
    choice = next(filter(_can_start, names), "/path/to/python3.13")
    sys.exit(
        f"Trainmaster needs Python 3.{OLDEST[1]} to 3.{NEWEST[1]}, and {sys.executable} is "
        f"{sys.version.split()[0]}. Name another one: make setup PYTHON={choice}"
    )


def _can_start(name: str) -> bool:
    """Whether this program runs: a version manager puts names on the path whose Python it may lack."""
    program = shutil.which(name)
    if program is None:
        return False
    tried = subprocess.run(
        [program, "-c", ""], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return tried.returncode == 0


def faults(environment: Path, *, packages: int) -> "list[str]":
    """Why this machine cannot make `environment`, which may not exist yet, and install that number of packages in it.

    What is there is removed first, so that its room counts as free.
    """
    faults = []
    if any(importlib.util.find_spec(module) is None for module in ("venv", "ensurepip")):
        faults.append(
            f"{sys.executable} lacks the module that makes virtual environments. "
            f"On Debian and Ubuntu: apt-get install python3.{sys.version_info[1]}-venv"
        )
    if environment.is_symlink() or environment.is_file():
        faults.append(
            f"{environment} is a {'link' if environment.is_symlink() else 'file'}, and set-up needs a folder there. "
            "Remove it: rm .venv. make setup then makes the folder."
        )
    if os.pathsep in str(environment):
        faults.append(
            f"{environment} has a {os.pathsep} in its path, which no virtual environment may have. Move the checkout."
        )
    room = _room_of(environment)
    needs = {environment.parent: INSTALLED_MB, Path(tempfile.gettempdir()): DOWNLOADED_MB}
    if len({folder.stat().st_dev for folder in needs}) == 1:
        needs = {environment.parent: INSTALLED_MB + DOWNLOADED_MB}
    for folder, megabytes in needs.items():
        freed = room if folder.stat().st_dev == environment.parent.stat().st_dev else 0
        free, needed = (shutil.disk_usage(str(folder)).free + freed) / 1e9, megabytes * packages / 1000
        if free < needed:
            other = folder != environment.parent or free >= INSTALLED_MB * packages / 1000
            faults.append(
                f"{folder} has {free:.1f} GB free, and set-up needs {needed:.1f} GB there. "
                f"Free some{', or set TMPDIR to a folder on another disk' if other else ''}."
            )
    return faults


def _room_of(folder: Path) -> int:
    """Bytes that removing this folder frees. Files with other hard links count as none."""
    statuses = (Path(root, name).lstat() for root, _, names in os.walk(str(folder)) for name in names)
    return sum(status.st_blocks * 512 for status in statuses if status.st_nlink == 1)
