"""A run is admitted with a later candidate after a full quota or a stockout, and ends by an order while it waits or runs."""

import json
from collections.abc import Iterator

import httpx
import pytest

from .project import Project, request

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.usefixtures("restored_quotas")]


@pytest.fixture
def restored_quotas(project: Project) -> Iterator[None]:
    """The quotas that a test fills are free again for the next one."""
    yield
    put_quota(project)


def put_quota(project: Project, **document: object) -> None:
    answer = httpx.put(f"{project.env['VERTEX_EMULATOR_HOST']}/emulator/v1/quota", json=document, timeout=60)
    assert answer.status_code == 200, answer.text


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
