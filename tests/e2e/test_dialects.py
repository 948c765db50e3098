"""Unchanged files of gcloud and of AI Platform Training become recorded models."""

from typing import Any

import jsonschema
import pytest
import yaml
from google.cloud.aiplatform_v1.types import CustomJob, JobState

from trainmaster.client.submission.terms import schema

from .project import Project, image_uri

pytestmark = pytest.mark.slow


def trained(project: Project, name: str, document: object) -> tuple[dict[str, Any], CustomJob]:
    """The record of the dropped file's run, whose model its chief wrote, and its job."""
    project.drop(name, yaml.safe_dump(document, sort_keys=False))
    status = project.final_status(name)
    record = project.record(status["run_id"])
    jsonschema.validate(status, schema("drop_status.v1"))
    jsonschema.validate(record, schema("run_record.v2"))
    assert record["state"] == "succeeded", record
    assert status["problems"] == record["problems"]
    place = record["model"]["uri"].removeprefix(f"gs://{project.models}/")
    model = project.document(project.models, f"{place}model.json")
    assert model is not None
    assert model["slope"] == pytest.approx(3, abs=0.1)
    (job,) = project.jobs(record["run_id"])
    assert job.state == JobState.JOB_STATE_SUCCEEDED
    return record, job


def test_a_custom_jobs_file_trains_the_model_of_its_name(project: Project) -> None:
    """A CustomJobSpec in gcloud's other spelling, whose chief and workers are given different arguments."""

    def pool(*args: str, replicas: int = 1) -> dict[str, Any]:
        container = {"image_uri": f"{image_uri(project.id)}:1", "args": list(args)}
        machine = {"machine_type": "n1-standard-4"}
        return {"machine_spec": machine, "replica_count": replicas, "container_spec": container}

    document = {
        "worker_pool_specs": [pool("--epochs=30"), pool("--epochs=2", replicas=2)],
        "scheduling": {"timeout": "600s", "strategy": "LOW_COST"},
        "enable_web_access": False,
    }
    record, job = trained(project, "requests/Line snake.yaml", document)
    told = "$.scheduling.strategy: Vertex AI deprecated this strategy"
    assert any(problem.startswith(told) for problem in record["problems"])
    assert record["request"]["model_name"] == "line-snake"
    assert record["model"]["uri"] == f"gs://{project.models}/line-snake/{record['run_id']}/model/"
    pools = job.job_spec.worker_pool_specs
    assert [list(pool.container_spec.args) for pool in pools] == [["--epochs=30"], ["--epochs=2"]]
    assert [pool.replica_count for pool in pools] == [1, 2]


def test_a_legacy_config_with_workers_trains_its_image(project: Project) -> None:
    training_input = {
        "scaleTier": "CUSTOM",
        "masterType": "standard",
        "masterConfig": {"imageUri": f"{image_uri(project.id)}:1"},
        "workerType": "standard",
        "workerCount": "2",
        "useChiefInTfConfig": True,
        "region": project.region,
        "args": ["--epochs=30"],
        "jobDir": f"gs://{project.models}/jobs",
        "scheduling": {"maxRunningTime": "600s"},
    }
    record, job = trained(project, "requests/legacy/census.yaml", {"trainingInput": training_input})
    assert record["request"]["model_name"] == "census"
    assert record["model"]["uri"] == f"gs://{project.models}/jobs/census/{record['run_id']}/model/"
    pools = job.job_spec.worker_pool_specs
    assert [(pool.machine_spec.machine_type, pool.replica_count) for pool in pools] == [
        ("n1-standard-4", 1),
        ("n1-standard-4", 2),
    ]
    args = list(pools[1].container_spec.args)
    assert args == ["--epochs=30", "--job-dir", f"gs://{project.models}/jobs"]
    named = [problem.partition(":")[0] for problem in record["problems"]]
    assert named == [f"$.trainingInput.{key}" for key in ("jobDir", "masterType", "workerType")]
