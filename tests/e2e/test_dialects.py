"""An unchanged gcloud file becomes a recorded model; the faults of a faulty one are named in its own dialect."""

import json
from typing import Any

import jsonschema
import pytest
import yaml
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from trainmaster.client.submission.terms import schema

from .project import Project, image_uri

pytestmark = pytest.mark.slow


def pool(project: Project, *args: str, **more: object) -> dict[str, Any]:
    return {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": 1,
        "containerSpec": {"imageUri": f"{image_uri(project.id)}:1", "args": list(args)},
        **more,
    }


def spec(project: Project) -> dict[str, Any]:
    """A CustomJobSpec whose chief and workers are given different arguments."""
    return {
        "workerPoolSpecs": [pool(project, "--epochs=30"), pool(project, "--epochs=2", replicaCount=2)],
        "scheduling": {"timeout": "600s", "strategy": "LOW_COST"},
        "enableWebAccess": False,
    }


def snake_cased(value: Any) -> Any:
    if isinstance(value, list):
        return [snake_cased(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key): snake_cased(each)
        for key, each in value.items()
    }


def assert_trained(project: Project, record: dict[str, Any], *, model_name: str) -> CustomJob:
    """The job of the run, whose record names the model that its chief wrote."""
    jsonschema.validate(record, schema("run_record.v2"))
    assert record["state"] == "succeeded", record
    assert record["request"]["model_name"] == model_name
    assert record["model"]["uri"] == f"gs://{project.models}/{model_name}/{record['run_id']}/model/"
    folder = project.folder(project.models) / model_name / record["run_id"] / "model"
    assert json.loads((folder / "model.json").read_text())["slope"] == pytest.approx(3, abs=0.1)
    (job,) = project.jobs(record["run_id"])
    assert job.state == JobState.JOB_STATE_SUCCEEDED
    return job


def test_a_custom_jobs_file_dropped_as_it_is_trains_the_model_of_its_name(project: Project) -> None:
    project.drop("requests/Line snake.yaml", yaml.safe_dump(snake_cased(spec(project)), sort_keys=False))
    status = project.final_status("requests/Line snake.yaml")
    jsonschema.validate(status, schema("drop_status.v1"))
    told = "$.scheduling.strategy: Vertex AI deprecated this strategy"
    assert any(problem.startswith(told) for problem in status["problems"])
    record = project.record(status["run_id"])
    assert record["problems"] == status["problems"]
    job = assert_trained(project, record, model_name="line-snake")
    pools = job.job_spec.worker_pool_specs
    assert [list(each.container_spec.args) for each in pools] == [["--epochs=30"], ["--epochs=2"]]
    assert [each.replica_count for each in pools] == [1, 2]
