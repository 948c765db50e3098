"""A request for a tuning becomes the best trial's model on record."""

import contextlib
import json
from typing import Any

import jsonschema
import psutil
import pytest
import yaml
from google.cloud.aiplatform_v1.types import JobState, Trial

from trainstack.process.family import members

from .project import ROOT, Project, image_uri, request

pytestmark = pytest.mark.slow

RATE = {"type": "double", "min": 0.001, "max": 1.0, "scale": "log"}
EPOCHS = 5


def tuning(*, metric: str = "loss", **more: object) -> dict[str, object]:
    return {
        "metrics": [{"id": metric, "goal": "minimize"}],
        "parameters": {"rate": RATE},
        "max_trials": 4,
        "parallel_trials": 2,
        **more,
    }


def ended_run(project: Project, name: str, content: str) -> dict[str, Any]:
    """The record of the dropped request once its run has ended; it fits its schema."""
    generation = project.upload(name, content)
    record = project.record(project.final_status(name, generation)["run_id"])
    schema = json.loads((ROOT / "schemas" / "run_record.v2.schema.json").read_text())
    jsonschema.validate(record, schema)
    return record


def the_job(project: Project, record: dict[str, Any]) -> Any:  # the client's messages carry no types
    (job,) = project.tuning_jobs(record["run_id"])
    assert record["job"]["name"] == job.name
    assert project.jobs(record["run_id"]) == []
    return job


def assert_tuned(project: Project, record: dict[str, Any], *, trials: int) -> None:
    """The record says what the job's trials say, and its model is the one that the best of them wrote."""
    assert record["state"] == "succeeded", record
    job = the_job(project, record)
    final = {each.id: each.final_measurement.metrics[0].value for each in job.trials}
    assert {
        each["id"]: each["measurement"]["metrics"]["loss"] for each in record["tuning"]["trials"]
    } == final
    assert [each["id"] for each in record["tuning"]["trials"]] == [
        str(number + 1) for number in range(trials)
    ]
    best = min(final, key=lambda each: final[each])
    assert (record["tuning"]["best_trial"]["id"], record["tuning"]["best_trial"]["value"]) == (
        best,
        final[best],
    )
    uri = f"{record['request']['output_uri']}/{best}/model/"
    assert record["model"]["uri"] == record["tuning"]["best_trial"]["model_uri"] == uri
    manifest = project.document(project.models, uri.removeprefix(f"gs://{project.models}/") + "export.json")
    assert manifest is not None
    assert manifest["model_uri"] == uri
    assert record["model"]["metrics"]["loss"] == pytest.approx(final[best])


def test_a_request_for_a_tuning_ends_with_the_best_trials_model_on_record(project: Project) -> None:
    text = request(project.id, f"--epochs={EPOCHS}", tuning=tuning())
    record = ended_run(project, "requests/tuning.yaml", text)
    assert_tuned(project, record, trials=4)
    assert all(each["measurements"] == EPOCHS for each in record["tuning"]["trials"])
    rates = {each["parameters"]["rate"] for each in record["tuning"]["trials"]}
    assert len(rates) == 4
    assert all(0.001 <= rate <= 1.0 for rate in rates)


def test_each_trial_may_be_a_chief_with_workers(project: Project) -> None:
    machine, start = {"machine": "n1-standard-4"}, "start-tuning"
    cluster = {"chief": machine, "workers": {"count": 1, **machine}}
    args = (f"--epochs={EPOCHS}", f"--wait-for=gs://{project.models}/{start}")
    name, content = "requests/tuning-workers.yaml", tuning(max_trials=2, measurement="best")
    generation = project.upload(name, request(project.id, *args, tuning=content, cluster=cluster))

    def begun() -> set[tuple[str, str]]:
        """Trial and name of every replica that trains; a fast chief would end its job before the workers begin."""
        found = project.logging.list_entries(filter_=f'jsonPayload.event="train_started" AND {of_run}')
        return {(each.labels["ml.googleapis.com/trial_id"], each.payload["replica"]) for each in found}

    run_id = project.eventually(lambda: (project.status(name) or {}).get("run_id"), "the run is known")
    (job,) = project.eventually(lambda: project.tuning_jobs(run_id), "the tuning job is there")
    of_run = f'resource.labels.job_id="{job.name.rpartition("/")[2]}"'
    every = {(trial, replica) for trial in ("1", "2") for replica in ("chief-0", "worker-0")}
    project.eventually(lambda: begun() == every, "every replica of both trials trains")
    project.storage.bucket(project.models).blob(start).upload_from_string("go")
    project.final_status(name, generation)
    assert_tuned(project, project.record(run_id), trials=2)


def test_a_file_for_gcloud_is_a_request_as_it_is(project: Project) -> None:
    job = {
        "displayName": "line",
        "maxTrialCount": 3,
        "parallelTrialCount": 3,
        "studySpec": {
            "algorithm": "GRID_SEARCH",
            "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
            "parameters": [{"parameterId": "rate", "discreteValueSpec": {"values": [0.05, 0.1, 0.5]}}],
        },
        "trialJobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {"machineType": "n1-standard-4"},
                    "replicaCount": 1,
                    "containerSpec": {"imageUri": f"{image_uri(project.id)}:1", "args": ["--epochs=3"]},
                }
            ]
        },
    }
    record = ended_run(project, "requests/gcloud.yaml", yaml.safe_dump(job))
    assert_tuned(project, record, trials=3)
    assert [each["parameters"]["rate"] for each in record["tuning"]["trials"]] == [0.05, 0.1, 0.5]
    assert record["tuning"]["best_trial"]["parameters"] == {"rate": 0.5}


def test_a_tuning_whose_trainer_reports_another_tag_says_so_in_the_record(project: Project) -> None:
    content = tuning(metric="lost", max_trials=2, max_failed_trials=2)
    record = ended_run(project, "requests/tag.yaml", request(project.id, "--epochs=2", tuning=content))
    assert record["state"] == "failed"
    assert {each["state"] for each in record["tuning"]["trials"]} == {"INFEASIBLE"}
    assert "best_trial" not in record
    assert "model" not in record
    (problem,) = record["problems"]
    assert problem.startswith("no trial reported the metric 'lost'; they reported 'loss'.")
    assert "must report the metric under the id" in problem


def test_a_tuning_whose_program_refuses_a_parameter_says_so_in_the_record(project: Project) -> None:
    content = tuning(max_trials=1, parallel_trials=1, max_failed_trials=1, parameters={"rates": RATE})
    name = "requests/refused.yaml"
    generation = project.upload(name, request(project.id, "--epochs=2", tuning=content))
    record = project.finished_record(project.final_status(name, generation)["run_id"])
    assert record["state"] == "failed"
    (trial,) = record["tuning"]["trials"]
    assert "non-zero status of 2" in trial["infeasible_reason"]
    told = trial["failure"]["message"]
    assert told.startswith("the program rejected its arguments: ")
    assert "unrecognized arguments: --rates=" in told
    assert trial["failure"]["last_lines"][0].startswith("usage: ")
    told = f"1 of 1 trials are infeasible; the first, trial 1, workerpool0-0: {told}"
    assert record["failure"]["message"].startswith(told)
    (problem,) = record["problems"]
    assert problem.startswith("no trial is best: none reported 'loss' (1 infeasible)")


def test_a_tuning_that_is_cancelled_on_vertex_ends_cancelled_with_no_process_left(project: Project) -> None:
    name, token = "requests/cancelled-tuning.yaml", project.token()
    before = set(members(token))
    wait = f"--wait-for=gs://{project.models}/never"
    generation = project.upload(name, request(project.id, wait, tuning=tuning()))

    def both_run() -> Any:
        status = project.status(name) or {}
        jobs = project.tuning_jobs(status["run_id"]) if status.get("run_id") else []
        active = [job for job in jobs if [t.state for t in job.trials] == [Trial.State.ACTIVE] * 2]
        return active[0] if active else None

    job = project.eventually(both_run, "two trials run")
    project.vertex.cancel_hyperparameter_tuning_job(name=job.name)
    record = project.record(project.final_status(name, generation)["run_id"])
    assert record["state"] == "cancelled"
    assert [each["state"] for each in record["tuning"]["trials"]] == ["INFEASIBLE"] * 2
    assert the_job(project, record).state == JobState.JOB_STATE_CANCELLED
    # A function's instance may come or go meanwhile; a replica may not be left.
    left = []
    for pid in set(members(token)) - before:
        with contextlib.suppress(psutil.NoSuchProcess):
            left.append(psutil.Process(pid).cmdline())
    assert [command for command in left if "tiny.py" in command] == []
