"""The lock is what set-up takes it for: complete, and installable without a compiler on each supported Python."""

import subprocess
from pathlib import Path

import pytest

from tests.environments import run_uv
from tools.set_up import machine

LOCK = Path(__file__).resolve().parents[3] / "requirements.lock"
PYTHONS = [f"3.{minor}" for minor in range(machine.OLDEST[1], machine.NEWEST[1] + 1)]
PLATFORMS = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28")


def resolution(python: str, platform: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """What uv would install of the lock there, with all requirements, and with wheels as `make setup` takes them.

    uv, unlike pip, reads only the metadata for this.
    """
    install = ["pip", "install", "--dry-run", "--target", str(folder), "--requirement", str(LOCK)]
    wheels = ["--require-hashes", "--only-binary=:all:", "--no-binary=promise"]
    return run_uv(*install, *wheels, "--python-version", python, "--python-platform", platform, check=False)


@pytest.mark.slow(seconds=15)
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_is_complete_and_has_wheels_for_every_python_that_set_up_accepts(
    python: str, platform: str, tmp_path: Path
) -> None:
    """Set-up resolves nothing, so a requirement that the lock lacks would be missing."""
    done = resolution(python, platform, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "tensorflow==" in done.stderr


@pytest.mark.slow(seconds=3)
def test_the_python_that_set_up_refuses_as_too_new_lacks_wheels(tmp_path: Path) -> None:
    """When this fails, the lock can be installed there: raise machine.NEWEST."""
    done = resolution(f"3.{machine.NEWEST[1] + 1}", PLATFORMS[0], tmp_path)
    assert done.returncode != 0
    assert "No solution found" in done.stderr
    assert "wheels" in done.stderr
