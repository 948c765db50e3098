"""A run is admitted with a later candidate after a full quota or a stockout, and ends by an order while it waits or runs."""

import json
from collections.abc import Iterator

import httpx
import pytest

from .project import Project, request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("restored_quotas")]

T4 = {"machine": "n1-standard-4", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}


@pytest.fixture
def restored_quotas(project: Project) -> Iterator[None]:
    """The quotas that a test fills are free again for the next one."""
    yield
    put_quota(project)


def put_quota(project: Project, **document: object) -> None:
    answer = httpx.put(f"{project.env['VERTEX_EMULATOR_HOST']}/emulator/v1/quota", json=document, timeout=60)
    assert answer.status_code == 200, answer.text


def test_a_run_goes_through_its_candidates_past_a_full_quota_and_a_stockout(project: Project) -> None:
    stockout = {"resource": "NVIDIA_TESLA_T4", "spot": True}
    put_quota(project, quotas={project.region: {"NVIDIA_TESLA_T4": 0}}, stockouts=[stockout])
    fallbacks = [
        {"scheduling": {"spot": True}},
        {"cluster": {"chief": {"accelerator": None}}, "scheduling": {"spot": False}},
    ]
    project.upload(
        "requests/candidates.yaml", request(project.id, cluster={"chief": T4}, fallbacks=fallbacks)
    )
    status = project.final_status("requests/candidates.yaml")
    assert status["state"] == "succeeded"
    record = project.record(status["run_id"])
    assert record["submission"]["candidate"] == 2
    assert [each["candidate"] for each in record["submission"]["tries"]] == [0, 1]
    refused, out_of_stock = (each["outcome"] for each in record["submission"]["tries"])
    assert "custom_model_training_nvidia_t4_gpus" in refused
    assert "Resources are insufficient in region" in out_of_stock
    (given_up,) = record["submission"]["abandoned_jobs"]
    jobs = {job.name: job for job in project.jobs(status["run_id"])}
    assert set(jobs) == {given_up["job"], record["job"]["name"]}
    assert jobs[given_up["job"]].state.name == "JOB_STATE_FAILED"
    pool = jobs[record["job"]["name"]].job_spec.worker_pool_specs[0]
    assert not pool.machine_spec.accelerator_count


def test_an_order_cancels_a_waiting_run_and_a_running_one(project: Project) -> None:
    long = request(project.id, f"--wait-for=gs://{project.models}/never")
    project.upload("requests/goes-on.yaml", long)
    project.eventually(lambda: state_of(project, "requests/goes-on.yaml") == "running", "the job is running")
    put_quota(project, quotas={project.region: {"replicas": 0}})
    project.upload("requests/queued.yaml", long)
    project.eventually(lambda: state_of(project, "requests/queued.yaml") == "waiting", "the run waits")
    for name in ("queued", "goes-on"):
        run_id = (project.status(f"requests/{name}.yaml") or {})["run_id"]
        order = json.dumps({"cancel": {"run": run_id}})
        generation = project.upload(f"requests/end-{name}.yaml", order)
        assert project.final_status(f"requests/end-{name}.yaml", generation)["record_uri"].endswith(
            f"/runs/{run_id}.json"
        )
        assert project.final_status(f"requests/{name}.yaml")["state"] == "cancelled"
        jobs = [job.state.name for job in project.jobs(run_id)]
        assert jobs == ([] if name == "queued" else ["JOB_STATE_CANCELLED"])


def state_of(project: Project, name: str) -> str | None:
    status = project.status(name)
    return str(status["state"]) if status else None
