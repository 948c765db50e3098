"""A user's trainer, written for Vertex AI, ends with its model on record."""

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
    status = project.final_status("requests/own.yaml")
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


def test_a_script_that_saves_to_a_path_of_its_own_ends_with_that_model_on_record_and_no_older_one(
    project: Project,
) -> None:
    path = "codelab/saved"
    project.storage.bucket(project.models).blob(f"{path}/older.h5").upload_from_string(b"of an earlier run")
    saved_uri = f"gs://{project.models}/{path}"
    document = {
        "model_name": "codelab",
        "image": f"{own_image_uri(project.id)}:1",
        "args": [f"--model-dir={saved_uri}"],
        "model_uri": saved_uri,
        "cluster": {"chief": {"machine": "n1-standard-4"}},
    }
    project.upload("requests/codelab.yaml", json.dumps(document))
    status = project.final_status("requests/codelab.yaml")
    assert (status["state"], status["model_uri"]) == ("succeeded", f"{saved_uri}/")
    *_, problem = status["problems"]  # before it that the run may overwrite them, if it was seen running
    assert problem.endswith("older.h5, which were not recorded")
    record = project.finished_record(status["run_id"])
    assert record["request"]["model_uri"] == saved_uri
    assert (record["model"]["format"], record["model"]["metrics"]) == ("pickle", {"val_accuracy": 0.93})
    assert record["model"]["files"]["count"] == 1


def test_the_place_that_a_script_was_told_to_save_to_is_suggested_where_the_request_does_not_name_it(
    project: Project,
) -> None:
    document = {
        "model_name": "suggested",
        "image": f"{own_image_uri(project.id)}:1",
        "args": [f"--model-dir=gs://{project.models}/suggested/${{run_id}}"],
        "cluster": {"chief": {"machine": "n1-standard-4"}},
    }
    project.upload("requests/suggested.yaml", json.dumps(document))
    status = project.final_status("requests/suggested.yaml")
    (problem,) = status["problems"]
    assert problem.endswith(f"its arguments suggest model_uri: gs://{project.models}/suggested/${{run_id}}")
    saved = project.storage.list_blobs(project.models, prefix=f"suggested/{status['run_id']}/")
    assert sorted(blob.name.rpartition("/")[2] for blob in saved) == ["metrics.json", "model.pkl"]


def test_an_image_that_is_provided_while_the_stack_runs_can_be_asked_for(project: Project) -> None:
    image = f"{own_image_uri(project.id)}-later"
    command = [
        sys.executable,
        "-m",
        "trainmaster",
        "stack",
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
    assert project.final_status("requests/later.yaml")["state"] == "succeeded"
