"""cloudbuild.yaml's steps that build and push, with a small image, and the registry that they push to."""

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.project import TINY, Project, running_project

from .cloud_build import Worker, loaded
from .conftest import needs
from .step_programs import HOST, local_worker

pytestmark = [pytest.mark.slow, needs("runtime", "registry"), pytest.mark.timeout(900)]

REPOSITORY = f"{HOST}/image-pushing/trainmaster/trainer"
DOCKERFILE = """
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ARG VARIANT
WORKDIR /app
COPY tiny.py /app/
USER 10001
ENTRYPOINT ["python3", "tiny.py"]
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    arguments = ("--runtime", "container", "--registry", "--tick-s", "2")
    with running_project(tmp_path / "state", *arguments, project="image-pushing") as running:
        yield running


@pytest.fixture
def worker(tmp_path: Path, project: Project, base: str) -> Iterator[Worker]:
    with local_worker(tmp_path, project, base=base) as made:
        shutil.copy(TINY / "tiny.py", made.workspace)
        (made.workspace / "Dockerfile").write_text(DOCKERFILE)
        yield made


def test_the_second_build_reuses_the_layers_of_the_first(worker: Worker) -> None:
    build = loaded()
    worker.run(build, "pull-cache", "build", "push")
    image = f"{REPOSITORY}:latest"
    first = layers_of(image)
    worker.run(build, "pull-cache", "build", "push")
    assert layers_of(image) == first


def test_a_failed_build_pushes_nothing(project: Project, worker: Worker) -> None:
    (worker.workspace / "Dockerfile").write_text(DOCKERFILE + "\nRUN exit 3\n")
    with pytest.raises(subprocess.CalledProcessError):
        worker.run(loaded(), "pull-cache", "build", "push")
    assert catalog(project.env["TRAINMASTER_REGISTRY"]) == []


def test_only_the_registrys_own_notifications_are_accepted(project: Project) -> None:
    config = project.state / "registry" / "config.yml"
    url = json.loads(config.read_text())["notifications"]["endpoints"][0]["url"]
    request = urllib.request.Request(url, data=b'{"events": []}', method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert refused.value.code == 403
    refused.value.close()
    assert config.stat().st_mode & 0o077 == 0, "the token is for this user alone"


def layers_of(image: str) -> list[str]:
    done = subprocess.run(
        ["podman", "image", "inspect", "--format", "{{json .RootFS.Layers}}", image],
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


def catalog(registry: str) -> list[str]:
    with urllib.request.urlopen(f"http://{registry}/v2/_catalog", timeout=60) as answer:
        found: list[str] = json.load(answer)["repositories"]
    return found
