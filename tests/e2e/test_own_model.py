"""A user's trainer, written for Vertex AI, ends with its model on record."""

import json
import subprocess
import sys

import pytest

from .project import OWN, ROOT, Project, own_image_uri

pytestmark = pytest.mark.slow


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
