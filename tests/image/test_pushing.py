"""cloudbuild.yaml's own steps build and push; the push starts a run of the new image, named by its digest."""

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import ENDED, TINY, Project, eventually, running_project

from .cloud_build import Worker, loaded, substitutions
from .conftest import needs

pytestmark = [pytest.mark.slow, needs("runtime", "registry"), pytest.mark.timeout(900)]

ID = "image-pushing"
REPOSITORY = f"us-central1-docker.pkg.dev/{ID}/trainmaster/trainer"
DOCKERFILE = """
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ARG VARIANT
WORKDIR /app
COPY tiny.py /app/
USER 10001
ENTRYPOINT ["python3", "tiny.py"]
"""
# What the steps' images bring, on this machine: podman takes docker's words.
# It does not show the digest that an image got when it was pushed, only that of its uncompressed form here,
# which no registry has; so `inspect` is answered as docker answers it, from what `push` was told.
DOCKER = """#!/bin/sh
verb=$1; shift
case $verb in
  build) exec podman build --isolation chroot --layers "$@" ;;
  pull) exec podman pull --tls-verify=false "$@" ;;
  push)
    podman push --tls-verify=false --digestfile "$HOME/digest" "$@" || exit
    echo "${1%:*}@$(cat "$HOME/digest")" >> "$HOME/pushed" ;;
  inspect) podman inspect "$@" > /dev/null && tail -n 1 "$HOME/pushed" ;;
  *) exec podman "$verb" "$@" ;;
esac
"""
GCLOUD = """#!/bin/sh
printf '%s\\n' "$*" >> "$HOME/gcloud.log"
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    arguments = ("--runtime", "container", "--registry", "--tick-s", "2")
    with running_project(tmp_path / "state", *arguments, project=ID) as running:
        yield running


@pytest.fixture
def worker(tmp_path: Path, project: Project, base: str) -> Iterator[Worker]:
    workspace, output, shims = (tmp_path / name for name in ("workspace", "output", "shims"))
    for folder in (workspace, output, shims):
        folder.mkdir()
    shutil.copy(TINY / "tiny.py", workspace)
    (workspace / "Dockerfile").write_text(DOCKERFILE)
    for name, text in (("docker", DOCKER), ("gcloud", GCLOUD)):
        (shims / name).write_text(text)
        (shims / name).chmod(0o755)
    registry = project.env["TRAINMASTER_REGISTRY"]
    values = substitutions(loaded(), PROJECT_ID=ID, _REGISTRY=registry, _BASE_IMAGE=base)
    yield Worker(workspace=workspace, output=output, shims=shims, values=values)
    listing = ["podman", "images", "--quiet", "--filter", f"reference={registry}/{ID}/trainmaster/trainer"]
    images: list[str] = []

    def listed() -> bool:
        """It fails where another test removes an image meanwhile."""
        done = subprocess.run(listing, check=False, capture_output=True, text=True)
        images[:] = done.stdout.split()
        return done.returncode == 0

    eventually(listed, "the images are listed")
    for image in dict.fromkeys(images):
        subprocess.run(["podman", "rmi", "--force", image], check=False, capture_output=True)


def test_a_build_pushes_and_a_rule_runs_the_new_image_by_its_digest(project: Project, worker: Worker) -> None:
    rule = {
        "when": [{"new_image": {"repository": REPOSITORY, "tag": "latest"}}],
        "request": {
            "model_name": "line",
            "image": "${image.uri}",
            "args": ["--epochs=30"],
            "cluster": {"chief": {"machine": "n1-standard-4"}, "workers": {"count": 1, "machine": "n1-standard-4"}},
        },
    }  # fmt: skip
    project.upload("rules/image.json", json.dumps(rule))
    project.eventually(lambda: accepted(project), "the rule is accepted")

    build = loaded()
    worker.run(build, "pull-cache", "build", "push", "record-digest")
    recorded = (worker.output / "output").read_text().strip()
    assert recorded == (worker.workspace / "trainer-image.txt").read_text().strip()
    digest = re.fullmatch(
        rf"{worker.values['_REGISTRY']}/{ID}/trainmaster/trainer@(sha256:[0-9a-f]{{64}})", recorded
    )
    assert digest is not None, recorded

    record = project.eventually(lambda: ended_run(project), "the run of the new image ends", deadline_s=300)
    assert record["state"] == "succeeded", record
    (job,) = project.jobs(record["run_id"])
    uris = {pool.container_spec.image_uri for pool in job.job_spec.worker_pool_specs}
    assert uris == {f"{REPOSITORY}@{digest[1]}"}
    assert project.document(project.models, f"line/{record['run_id']}/model/export.json")

    worker.run(build, "deploy-functions", "publish-image")
    *deployments, published = (worker.output / "gcloud.log").read_text().splitlines()
    assert sorted(line.split()[2] for line in deployments) == sorted(
        build["substitutions"]["_FUNCTIONS"].split()
    )
    message = json.loads(published.partition("--message=")[2])
    assert message == {"action": "INSERT", "digest": recorded, "tag": recorded.partition("@")[0] + ":latest"}


def test_the_second_build_takes_its_layers_from_the_first(worker: Worker) -> None:
    build = loaded()
    worker.run(build, "pull-cache", "build", "push")
    image = f"{worker.values['_REGISTRY']}/{ID}/trainmaster/trainer:latest"
    first = layers_of(image)
    worker.run(build, "pull-cache", "build", "push")
    assert layers_of(image) == first


def test_a_failed_build_pushes_nothing(worker: Worker) -> None:
    (worker.workspace / "Dockerfile").write_text(DOCKERFILE + "\nRUN exit 3\n")
    with pytest.raises(subprocess.CalledProcessError):
        worker.run(loaded(), "pull-cache", "build", "push")
    assert catalog(worker.values["_REGISTRY"]) == []


def test_only_the_registry_itself_is_heard(project: Project) -> None:
    config = project.state / "registry" / "config.yml"
    url = json.loads(config.read_text())["notifications"]["endpoints"][0]["url"]
    request = urllib.request.Request(url, data=b'{"events": []}', method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=60)
    assert refused.value.code == 403
    refused.value.close()
    assert config.stat().st_mode & 0o077 == 0, "the token is for this user alone"


def accepted(project: Project) -> bool:
    status = project.status("rules/image.json")
    assert status is None or status["state"] == "accepted", status
    return status is not None


def ended_run(project: Project) -> dict[str, Any] | None:
    found = [record for record in project.records().values() if record["state"] in ENDED]
    return found[0] if found else None


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
