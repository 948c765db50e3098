"""A config.yaml of AI Platform Training, dropped as it is, trains and ends on record."""

import json
from typing import Any

import jsonschema
import pytest
import yaml
from google.cloud.aiplatform_v1 import JobState

from .project import ROOT, Project, image_uri

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


def settled(project: Project, name: str, content: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Status and record of the drop once its run has ended; both fit their schemas."""
    generation = project.upload(name, content)
    status = project.settled_status(name, generation)
    record = project.record(status["run_id"])
    for document, schema in ((status, "drop_status.v1"), (record, "run_record.v1")):
        jsonschema.validate(document, json.loads((ROOT / "schemas" / f"{schema}.schema.json").read_text()))
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
    status, record = settled(project, "requests/legacy/census.yaml", text)
    assert record["state"] == "succeeded", record
    assert record["model_name"] == "census"
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
    _, record = settled(project, "requests/legacy/study.yaml", text)
    assert record["state"] == "succeeded", record
    (job,) = project.tuning_jobs(record["run_id"])
    assert [metric.metric_id for metric in job.study_spec.metrics] == ["loss"]
    assert [each["parameters"]["rate"] for each in record["trials"]] == [0.05, 0.1, 0.5]
    assert record["best_trial"]["parameters"] == {"rate": 0.5}
    assert record["model"]["uri"] == f"{record['output_uri']}/{record['best_trial']['id']}/model/"
    assert not record.get("problems")


def test_a_legacy_config_that_has_no_equal_today_is_rejected_whole(project: Project) -> None:
    text = config(project, scaleTier="BASIC_GPU", region="mars-east1")
    status, record = settled(project, "requests/legacy/gone.yaml", text)
    assert record["state"] == "rejected"
    bucket, _, name = status["report_uri"].removeprefix("gs://").partition("/")
    report = project.document(bucket, name)
    assert report is not None
    faults = {fault["path"].removeprefix("$.trainingInput."): fault for fault in report["faults"]}
    assert sorted(faults) == ["masterType", "region", "scaleTier"]
    assert "NVIDIA_TESLA_T4" in faults["scaleTier"]["repair"]
    assert project.region in faults["region"]["repair"]
