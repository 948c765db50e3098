"""What the tests of deployments share."""

from pathlib import Path

import pytest

from tests.deploy.cloud import Cloud


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)
