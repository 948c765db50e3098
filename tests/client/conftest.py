"""The context of a test that writes what its verbs read."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.served import Served, served_context


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_context(tmp_path) as served:
        yield served
