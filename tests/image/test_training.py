"""The built image trains on the local stack: two replicas, two containers, one model on record."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import ENDED, Project, running_project

from .conftest import needs
from .figures import DEADLINE_S, add_figures, request_for

pytestmark = [pytest.mark.slow, needs("runtime"), pytest.mark.timeout(1500)]

ID = "image-training"
IMAGE = f"us-central1-docker.pkg.dev/{ID}/trainmaster/trainer:built"


@pytest.fixture
def project(tmp_path: Path, trainer_image: str) -> Iterator[Project]:
    subprocess.run(["podman", "tag", trainer_image, IMAGE], check=True, capture_output=True)
    try:
        with running_project(tmp_path / "state", "--runtime", "container", project=ID) as running:
            yield running
    finally:
        subprocess.run(["podman", "untag", trainer_image, IMAGE], check=True, capture_output=True)


def test_two_replicas_of_the_built_image_train_one_model(project: Project, tmp_path: Path) -> None:
    add_figures(project, tmp_path / "figures")
    project.drop("requests/figures.json", json.dumps(request_for(project, IMAGE)))

    def ended() -> dict[str, Any] | None:
        status = project.status("requests/figures.json")
        return status if status and status["state"] in ENDED else None

    status = project.eventually(ended, "the run ends", deadline_s=DEADLINE_S)
    record = project.record(status["run_id"])
    (job,) = project.jobs(record["run_id"])
    assert record["state"] == "succeeded", (record, said(project, job.name))
    manifest = project.document(project.models, f"figures/{record['run_id']}/model/export.json")
    assert manifest is not None
    assert record["model"]["metrics"] == manifest["metrics"]
    assert manifest["training"]["strategy"] == "MultiWorkerMirroredStrategy"
    started = [payload for payload in said(project, job.name) if payload.get("event") == "train_started"]
    assert {payload["replica"] for payload in started} == {"chief-0", "worker-0"}
    assert {payload["replicas_in_sync"] for payload in started} == {2}
    weights = [
        payload["weights_sha256"] for payload in said(project, job.name) if "weights_sha256" in payload
    ]
    assert len(weights) == 2
    assert len(set(weights)) == 1


def said(project: Project, job_name: str) -> list[dict[str, Any]]:
    job_id = job_name.rpartition("/")[2]
    entries = project.logging.list_entries(filter_=f'resource.labels.job_id="{job_id}"')
    return [
        entry.payload if isinstance(entry.payload, dict) else {"text": entry.payload} for entry in entries
    ]
