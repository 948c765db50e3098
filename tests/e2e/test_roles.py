"""A request with every role: parameter servers hold the variables, an evaluator watches the checkpoints."""

import json
from pathlib import Path
from typing import Any

import pytest

from .project import Project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

DEADLINE_S = 600
EPOCHS = 8
MACHINE = {"machine": "n1-standard-4"}


def test_every_role_has_its_part_in_one_run(project: Project, figures: Path) -> None:
    name = "requests/roles.json"
    args = ["--workload=horses_or_humans", f"--data_dir={project.provide_data(figures)}", "--image_size=32", "--batch_size=4",
            f"--epochs={EPOCHS}", "--steps_per_epoch=4", "--weights=random"]  # fmt: skip
    one = {"count": 1, **MACHINE}
    request = {
        "model_name": "roles",
        "image": f"{project.region}-docker.pkg.dev/{project.id}/trainmaster/trainer:1",
        "args": args,
        "cluster": {
            "chief": MACHINE,
            "workers": one,
            "parameter_servers": one,
            "evaluators": {**one, "env": {"ONLY_THE_EVALUATOR": "1"}},
        },
        "scheduling": {"timeout_s": DEADLINE_S},
    }
    project.drop(name, json.dumps(request))
    status = project.eventually(lambda: _ended(project, name), "the run ends", deadline_s=DEADLINE_S)
    record = project.record(status["run_id"])
    assert record["state"] == "succeeded", record
    (job,) = project.jobs(record["run_id"])
    pools = job.job_spec.worker_pool_specs
    assert [pool.replica_count for pool in pools] == [1, 1, 1, 1]
    assert [len(pool.container_spec.env) for pool in pools] == [0, 0, 0, 1]
    manifest = project.document(project.models, f"roles/{record['run_id']}/model/export.json")
    assert manifest is not None
    assert manifest["training"]["strategy"] == "ParameterServerStrategy"
    assert record["model"]["metrics"] == manifest["metrics"]
    evaluated = _events(project, job.name, "evaluated", task="workerpool3-0")
    assert {event["replica"] for event in evaluated} == {"evaluator-0"}
    assert all("accuracy" in "".join(event["metrics"]) for event in evaluated)
    written = f"roles/{record['run_id']}/logs/evaluator-0/evaluations.jsonl"
    lines = project.storage.bucket(project.models).blob(written).download_as_text().splitlines()
    written_of, told_of = (
        [json.loads(line)["epoch"] for line in lines],
        [event["epoch"] for event in evaluated],
    )
    assert told_of in (
        written_of,
        written_of[:-1],
    )  # it ends with the job, perhaps between its file and its line
    assert lines, "the evaluator saw a checkpoint before the chief was done"


def _ended(project: Project, name: str) -> dict[str, Any] | None:
    status = project.status(name)
    return status if status and status["state"] in {"succeeded", "failed", "cancelled", "rejected"} else None


def _events(project: Project, job_name: str, event: str, *, task: str) -> list[dict[str, Any]]:
    job_id = job_name.rpartition("/")[2]
    labels = f'resource.labels.job_id="{job_id}" AND resource.labels.task_name="{task}"'
    entries = project.logging.list_entries(filter_=f'{labels} AND jsonPayload.event="{event}"')
    return [entry.payload for entry in entries]
