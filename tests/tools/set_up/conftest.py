"""A checkout to set up, with an environment that has only pip."""

import venv
from pathlib import Path

import pytest

from tests.tools.set_up.checkout import Checkout, make_checkout


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("environment") / ".venv"
    venv.create(folder, symlinks=True, with_pip=True)
    return folder


@pytest.fixture
def checkout(environment: Path, tmp_path: Path) -> Checkout:
    return make_checkout(tmp_path, environment)
