"""A request for a tuning becomes the best trial's model on record."""

import contextlib
from typing import Any

import jsonschema
import psutil
import pytest
from google.cloud.aiplatform_v1.types import JobState, Trial

from trainmaster.client.submission.terms import schema
from trainstack.process.family import members

from .project import Project, request

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
    jsonschema.validate(record, schema("run_record.v2"))
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
