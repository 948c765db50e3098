"""An unchanged config.yaml of AI Platform Training trains and is recorded."""

from typing import Any

import jsonschema
import pytest
import yaml
from google.cloud.aiplatform_v1.types import JobState

from trainmaster.client.submission.terms import schema

from .project import Project, image_uri

pytestmark = pytest.mark.slow


def config(project: Project, **training_input: Any) -> str:
    written = {
        "scaleTier": "CUSTOM",
        "masterType": "n1-standard-4",
        "masterConfig": {"imageUri": f"{image_uri(project.id)}:1"},
        "useChiefInTfConfig": True,
        "region": project.region,
        **training_input,
    }
    return yaml.safe_dump({"trainingInput": written})


def ended_run(project: Project, name: str, content: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Status and record of the drop once its run has ended; both fit their schemas."""
    generation = project.upload(name, content)
    status = project.final_status(name, generation)
    record = project.record(status["run_id"])
    for document, name_of_schema in ((status, "drop_status.v1"), (record, "run_record.v2")):
        jsonschema.validate(document, schema(name_of_schema))
    return status, record


def test_a_legacy_config_with_workers_trains_its_image_and_ends_on_record(project: Project) -> None:
    text = config(
        project,
        masterType="standard",
        workerType="standard",
        workerCount="2",
        args=["--epochs=30"],
        jobDir=f"gs://{project.models}/jobs",
        scheduling={"maxRunningTime": "600s"},
    )
    status, record = ended_run(project, "requests/legacy/census.yaml", text)
    assert record["state"] == "succeeded", record
    assert record["request"]["model_name"] == "census"
    assert record["model"]["uri"] == f"gs://{project.models}/jobs/census/{record['run_id']}/model/"
    model = project.document(project.models, f"jobs/census/{record['run_id']}/model/model.json")
    assert model is not None
    assert model["slope"] == pytest.approx(3, abs=0.1)
    (job,) = project.jobs(record["run_id"])
    assert job.state == JobState.JOB_STATE_SUCCEEDED
    pools = [(pool.machine_spec.machine_type, pool.replica_count) for pool in job.job_spec.worker_pool_specs]
    assert pools == [("n1-standard-4", 1), ("n1-standard-4", 2)]
    args = list(job.job_spec.worker_pool_specs[1].container_spec.args)
    assert args == ["--epochs=30", "--job-dir", f"gs://{project.models}/jobs"]
    told = [problem.partition(":")[0] for problem in record["problems"]]
    assert told == [f"$.trainingInput.{key}" for key in ("jobDir", "masterType", "workerType")]
    assert status["problems"] == record["problems"]


def test_a_legacy_config_with_hyperparameters_becomes_a_study(project: Project) -> None:
    hyperparameters = {
        "goal": "MINIMIZE",
        "hyperparameterMetricTag": "loss",
        "maxTrials": 3,
        "maxParallelTrials": 3,
        "algorithm": "GRID_SEARCH",
        "params": [{"parameterName": "rate", "type": "DISCRETE", "discreteValues": [0.05, 0.1, 0.5]}],
    }
    text = config(project, args=["--epochs=3"], hyperparameters=hyperparameters)
    _, record = ended_run(project, "requests/legacy/study.yaml", text)
    assert record["state"] == "succeeded", record
    (job,) = project.tuning_jobs(record["run_id"])
    assert [metric.metric_id for metric in job.study_spec.metrics] == ["loss"]
    assert [each["parameters"]["rate"] for each in record["tuning"]["trials"]] == [0.05, 0.1, 0.5]
    assert record["tuning"]["best_trial"]["parameters"] == {"rate": 0.5}
    assert (
        record["model"]["uri"]
        == f"{record['request']['output_uri']}/{record['tuning']['best_trial']['id']}/model/"
    )
    assert not record.get("problems")
