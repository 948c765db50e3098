"""A small flood from bench/upload_flood.py: nothing is lost or duplicated."""

import subprocess
import sys

import pytest

from .project import ROOT

pytestmark = [pytest.mark.slow(seconds=180), pytest.mark.timeout(900)]


def test_a_flood_with_duplicates_and_injections_loses_nothing_and_doubles_nothing() -> None:
    command = [sys.executable, "bench/upload_flood.py", "--uploads", "60", "--seed", "11"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=880, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-2000:]}"
    assert "every upload has one record, every run one job" in done.stdout
    assert "twice" in done.stdout
