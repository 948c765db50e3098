"""A request for a tuning becomes the best trial's model on record."""

import jsonschema
import pytest

from trainmaster.client.submission.terms import schema

from .project import Project, request

pytestmark = pytest.mark.slow

TUNING = {
    "metrics": [{"id": "loss", "goal": "minimize"}],
    "parameters": {"rate": {"type": "double", "min": 0.001, "max": 1.0, "scale": "log"}},
    "max_trials": 2,
    "parallel_trials": 2,
    "measurement": "best",
}


def test_each_trial_may_be_a_chief_with_workers(project: Project) -> None:
    machine, start = {"machine": "n1-standard-4"}, "start-tuning"
    cluster = {"chief": machine, "workers": {"count": 1, **machine}}
    args = ("--epochs=5", f"--wait-for=gs://{project.models}/{start}")
    name = "requests/tuning-workers.yaml"
    generation = project.upload(name, request(project.id, *args, tuning=TUNING, cluster=cluster))

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
    assert_tuned(project, run_id)


def assert_tuned(project: Project, run_id: str) -> None:
    """The record says what the job's trials say, and its model is the one that the best of them wrote."""
    record = project.record(run_id)
    jsonschema.validate(record, schema("run_record.v2"))
    assert record["state"] == "succeeded", record
    (job,) = project.tuning_jobs(run_id)
    assert record["job"]["name"] == job.name
    assert project.jobs(run_id) == []
    final = {trial.id: trial.final_measurement.metrics[0].value for trial in job.trials}
    tuning = record["tuning"]
    assert {trial["id"]: trial["measurement"]["metrics"]["loss"] for trial in tuning["trials"]} == final
    best = min(final, key=final.__getitem__)
    assert (tuning["best_trial"]["id"], tuning["best_trial"]["value"]) == (best, final[best])
    uri = f"{record['request']['output_uri']}/{best}/model/"
    assert record["model"]["uri"] == tuning["best_trial"]["model_uri"] == uri
    manifest = project.document(project.models, uri.removeprefix(f"gs://{project.models}/") + "export.json")
    assert manifest is not None
    assert manifest["model_uri"] == uri
    assert record["model"]["metrics"]["loss"] == pytest.approx(final[best])
