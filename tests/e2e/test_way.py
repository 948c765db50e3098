"""A request becomes a trained model on record, with its manifest and its job."""

import jsonschema
import pytest
from google.cloud.aiplatform_v1.types import JobState

from trainmaster.client.submission.terms import schema

from .project import Project, request

pytestmark = pytest.mark.slow


def test_an_upload_becomes_a_trained_model_on_record(project: Project) -> None:
    generation = project.upload("requests/upload.yaml", request(project.id))
    status = project.final_status("requests/upload.yaml", generation)
    jsonschema.validate(status, schema("drop_status.v1"))
    record = project.record(status["run_id"])
    jsonschema.validate(record, schema("run_record.v2"))
    assert record["state"] == "succeeded", record
    model_uri = record["model"]["uri"]
    assert model_uri == f"gs://{project.models}/line/{record['run_id']}/model/"
    prefix = model_uri.removeprefix(f"gs://{project.models}/")
    manifest = project.document(project.models, f"{prefix}export.json")
    jsonschema.validate(manifest, schema("model_export.v1"))
    assert manifest is not None
    assert record["model"]["metrics"] == manifest["metrics"]
    model = project.document(project.models, f"{prefix}model.json")
    assert model is not None
    assert (model["slope"], model["intercept"]) == (pytest.approx(3, abs=0.1), pytest.approx(-1, abs=0.1))
    (job,) = project.jobs(record["run_id"])
    assert job.name == record["job"]["name"]
    assert job.state == JobState.JOB_STATE_SUCCEEDED
    assert job.job_spec.service_account == f"tm-trainer@{project.id}.iam.gserviceaccount.com"
