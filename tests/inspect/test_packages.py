"""A script that imports a usual package which the trainer's image lacks is warned of, and no other script is."""

from pathlib import Path

import pytest

from tests.inspect.test_checks import examined
from trainmaster.inspect.checks.packages import USUAL
from trainmaster.inspect.finding import Finding, Level, Subject

REQUEST = "model_name: m\n{program}\ncluster: {{chief: {{machine: n1-standard-4}}}}\n"
IMPORTS = "import joblib\nfrom sklearn.linear_model import SGDClassifier\n"


def found(folder: Path, text: str = IMPORTS, script: str = "train.py") -> list[Finding]:
    program = folder / script
    program.parent.mkdir(exist_ok=True)
    program.write_text(text)
    return [each for each in examined(program) if each.subject is Subject.REQUIREMENTS]


def test_the_warning_names_the_modules_and_the_lines_to_add(tmp_path: Path) -> None:
    (finding,) = found(tmp_path)
    assert finding.level is Level.WARNING
    assert finding.found.startswith("The script imports joblib, sklearn, which the trainer's image lacks")
    assert finding.repair == "Add joblib, scikit-learn to requirements.txt beside the script, one a line."
    assert finding.place is not None
    assert finding.place.line == 1


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("import numpy as np, pandas as pd", "pandas"),
        ("import cv2, cv2.dnn", "cv2"),
        ("from google.cloud import storage", "google.cloud.storage"),
        ("import google.cloud.bigquery as bq", "google.cloud.bigquery"),
    ],
)
def test_each_module_is_named_once(tmp_path: Path, text: str, module: str) -> None:
    (finding,) = found(tmp_path, text)
    assert finding.found.startswith(f"The script imports {module}, which ")


def test_an_import_of_a_module_beside_the_script_counts(tmp_path: Path) -> None:
    (tmp_path / "fitting.py").write_text("import sklearn\n")
    (finding,) = found(tmp_path, "import fitting\n")
    assert finding.place is not None
    assert Path(finding.place.path).name == "fitting.py"


@pytest.mark.parametrize(
    "text",
    [
        "import os, json, numpy, requests, yaml_of_mine, tensorflow as tf, PIL.Image, absl.flags, tqdm",
        "try:\n    import torch\nexcept ImportError:\n    torch = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas",
        "def plot():\n    import matplotlib",
        "from contextlib import suppress\nwith suppress(ImportError):\n    import wandb, xgboost",
        "import sys\nsys.path.insert(0, '/gcs/b/packages')\nimport pandas",
        "from sys import path\npath.append('vendor')\nimport pandas",
        "import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', 'pandas'])\nimport pandas",
        "import google\nfrom google import protobuf",
        "from . import pandas",
        "import my_company_models",
    ],
)
def test_what_may_be_there_is_not_warned_of(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


@pytest.mark.parametrize(
    "file",
    [
        "joblib.py", "joblib/__init__.py", "joblib/parts.py", "joblib/data.csv", "joblib.cpython-311.so", "src/joblib.py"
    ],
)  # fmt: skip
def test_what_lies_beside_the_script_is_its_own(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    assert found(tmp_path, "import joblib\n") == []


@pytest.mark.parametrize("file", ["requirements.txt", "Dockerfile", "pyproject.toml", "setup.py"])
def test_a_folder_that_says_what_to_install_is_not_judged(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("FROM a" if file == "Dockerfile" else "")
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("program", "is_warned"),
    [
        ("script: {file: train.py}", True),
        ("script: {file: train.py}\nimage: us-docker.pkg.dev/p/trainmaster/trainer:latest", True),
        ("script: {file: train.py}\nimage: us-docker.pkg.dev/p/r/sklearn:latest", False),
        ("script: {file: train.py}\nenv: {PYTHONPATH: /gcs/b/packages}", False),
        ("image: us-docker.pkg.dev/p/r/sklearn:latest", False),
        ("image: us-docker.pkg.dev/p/trainmaster/trainer:latest", False),
    ],
)
def test_only_the_trainers_image_is_known(tmp_path: Path, program: str, *, is_warned: bool) -> None:
    (tmp_path / "request.yaml").write_text(REQUEST.format(program=program))
    assert bool(found(tmp_path)) is is_warned


def test_requirements_lie_beside_the_request_if_the_script_is_below(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "request.yaml").write_text(REQUEST.format(program="script: {file: code/train.py}"))
    assert found(tmp_path, script="code/train.py")
    (tmp_path / "requirements.txt").write_text("scikit-learn\n")
    assert not found(tmp_path, script="code/train.py")


def test_every_package_is_a_name_that_an_index_may_have() -> None:
    assert {name for name, package in USUAL.items() if "_" in package or "." in package} == set()
