"""The image's recipe. It is followed for real in tests/image."""

import os
import re
import shutil
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from dockerfile_parse import DockerfileParser

from tests.processes import run_to_end
from trainmaster.deploy.local_image import VARIANTS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def instructions() -> list[tuple[str, str]]:
    parser = DockerfileParser(fileobj=BytesIO((ROOT / "Dockerfile").read_bytes()))
    return [
        (part["instruction"], part["value"]) for part in parser.structure if part["instruction"] != "COMMENT"
    ]


def values(instructions: list[tuple[str, str]], name: str) -> list[str]:
    return [value for instruction, value in instructions if instruction == name]


def test_the_base_has_the_python_of_the_tests_and_is_an_argument(instructions: list[tuple[str, str]]) -> None:
    name, _, default = values(instructions, "ARG")[0].partition("=")
    locked = re.search(r'"--python-version=(3\.\d+)"', (ROOT / "tools/lock.py").read_text())
    assert locked is not None
    assert default.partition("@")[0] == f"python:{locked[1]}-slim"
    assert f"--python {locked[1]} " in " ".join(values(instructions, "RUN"))
    assert values(instructions, "FROM") == [f"${{{name}}}"]


@pytest.mark.parametrize(("launcher", "kept"), [("no", False), ("yes", True)])
def test_the_launcher_is_in_the_image_only_if_it_is_asked_for(
    instructions: list[tuple[str, str]], tmp_path: Path, launcher: str, kept: bool
) -> None:
    assert "LAUNCHER=no" in values(instructions, "ARG")
    (step,) = [value for value in values(instructions, "RUN") if "trainer/launch" in value]
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "LAUNCHER": launcher}
    subprocess.run(["sh", "-c", step], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "trainer" / "launch").exists() == kept
    command = [sys.executable, "-m", "trainer.task", "--help"]
    help_text = run_to_end(command, cwd=tmp_path, env=environment, check=True)
    assert "--data_dir" in help_text.stdout
    command = [sys.executable, "-m", "trainer.launch", "--framework=torch", "--", "true"]
    assert (subprocess.run(command, cwd=tmp_path, env=environment, check=False).returncode == 0) == kept


def test_everything_copied_exists_and_passes_the_ignore_file(instructions: list[tuple[str, str]]) -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for copy in values(instructions, "COPY"):
        for source in copy.split()[:-1]:
            for variant in VARIANTS:
                assert (ROOT / source.replace("${VARIANT}", variant)).exists()
            assert source.partition("/")[0] in kept
