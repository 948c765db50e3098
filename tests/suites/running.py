"""Runs a suite in a copy of its checkout, in a separate environment, against a new stack."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from tests.environments import run_uv
from tests.suites.outcomes import Score, causes_of, count_of, read_outcomes
from tests.suites.suite import COMMON, SUITES, Suite
from trainmaster.cli.stack.process import local_stack
from trainstack.find import read_stack_env
from trainstack.stack.state import client_variables_path

PLUGINS = Path(__file__).parent / "plugins"
COPIED = shutil.ignore_patterns(".git", "unit", "docs")
COMMON_WORDS = (
    "-q",
    "--tb=short",
    "--continue-on-collection-errors",
    "-p",
    "no:cacheprovider",
    "-W",
    "default",
)
"""For every suite. Some make each warning an error, and their requirements are newer here than they were there."""


def make_environment(folder: Path) -> Path:
    """The Python of an environment with what every suite requires, made on the first call."""
    python, noted = folder / "bin" / "python", folder / "requirements.txt"
    required = sorted({*COMMON.split(), *(name for suite in SUITES for name in suite.requires.split())})
    if not noted.exists() or noted.read_text().split() != required:
        run_uv("venv", "--clear", "--python", sys.executable, str(folder))
        run_uv("pip", "install", "--python", str(python), *required)
        noted.write_text("\n".join(required))
    return python


def run_suite(suite: Suite, checkouts: Path, python: Path, *, chosen: tuple[str, ...] = ()) -> Score:
    """Run the suite, or the chosen words of pytest in place of its tests, against a new stack.

    Raises:
        StackFailed: the stack did not start.
        FileNotFoundError: the checkout is not there, or pytest ended without a report.
    """
    with tempfile.TemporaryDirectory(prefix="suites-") as temporary:
        folder = Path(temporary)
        tree, report = folder / suite.checkout, folder / "report.xml"
        shutil.copytree(checkouts / suite.checkout, tree, ignore=COPIED, symlinks=True)
        for name, size in (file for adaptation in suite.adaptations for file in adaptation.data.items()):
            if not (tree / name).exists():
                (tree / name).write_bytes(random.Random(name).randbytes(size))
        options = [word for adaptation in suite.adaptations for word in adaptation.stack_options]
        stack = local_stack(folder / "stack", folder / "stack.log", ["--console", "off", *options])
        with stack as variables:
            gateway = read_stack_env(client_variables_path(folder / "stack", "gateway").read_text())
            command = [str(python), "-m", "pytest", f"--junitxml={report}", *pytest_words(suite, chosen)]
            subprocess.run(
                command,
                cwd=tree / suite.folder,
                env=environment_of(suite, {**variables, **gateway}),
                check=False,
            )
        outcomes = read_outcomes(report)
    return Score(
        suite=suite.name,
        version=suite.version,
        commit=suite.commit,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        counts=count_of(outcomes),
        causes=causes_of(outcomes),
    )


def environment_of(suite: Suite, stack: Mapping[str, str]) -> dict[str, str]:
    """The variables of the suite's process: this one's, the stack's, and those of its adaptations."""
    foreign = ("GOOGLE_", "CLOUDSDK_", "PYTEST_")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment = {**ours, **stack, "PYTHONPATH": str(PLUGINS)}
    names = {"project": stack["GOOGLE_CLOUD_PROJECT"], "account": stack["TRAINMASTER_TRAINER_ACCOUNT"]}
    for adaptation in suite.adaptations:
        environment |= {name: value.format(**names) for name, value in adaptation.variables.items()}
        for name in adaptation.unset:
            environment.pop(name, None)
    return environment


def pytest_words(suite: Suite, chosen: tuple[str, ...] = ()) -> list[str]:
    """The words of pytest's command line for the suite."""
    left_out = [path for adaptation in suite.adaptations for path in adaptation.left_out]
    plugins = [adaptation.plugin for adaptation in suite.adaptations if adaptation.plugin]
    return [
        *(word for plugin in plugins for word in ("-p", plugin)),
        *(*COMMON_WORDS, f"--timeout={suite.limit_s}", "-o", "asyncio_default_fixture_loop_scope=function"),
        *(word for path in left_out for word in ("--deselect" if "::" in path else "--ignore", path)),
        *(chosen or suite.tests.split()),
    ]
