"""A function killed between creating the job and recording it: one job, one record, after redelivery."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest
import yaml

from .project import ROOT, Project, request, running_project

pytestmark = pytest.mark.slow

TIMEOUT_S = 10  # the lease outlives it by a minute
LEASE_S = TIMEOUT_S + 60
JOBS = ("/customJobs", "/hyperparameterTuningJobs")


class KillingProxy:
    """Stands between the functions and Vertex AI; the first job that is created, its caller never hears of.

    The job exists when the caller is killed: the answer has arrived here, and goes no further.
    """

    def __init__(self) -> None:
        self.target = ""
        self.kill = threading.Event()
        self.killed: list[int] = []
        self.victims: Callable[[], list[psutil.Process]] = list
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy._pass_on(self)

            do_POST = do_DELETE = do_GET  # noqa: N815  # the names that http.server looks for

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def _pass_on(self, caller: BaseHTTPRequestHandler) -> None:
        body = caller.rfile.read(int(caller.headers.get("Content-Length") or 0))
        address = urlsplit(self.target)
        connection = HTTPConnection(address.hostname or "", address.port or 0, timeout=30)
        headers = {name: value for name, value in caller.headers.items() if name.lower() != "host"}
        connection.request(caller.command, caller.path, body=body, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        created = caller.command == "POST" and caller.path.partition("?")[0].endswith(JOBS)
        if created and answer.status == 200 and self.kill.is_set():
            self.kill.clear()
            for victim in self.victims():
                victim.kill()
                self.killed.append(victim.pid)
            caller.close_connection = True
            return
        caller.send_response(answer.status)
        caller.send_header("Content-Type", answer.headers["Content-Type"])
        caller.send_header("Content-Length", str(len(content)))
        caller.end_headers()
        caller.wfile.write(content)


@contextmanager
def killing_proxy() -> Iterator[KillingProxy]:
    proxy = KillingProxy()
    thread = threading.Thread(target=proxy.server.serve_forever)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.server.shutdown()
        proxy.server.server_close()
        thread.join()


def topology_through(proxy_url: str, folder: Path) -> Path:
    """The project's own topology, its functions talking to Vertex AI through the proxy."""
    topology = yaml.safe_load((ROOT / "deploy" / "topology.yaml").read_text())
    topology["environment"]["VERTEX_EMULATOR_HOST"] = proxy_url
    for function in topology["functions"].values():
        function["timeout_s"] = TIMEOUT_S
    (folder / "log_sink.filter").write_text((ROOT / "deploy" / "log_sink.filter").read_text())
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump(topology))
    return path


@pytest.fixture(scope="module")
def proxy() -> Iterator[KillingProxy]:
    with killing_proxy() as running:
        yield running


@pytest.fixture(scope="module")
def fragile(proxy: KillingProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("killed")
    arguments = (
        "--topology", str(topology_through(proxy.url, folder)),
        "--retry-min-s", "0.5", "--retry-max-s", "2", "--tick-s", "3600",
    )  # fmt: skip
    with running_project(folder / "state", *arguments, project="e2e-killed") as running:
        proxy.target = running.env["VERTEX_EMULATOR_HOST"]
        proxy.victims = lambda: running.function_processes("on-request-uploaded")
        yield running


def jobs(project: Project, run_id: str) -> list[str]:
    """The names of the run's jobs, of either kind."""
    plain = [job.name for job in project.jobs(run_id)]
    return plain + [job.name for job in project.tuning_jobs(run_id)]


def upload_and_kill(project: Project, proxy: KillingProxy, name: str, content: str) -> str:
    """The run_id of a request whose function died after the job was created and before that was recorded."""
    before = len(proxy.killed)
    proxy.kill.set()
    project.upload(name, content)
    project.eventually(lambda: len(proxy.killed) > before, "the function was killed")
    (record,) = [r for r in project.records().values() if r["source"]["object_name"] == name]
    assert len(jobs(project, record["run_id"])) == 1
    assert record["state"] == "reserved"
    assert "job" not in record
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
        fragile.eventually(adopted, "the job was adopted", deadline_s=LEASE_S + 30)
        assert [fragile.record(run_id)["job"]["name"]] == jobs(fragile, run_id)
    fragile.storage.bucket(fragile.models).blob("go").upload_from_string("go")
    for name, run_id in runs.items():
        status = fragile.settled_status(name)
        assert (status["run_id"], status["state"]) == (run_id, "succeeded")
        assert len(jobs(fragile, run_id)) == 1


def test_a_job_that_ends_before_it_is_recorded_is_recorded_by_its_end(
    fragile: Project, proxy: KillingProxy
) -> None:
    run_id = upload_and_kill(fragile, proxy, "requests/ended.yaml", request(fragile.id))
    status = fragile.settled_status("requests/ended.yaml")
    assert (status["run_id"], status["state"]) == (run_id, "succeeded")
    record = fragile.record(run_id)
    (job,) = fragile.jobs(run_id)
    assert record["job"]["name"] == job.name
    event_id = record["source"]["event_id"]
    fragile.eventually(
        lambda: fragile.requests_to_functions(event_id)[-1] == 200, "the redelivered event was acknowledged"
    )
    assert len(fragile.jobs(run_id)) == 1
