"""One stack for all tests that leave it whole."""

from collections.abc import Iterator

import pytest

from .project import Project, running_project


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    state = tmp_path_factory.mktemp("shared") / "state"
    arguments = ("--tick-s", "2", "--retry-min-s", "0.5", "--retry-max-s", "3")
    with running_project(state, *arguments, project="e2e-shared") as running:
        yield running
