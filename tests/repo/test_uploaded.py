"""The tree that `gcloud builds submit` uploads, like every release archive, can be checked and tested: it has no .git."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.cloud_build import Worker, loaded, substitutions
from tests.image.step_programs import add_python
from tests.processes import run_to_end

from .files import ROOT
from .uploaded import copy_uploaded, listed_by_gcloud, uploaded_files

pytestmark = pytest.mark.timeout(900)
needs_gcloud = pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not on PATH")


@needs_gcloud
@pytest.mark.slow(seconds=2)
def test_gcloud_uploads_what_its_source_says(tmp_path: Path) -> None:
    assert listed_by_gcloud(tmp_path) == sorted(uploaded_files())


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The uploaded tree with the environment of these tests."""
    tree, config = (tmp_path_factory.mktemp(name) for name in ("uploaded", "gcloud"))
    copy_uploaded(tree, config)
    (tree / ".venv").symlink_to(sys.prefix)
    return tree


def run(uploaded: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """The command's outcome, with what mypy found out about the same files."""
    environment = {**os.environ, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache")}
    return run_to_end(command, cwd=uploaded, env=environment, timeout=800)


@pytest.mark.slow(seconds=10)
def test_make_check_passes_in_the_uploaded_tree(uploaded: Path) -> None:
    assert not (uploaded / ".git").exists()
    done = run(uploaded, "make", "--assume-old=.venv/.installed-from-lock", "check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow(seconds=12)
def test_every_test_is_collected_in_the_uploaded_tree(uploaded: Path) -> None:
    done = run(
        uploaded, ".venv/bin/python", "-m", "pytest", "--collect-only", "--quiet", "-p", "no:cacheprovider"
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr


@pytest.mark.slow(seconds=3)
def test_the_step_that_stages_the_functions_needs_no_package(uploaded: Path, tmp_path: Path) -> None:
    """The image of the step has Python alone: the environment that the step `test` makes is not used."""
    build, shims = loaded(), tmp_path / "shims"
    shims.mkdir()
    add_python(shims)
    worker = Worker(workspace=uploaded, output=tmp_path, shims=shims, values=substitutions(build))
    worker.run(build, "stage")
    assert (uploaded / "build" / "functions" / "main.py").read_bytes() == (
        ROOT / "functions" / "main.py"
    ).read_bytes()
