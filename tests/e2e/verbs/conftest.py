"""One stack for the tests of all verbs, which leave it intact, and the command as a user of that stack runs it.

    def test_a_run_is_shown(trainmaster: Trainmaster, trained: dict[str, Any]) -> None:
        shown = trainmaster("status", trained["run_id"])
        assert (shown.status, shown.err) == (0, "")

The image `tests/e2e/images/tiny` writes a model in a second; `tests.e2e.project.request` is a request for it.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import command
from tests.command import Done
from tests.e2e.project import Project, request, running_project

PROJECT = "e2e-verbs"


@dataclass(frozen=True, kw_only=True)
class Trainmaster:
    """Runs the command in this process, in the folder whose stack runs, with separate settings.

    Attributes:
        folder: where it runs; its stack is on `folder/.trainmaster`.
        environment: its variables; the settings are in TRAINMASTER_CONFIG.
    """

    folder: Path
    environment: Mapping[str, str]

    def __call__(self, *words: str, stdin: str = "", cwd: Path | None = None, **variables: str) -> Done:
        environment = {**self.environment, **variables}
        return command.trainmaster(*words, cwd=cwd or self.folder, environment=environment, text=stdin)


@pytest.fixture(scope="session")
def trainmaster(tmp_path_factory: pytest.TempPathFactory) -> Trainmaster:
    """The command in a new folder; without the fixture `stack`, none may be running."""
    home = tmp_path_factory.mktemp("verbs")
    (home / "work").mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TRAINMASTER_CONFIG": str(home / "config")}
    return Trainmaster(folder=home / "work", environment=environment)


@pytest.fixture(scope="package")  # an idle stack still ticks until the last test
def stack(trainmaster: Trainmaster) -> Iterator[Project]:
    """The running stack on the command's folder."""
    arguments = ("--tick-s", "2", "--retry-min-s", "0.5", "--retry-max-s", "3")
    state = trainmaster.folder / ".trainmaster"
    settings = {"TRAINMASTER_CONFIG": trainmaster.environment["TRAINMASTER_CONFIG"]}
    with running_project(state, *arguments, project=PROJECT, environment=settings) as running:
        yield running


@pytest.fixture(scope="package")
def trained(stack: Project) -> dict[str, Any]:
    """The record of a run that has succeeded; the file `requests/trained.yaml` started it."""
    stack.drop("requests/trained.yaml", request(PROJECT))
    status = stack.final_status("requests/trained.yaml")
    assert status["state"] == "succeeded", status
    return stack.finished_record(status["run_id"])
