"""The registry that builds push to."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.project import Project, running_project

from .conftest import needs

pytestmark = [pytest.mark.slow, needs("runtime", "registry"), pytest.mark.timeout(900)]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    arguments = ("--runtime", "container", "--registry", "--tick-s", "2")
    with running_project(tmp_path / "state", *arguments, project="image-pushing") as running:
        yield running


def test_only_the_registrys_own_notifications_are_accepted(project: Project) -> None:
    config = project.state / "registry" / "config.yml"
    url = json.loads(config.read_text())["notifications"]["endpoints"][0]["url"]
    request = urllib.request.Request(url, data=b'{"events": []}', method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert refused.value.code == 403
    refused.value.close()
    assert config.stat().st_mode & 0o077 == 0, "the token is for this user alone"
