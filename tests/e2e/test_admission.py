"""A run finds its place: down the ladder past a full quota and a stockout, or later, when there is room."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from .project import Project, request, running_project
from .reckoning import custom_jobs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

T4 = {"machine": "n1-standard-4", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}
PAUSE_S = 90  # the first back-off of a run for which there was no room, on a machine that others use too


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    state = tmp_path_factory.mktemp("admission") / "state"
    arguments = ("--tick-s", "1", "--retry-min-s", "0.5", "--retry-max-s", "3")
    with running_project(state, *arguments, project="e2e-admission") as project:
        yield project


def put_quota(project: Project, **document: object) -> None:
    answer = httpx.put(f"{project.env['VERTEX_EMULATOR_HOST']}/emulator/v1/quota", json=document)
    assert answer.status_code == 200, answer.text


def record_of(project: Project, name: str) -> dict[str, Any] | None:
    found = [r for r in project.records().values() if r["source"]["object_name"] == name]
    return found[0] if found else None


def test_a_run_goes_down_its_ladder_past_a_full_quota_and_a_stockout(full: Project) -> None:
    stockout = {"resource": "NVIDIA_TESLA_T4", "spot": True}
    put_quota(full, quotas={full.region: {"NVIDIA_TESLA_T4": 0}}, stockouts=[stockout])
    fallbacks = [
        {"scheduling": {"spot": True}},
        {"cluster": {"chief": {"accelerator": None}}, "scheduling": {"spot": False}},
    ]
    full.upload("requests/ladder.yaml", request(full.id, cluster={"chief": T4}, fallbacks=fallbacks))
    status = full.settled_status("requests/ladder.yaml")
    assert status["state"] == "succeeded"
    record = full.record(status["run_id"])
    assert record["rung"] == 2
    assert [each["rung"] for each in record["tries"]] == [0, 1]
    refused, out_of_stock = (each["outcome"] for each in record["tries"])
    assert "custom_model_training_nvidia_t4_gpus" in refused
    assert "Resources are insufficient in region" in out_of_stock
    (given_up,) = record["given_up"]
    jobs = {job.name: job for job in full.jobs(status["run_id"])}
    assert set(jobs) == {given_up["job"], record["job"]["name"]}
    assert jobs[given_up["job"]].state.name == "JOB_STATE_FAILED"
    pool = jobs[record["job"]["name"]].job_spec.worker_pool_specs[0]
    assert not pool.machine_spec.accelerator_count


def test_a_run_without_room_waits_and_goes_when_there_is_some(full: Project) -> None:
    put_quota(full, quotas={full.region: {"replicas": 0}})
    before = len(custom_jobs(full))
    full.upload("requests/waits.yaml", request(full.id))

    def waits() -> bool:
        record = record_of(full, "requests/waits.yaml")
        return record is not None and record["state"] == "waiting"

    full.eventually(waits, "the run waits")
    record = record_of(full, "requests/waits.yaml")
    assert record is not None
    assert "exceed quota limits" in record["waiting"]["reason"]
    assert len(custom_jobs(full)) == before
    put_quota(full)
    full.eventually(
        lambda: (full.status("requests/waits.yaml") or {}).get("state") == "succeeded",
        "the run went",
        deadline_s=PAUSE_S,
    )
    assert len(full.jobs(record["run_id"])) == 1
