"""A function killed between creating the job and recording it: one job, one record, after redelivery."""

import threading
from collections.abc import Callable, Iterator
from functools import partial

import psutil
import pytest

from .project import Project, request, running_project
from .proxied import LEASE_S, Answer, Request, VertexProxy, quick_topology, running

pytestmark = pytest.mark.slow(seconds=75)


class KillingProxy(VertexProxy):
    """The caller never gets the response for the first job that is created.

    The job exists when the caller is killed: the answer has arrived here, and goes no further.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kill = threading.Event()
        self.killed: list[int] = []
        self.victims: Callable[[], list[psutil.Process]] = list

    def answer(self, request: Request, pass_on: Callable[[], Answer]) -> Answer | None:
        told = pass_on()
        if not (request.creates_job and told.status == 200 and self.kill.is_set()):
            return told
        self.kill.clear()
        for victim in self.victims():
            victim.kill()
            self.killed.append(victim.pid)
        return None


@pytest.fixture(scope="module")
def proxy() -> Iterator[KillingProxy]:
    with running(KillingProxy()) as started:
        yield started


@pytest.fixture(scope="module")
def fragile(proxy: KillingProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("killed")
    arguments = (
        "--topology", str(quick_topology(folder, vertex_url=proxy.url)),
        "--retry-min-s", "0.5", "--retry-max-s", "2", "--tick-s", "3600",
    )  # fmt: skip
    with running_project(folder / "state", *arguments, project="e2e-killed") as started:
        proxy.target = started.env["VERTEX_EMULATOR_HOST"]
        proxy.victims = lambda: started.function_processes("on-request-uploaded")
        yield started


def jobs(project: Project, run_id: str) -> list[str]:
    """The names of the run's jobs, of either kind."""
    plain = [job.name for job in project.jobs(run_id)]
    return plain + [job.name for job in project.tuning_jobs(run_id)]


def upload_and_kill(project: Project, proxy: KillingProxy, name: str, content: str) -> str:
    """The run_id of a request whose function was killed after it created the job and before it recorded it."""
    before = len(proxy.killed)
    proxy.kill.set()
    project.upload(name, content)
    project.eventually(lambda: len(proxy.killed) > before, "the function was killed")
    (record,) = [r for r in project.records().values() if r["source"]["object_name"] == name]
    (job,) = jobs(project, record["run_id"])
    # Only the job's log may have reported it by now; its function did not.
    assert record["state"] in ("reserved", "running")
    assert record.get("job", {"name": job})["name"] == job
    return str(record["run_id"])


def is_adopted(project: Project, run_id: str) -> bool:
    return project.record(run_id)["state"] in ("submitted", "running")


def test_the_redelivered_event_adopts_the_job_when_the_lease_is_over(
    fragile: Project, proxy: KillingProxy
) -> None:
    wait = f"--wait-for=gs://{fragile.models}/go"
    tuning = {
        "metrics": [{"id": "loss", "goal": "minimize"}],
        "parameters": {"rate": {"type": "double", "min": 0.1, "max": 0.5}},
        "max_trials": 1,
    }
    drops = {
        "requests/adopted.yaml": request(fragile.id, wait),
        "requests/study.yaml": request(fragile.id, wait, tuning=tuning),
    }
    runs = {name: upload_and_kill(fragile, proxy, name, content) for name, content in drops.items()}
    for run_id in runs.values():
        adopted = partial(is_adopted, fragile, run_id)
        fragile.eventually(adopted, "the job was adopted", deadline_s=LEASE_S + 120)
        assert [fragile.record(run_id)["job"]["name"]] == jobs(fragile, run_id)
    fragile.storage.bucket(fragile.models).blob("go").upload_from_string("go")
    for name, run_id in runs.items():
        status = fragile.final_status(name)
        assert (status["run_id"], status["state"]) == (run_id, "succeeded")
        assert len(jobs(fragile, run_id)) == 1


def test_a_job_that_ends_before_it_is_recorded_is_recorded_by_its_end(
    fragile: Project, proxy: KillingProxy
) -> None:
    wait = f"--wait-for=gs://{fragile.models}/may-end"
    run_id = upload_and_kill(fragile, proxy, "requests/ended.yaml", request(fragile.id, wait))
    fragile.storage.bucket(fragile.models).blob("may-end").upload_from_string("go")
    status = fragile.final_status("requests/ended.yaml")
    assert (status["run_id"], status["state"]) == (run_id, "succeeded")
    record = fragile.record(run_id)
    (job,) = fragile.jobs(run_id)
    assert record["job"]["name"] == job.name
    event_id = record["source"]["event_id"]
    fragile.eventually(
        lambda: fragile.requests_to_functions(event_id)[-1:] == [200],
        "the redelivered event was acknowledged",
    )
    assert len(fragile.jobs(run_id)) == 1
