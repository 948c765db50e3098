"""An unchanged config.yaml of AI Platform Training trains and is recorded."""

import json
from typing import Any

import jsonschema
import pytest
import yaml
from google.cloud.aiplatform_v1.types import JobState

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


def ended_run(project: Project, name: str, content: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Status and record of the drop once its run has ended; both fit their schemas."""
    generation = project.upload(name, content)
    status = project.final_status(name, generation)
    record = project.record(status["run_id"])
    for document, schema in ((status, "drop_status.v1"), (record, "run_record.v2")):
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


def test_a_legacy_config_of_packages_is_refused_while_no_container_can_run_them(project: Project) -> None:
    written = {
        "scaleTier": "BASIC",
        "runtimeVersion": "2.11",
        "pythonVersion": "3.7",
        "packageUris": [f"gs://{project.id}-data/packages/line_trainer-0.1.tar.gz"],
        "pythonModule": "line_trainer.task",
    }
    text = yaml.safe_dump({"jobId": "Line_20200101", "trainingInput": written})
    status, record = ended_run(project, "requests/legacy/package.yaml", text)
    assert (status["state"], record["state"]) == ("rejected", "rejected")
    (problem,) = record["problems"]
    assert problem.startswith(
        "$.trainingInput.runtimeVersion: the prebuilt container has been unavailable since"
    )
    assert project.jobs(record["run_id"]) == []


def test_a_program_that_reads_master_is_given_the_environment_it_knew(project: Project) -> None:
    text = config(project, useChiefInTfConfig=False, workerType="n1-standard-4", workerCount=1)
    _, record = ended_run(project, "requests/legacy/master.yaml", text)
    assert record["state"] == "succeeded", record
    job_id = record["job"]["name"].rpartition("/")[2]
    begun = f'jsonPayload.event="train_started" AND resource.labels.job_id="{job_id}"'

    def replicas() -> set[str]:
        return {entry.payload["replica"] for entry in project.logging.list_entries(filter_=begun)}

    project.eventually(lambda: "master-0" in replicas(), "the primary replica is called master")
    assert replicas() <= {"master-0", "worker-0"}


def test_a_legacy_config_that_has_no_equal_today_is_rejected_whole(project: Project) -> None:
    text = config(project, scaleTier="BASIC_GPU", region="mars-east1")
    status, record = ended_run(project, "requests/legacy/gone.yaml", text)
    assert record["state"] == "rejected"
    bucket, _, name = status["report_uri"].removeprefix("gs://").partition("/")
    report = project.document(bucket, name)
    assert report is not None
    faults = {fault["path"].removeprefix("$.trainingInput."): fault for fault in report["faults"]}
    assert sorted(faults) == ["masterType", "region", "scaleTier"]
    assert "NVIDIA_TESLA_T4" in faults["scaleTier"]["repair"]
    assert project.region in faults["region"]["repair"]
