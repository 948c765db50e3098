"""`trainmaster pools`, `costs` and `plan` on a real JobService, with a policy that has pools."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.cloud.aiplatform_v1.types import CustomJob

from tests.client.served import PROJECT, ROOT, Served, deployment, served_context
from tests.stack.jobs.conftest import IMAGES, PROGRAM, container
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT
from trainstack.vertex import Jobs, serve

pytestmark = pytest.mark.slow  # the client first asks after an operation when a second has passed

POOLS = [
    {"id": "short", "region": "us-central1", "machine": "n1-standard-4", "count": 1, "short_s": 1800},
    {"id": "t4", "region": "us-central1", "machine": "n1-standard-4", "count": 1, "idle_s": 3600,
     "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}},
]  # fmt: skip


@contextmanager
def a_context(folder: Path, pools: Sequence[Mapping[str, Any]]) -> Iterator[Served]:
    jobs = Jobs(
        dir=folder / "jobs",
        buckets_dir=folder / "buckets",
        images=lambda: {PROGRAM: IMAGES / "program"},
        write_log=lambda _: None,
        project=PROJECT,
    )
    with serve(jobs) as url, served_context(folder, VERTEX_EMULATOR_HOST=url) as served:
        document = deployment()
        document["policy"]["pools"] = pools
        served.write("ledger", DEPLOYMENT_OBJECT, document)
        yield served


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Served]:
    with a_context(tmp_path, POOLS) as served:
        yield served


def listed(context: Served) -> dict[str, tuple[str, int]]:
    done = context.trainmaster("pools", "ls", "-o", "json")
    assert done.status == 0, done.err
    return {one["id"]: (one["state"], one["machines"]) for one in json.loads(done.out)}


def test_a_pool_is_created_resized_shown_with_its_cost_and_removed(context: Served) -> None:
    assert listed(context) == {"short": ("ABSENT", 1), "t4": ("ABSENT", 1)}
    created = context.trainmaster("pools", "create", "t4", "short")
    assert (created.status, created.out) == (0, "short\nt4\n"), created.err
    assert context.trainmaster("pools", "resize", "short", "2").status == 0
    assert listed(context) == {"short": ("RUNNING", 2), "t4": ("RUNNING", 1)}
    table = context.trainmaster("pools", "ls").out.splitlines()
    assert table[0].split() == ["POOL", "REGION", "STATE", "MACHINES", "USED", "PER", "HOUR", "RUNS", "UP", "TO", "DELETED", "AFTER"]  # fmt: skip
    assert "1 of n1-standard-4 with 1 NVIDIA_TESLA_T4" in table[2]
    costs = context.trainmaster("costs")
    assert [line.split()[:2] for line in costs.out.splitlines()[1:]] == [["pool", "short"], ["pool", "t4"]]
    assert " an hour" in costs.out
    removed = context.trainmaster("pools", "rm", "short", "t4")
    assert (removed.status, removed.out) == (0, "short\nt4\n"), removed.err
    assert listed(context) == {"short": ("ABSENT", 1), "t4": ("ABSENT", 1)}


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["create", "short", "one", "two"], 3, "No pool is called one, two. Known: short, t4"),
        (["resize", "short", "0"], 2, "0 is not in the range"),
        (["rm", "short", "t4"], 2, "short does not exist\nt4 does not exist"),
    ],
)
def test_every_fault_is_told_and_nothing_is_changed(
    context: Served, words: list[str], status: int, told: str
) -> None:
    done = context.trainmaster("pools", *words)
    assert (done.status, told in done.err) == (status, True), done.err
    assert {state for state, _ in listed(context).values()} == {"ABSENT"}


def test_one_that_runs_jobs_is_removed_only_on_request(context: Served) -> None:
    assert context.trainmaster("pools", "create", "short").status == 0
    again = context.trainmaster("pools", "create", "short")
    assert (again.status, "short is RUNNING already" in again.err) == (2, True)
    pool = container("wait=staging/never")
    spec = {"persistent_resource_id": "short", "worker_pool_specs": [pool]}
    place, jobs = f"projects/{PROJECT}/locations/us-central1", context.clients.jobs
    job = jobs.create_custom_job(parent=place, custom_job=CustomJob({"display_name": "j", "job_spec": spec}))
    refused = context.trainmaster("pools", "rm", "short")
    assert (refused.status, "1 machines of short run jobs" in refused.err) == (2, True), refused.err
    assert context.trainmaster("pools", "rm", "short", "--cancel-jobs").status == 0
    assert jobs.get_custom_job(name=job.name).state.name in ("JOB_STATE_CANCELLING", "JOB_STATE_CANCELLED")


def test_pools_are_those_of_all_teams(context: Served) -> None:
    document = deployment()
    document["policy"] |= {"pools": POOLS, "teams": {"vision": {}, "speech": {}}}
    context.write("ledger", DEPLOYMENT_OBJECT, document)
    assert context.trainmaster("pools", "create", "short").status == 0
    costs = context.trainmaster("costs")
    assert (costs.status, "pool short" in costs.out) == (0, True), costs.err


def test_a_plan_shows_the_pool_first_and_what_it_saves(context: Served, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(
        "model_name: m\nimage: gcr.io/trainmaster-local/i\nscheduling: {timeout_s: 600}\n"
        "cluster: {chief: {machine: n1-standard-4}}\nfallbacks: [{scheduling: {spot: true}}]\n"
    )
    plan = context.trainmaster("plan", str(file))
    assert plan.status == 0, plan.err
    labels = [line.split("  ")[0] for line in plan.out.split("\n\n")[0].splitlines()]
    assert [label for label in labels if label in ("pool", "job", "fallback 1")] == [
        "pool",
        "job",
        "fallback 1",
    ]
    assert "start at once, with a pool that has free machines" in plan.out
    assert "n1-standard-4, on short" in plan.out
    assert "saves the wait for new machines and their cost" in plan.out


def test_the_page_about_deployments_shows_every_command_with_the_policy_that_it_needs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "share-a-deployment.md").read_text()
    section = text.partition("## Machines that stay between runs\n")[2].partition("\n## ")[0]
    policy, commands = (part.partition("```")[0] for part in re.split("```(?:yaml|sh)\n", section)[1:])
    with a_context(tmp_path, yaml.safe_load(policy)["pools"]) as context:
        for line in commands.splitlines():
            done = context.trainmaster(*line.split()[1:])
            assert done.status == 0, done.err
        assert listed(context) == {"short-cpu": ("ABSENT", 2)}
