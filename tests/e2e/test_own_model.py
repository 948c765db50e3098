"""A trainer of one's own, written for Vertex AI, ends with its model on record."""

import json
import subprocess
import sys

import pytest

from .project import OWN, ROOT, Project, own_image_uri

pytestmark = pytest.mark.slow


def test_a_script_that_knows_only_vertex_ai_ends_with_its_model_and_metrics_on_record(
    project: Project,
) -> None:
    document = {
        "model_name": "own",
        "image": f"{own_image_uri(project.id)}:1",
        "cluster": {"chief": {"machine": "n1-standard-4"}},
        "champion": {"metric": "val_accuracy", "goal": "maximize", "evaluation": "held-out"},
    }
    project.upload("requests/own.yaml", json.dumps(document))
    status = project.settled_status("requests/own.yaml")
    assert (status["state"], status["problems"]) == ("succeeded", [])
    model = project.finished_record(status["run_id"])["model"]
    assert (model["format"], model["metrics"]) == ("pickle", {"val_accuracy": 0.93})
    assert model["uri"] == status["model_uri"]
    assert model["files"]["count"] == 1
    (listing,) = [
        blob.name
        for blob in project.storage.list_blobs(project.ledger, prefix=f"model_files/{status['run_id']}/")
    ]
    assert model["files"]["listing_uri"] == f"gs://{project.ledger}/{listing}"
    champion = project.document(project.ledger, "champions/own.json")
    assert champion is not None
    assert champion["current"]["value"] == 0.93


def test_an_image_that_is_provided_while_the_stack_runs_can_be_asked_for(project: Project) -> None:
    image = f"{own_image_uri(project.id)}-later"
    command = [
        sys.executable,
        "-m",
        "trainmaster",
        "provide",
        f"{image}={OWN}",
        "--state",
        str(project.state),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    document = {
        "model_name": "later",
        "image": image,
        "cluster": {"chief": {"machine": "n1-standard-4"}},
    }
    project.upload("requests/later.yaml", json.dumps(document))
    assert project.settled_status("requests/later.yaml")["state"] == "succeeded"
