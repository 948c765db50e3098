"""An unchanged gcloud file becomes a recorded model; the faults of a faulty one are named in its own dialect."""

import json
from typing import Any

import jsonschema
import pytest
import yaml
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from .project import ROOT, Project, image_uri

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
    jsonschema.validate(record, json.loads((ROOT / "schemas/run_record.v2.schema.json").read_text()))
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
    jsonschema.validate(status, json.loads((ROOT / "schemas/drop_status.v1.schema.json").read_text()))
    told = "$.scheduling.strategy: Vertex AI deprecated this strategy"
    assert any(problem.startswith(told) for problem in status["problems"])
    record = project.record(status["run_id"])
    assert record["problems"] == status["problems"]
    job = assert_trained(project, record, model_name="line-snake")
    pools = job.job_spec.worker_pool_specs
    assert [list(each.container_spec.args) for each in pools] == [["--epochs=30"], ["--epochs=2"]]
    assert [each.replica_count for each in pools] == [1, 2]


def test_a_finished_job_as_the_client_prints_it_is_a_request_of_its_own(project: Project) -> None:
    whole = {"displayName": "line-again", "jobSpec": spec(project), "labels": {"team": "vision"}}
    generation = project.upload("requests/first.json", json.dumps(whole))
    first = project.record(project.final_status("requests/first.json", generation)["run_id"])
    job = assert_trained(project, first, model_name="line-again")
    generation = project.upload("requests/again.json", CustomJob.to_json(job))
    status = project.final_status("requests/again.json", generation)
    assert any("an earlier job; ignored" in problem for problem in status["problems"])
    again = assert_trained(project, project.record(status["run_id"]), model_name="line-again")
    assert again.name != job.name
    assert again.job_spec.worker_pool_specs == job.job_spec.worker_pool_specs
    assert dict(again.labels) == {**job.labels, "trainmaster_run_id": status["run_id"]}


def test_a_fault_in_pool_2_of_a_dropped_file_is_told_with_its_path_in_the_text(project: Project) -> None:
    faulty = snake_cased(spec(project))
    faulty["worker_pool_specs"].append(snake_cased(pool(project, "--epochs=1")))
    faulty["worker_pool_specs"][2]["container_spec"]["image_uri"] = "no image"
    faulty["worker_pool_specs"][2]["machine_spec"]["machin_type"] = "n1-standard-4"
    before = set(project.all_jobs())
    project.drop("requests/faulty-pool.yaml", yaml.safe_dump(faulty, sort_keys=False))
    status = project.final_status("requests/faulty-pool.yaml")
    assert status["state"] == "rejected"
    report = project.document(project.ledger, f"rejected/{status['run_id']}.json")
    assert report is not None
    faults = {fault["path"]: fault for fault in report["faults"]}
    assert faults["$.worker_pool_specs[2].container_spec.image_uri"]["found"] == "'no image'"
    assert (
        faults["$.worker_pool_specs[2].machine_spec.machin_type"]["repair"] == "did you mean 'machine_type'?"
    )
    assert set(project.all_jobs()) == before
