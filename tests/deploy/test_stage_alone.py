"""The staged directory runs with its own requirements and nothing else.

An empty virtual environment with requirements.txt, functions-framework started on the staged directory once for
each of five entry points, and events for them, against the local stack's services; the stack's own functions are left out.
"""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.project import ROOT, Project, eventually, request, running_project
from tests.environments import compile_packages, run_uv
from tests.processes import run_to_end
from trainmaster.deploy.stage import stage
from trainstack.events.cloudevent import CloudEvent, Message, from_message, from_notification
from trainstack.process.ports import free_ports, give_back

pytestmark = [pytest.mark.slow(seconds=30), pytest.mark.timeout(600)]

ID = "staged-alone"
TOPOLOGY = yaml.safe_load(
    (ROOT / "trainmaster" / "deploy" / "topology.yaml").read_text().replace("${prefix}", "")
)
TRIED = ("on_request_uploaded", "on_request_published", "on_job_log", "on_data_arrived", "on_tick")
"""Among them they import what all entry points do."""
TOPICS = {
    each["entry_point"]: each["trigger"]
    for each in TOPOLOGY["functions"].values()
    if each["entry_point"] in TRIED
}


class Deployed:
    """The functions as the cloud would run them, and the services they talk to."""

    def __init__(self, project: Project, urls: Mapping[str, str], logs: Path) -> None:
        self.project = project
        self._urls = urls
        self._logs = logs
        self._events = 0

    def publish(self, entry_point: str, document: object) -> None:
        """Hand a message on the function's topic to it; it acknowledges."""
        topic = TOPOLOGY["topics"][TOPICS[entry_point]["topic"]]
        event = from_message(
            self._message(json.dumps(document).encode()),
            topic_name=f"projects/{ID}/topics/{topic}",
            subscription_name=f"projects/{ID}/subscriptions/eventarc-{topic}",
        )
        self._post(entry_point, event)

    def upload(self, entry_point: str, bucket: str, name: str, content: str) -> None:
        """Upload an object and hand its event to the function; it acknowledges."""
        blob = self.project.storage.bucket(bucket).blob(name)
        blob.upload_from_string(content)
        attributes = {"eventType": "OBJECT_FINALIZE", "bucketId": bucket, "objectId": name,
                      "objectGeneration": str(blob.generation), "eventTime": _now().isoformat()}  # fmt: skip
        payload = {"kind": "storage#object", "bucket": bucket, "name": name, "generation": str(blob.generation),
                   "metageneration": "1", "size": str(len(content)), "timeCreated": _now().isoformat()}  # fmt: skip
        self._post(entry_point, from_notification(self._message(json.dumps(payload).encode(), **attributes)))

    def run_of(self, rule_id: str) -> dict[str, Any] | None:
        found = [each for each in self.project.records().values() if each["source"].get("rule_id") == rule_id]
        return found[0] if found else None

    def _message(self, data: bytes, **attributes: str) -> Message:
        self._events += 1
        return Message(
            data=data, attributes=attributes, message_id=str(9000 + self._events), publish_time=_now()
        )

    def _post(self, entry_point: str, event: CloudEvent) -> None:
        wanted = urllib.request.Request(
            self._urls[entry_point], data=event.body, headers=dict(event.headers), method="POST"
        )
        try:
            with urllib.request.urlopen(wanted, timeout=120) as answer:
                assert 200 <= answer.status < 300
        except OSError as fault:
            raise AssertionError(f"{entry_point}: {fault}\n{self._said(entry_point)}") from fault

    def _said(self, entry_point: str) -> str:
        return (self._logs / f"{entry_point}.log").read_text()


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("staged") / "functions"
    stage(path, bytecode=True)  # otherwise each of the functions compiles it
    return path


@pytest.fixture(scope="module")
def python(staged: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has what requirements.txt names, each by its hash, and no more."""
    environment = tmp_path_factory.mktemp("alone") / "venv"
    run_uv("venv", "--python", sys.executable, str(environment))
    found = environment / "bin" / "python"
    run_uv("pip", "sync", "--python", str(found), "--require-hashes", str(staged / "requirements.txt"))
    compile_packages(found)
    return found


@pytest.fixture(scope="module")
def deployed(staged: Path, python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    directory = tmp_path_factory.mktemp("deployed")
    without = {**TOPOLOGY, "functions": {}, "sinks": {}, "schedules": {}}
    (directory / "topology.yaml").write_text(yaml.safe_dump(without))
    with ExitStack() as running:
        project = running.enter_context(
            running_project(directory / "state", "--topology", str(directory / "topology.yaml"), project=ID)
        )
        environment = {
            **project.env,
            "TRAINMASTER_NOTICES_TOPIC": TOPOLOGY["topics"]["notices"],
            "TRAINMASTER_FUNCTION_TIMEOUT_S": "60",
            "PATH": f"{python.parent}:/usr/bin:/bin",
            "HOME": str(directory),
        }
        ports = dict(zip(TOPICS, free_ports(len(TOPICS)), strict=True))
        running.callback(give_back, ports.values())
        running.enter_context(frameworks(ports, staged, environment, logs=directory))
        urls = {entry_point: f"http://127.0.0.1:{port}" for entry_point, port in ports.items()}
        for entry_point, url in urls.items():
            log = directory / f"{entry_point}.log"
            eventually(partial(answers, url), f"{entry_point} answers", hint=log.read_text)
        yield Deployed(project, urls, directory)


@contextmanager
def frameworks(
    ports: Mapping[str, int], source: Path, environment: Mapping[str, str], *, logs: Path
) -> Iterator[None]:
    """Each function as the platform starts it, by entry point. They are stopped together, because each takes a while."""
    program = Path(environment["PATH"].partition(":")[0]) / "functions-framework"
    started: list[subprocess.Popen[bytes]] = []
    try:
        for entry_point, port in ports.items():
            command = [str(program), f"--target={entry_point}", f"--source={source / 'main.py'}",
                       "--signature-type=cloudevent", "--host=127.0.0.1", f"--port={port}"]  # fmt: skip
            with (logs / f"{entry_point}.log").open("wb") as output:
                started.append(
                    subprocess.Popen(
                        command, cwd=source, env={**environment}, stdout=output, stderr=output,
                        start_new_session=True,
                    )
                )  # fmt: skip
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGTERM)
        for process in started:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5):
            return True
    except urllib.request.HTTPError as answered:
        answered.close()
        return True
    except OSError:
        return False


def rule(deployed: Deployed, rule_id: str, condition: Mapping[str, Any], **asked: str) -> None:
    """A rule whose runs train the tiny model, dropped and accepted."""
    document = {"when": [condition], "request": {**json.loads(request(ID, model_name=rule_id)), **asked}}
    name = f"rules/{rule_id}.json"
    deployed.upload("on_request_uploaded", deployed.project.inbox, name, json.dumps(document))
    status = deployed.project.status(name)
    assert status is not None
    assert status["state"] == "accepted", status


def test_the_environment_has_what_is_deployed_and_nothing_of_the_repository(python: Path) -> None:
    code = "import importlib.util as u; print([n for n in ('pytest', 'tensorflow', 'trainmaster') if u.find_spec(n)])"
    done = run_to_end([str(python), "-c", code], check=True, cwd="/", env={})
    assert done.stdout.strip() == "[]"


def test_an_upload_and_the_jobs_log_entry_make_a_whole_run(deployed: Deployed) -> None:
    project = deployed.project
    deployed.upload("on_request_uploaded", project.inbox, "requests/line.json", request(ID))
    status = project.status("requests/line.json")
    assert status is not None
    assert status["state"] == "submitted", status
    (job,) = project.jobs(status["run_id"])
    ended = "JOB_STATE_SUCCEEDED"
    project.eventually(lambda: project.vertex.get_custom_job(name=job.name).state.name == ended, "it trains")
    labels = {"job_id": job.name.rpartition("/")[2], "task_name": "service", "project_id": ID}
    entry = {
        "insertId": "1",
        "logName": f"projects/{ID}/logs/ml.googleapis.com%2F{labels['job_id']}",
        "resource": {"type": "ml_job", "labels": labels},
        "textPayload": "Job completed successfully.",
        "timestamp": _now().isoformat(),
    }
    deployed.publish("on_job_log", entry)
    record = project.record(status["run_id"])
    assert record["state"] == "succeeded", record
    assert record["model"]["uri"].endswith("/model/")


def test_a_published_request_is_a_run(deployed: Deployed) -> None:
    deployed.publish("on_request_published", json.loads(request(ID, model_name="published")))
    found = [
        each
        for each in deployed.project.records().values()
        if each.get("request", {}).get("model_name") == "published"
    ]
    assert [each["state"] for each in found] == ["submitted"]


def test_new_data_is_counted_and_a_tick_fires_its_rule(deployed: Deployed) -> None:
    data = deployed.project.env["TRAINMASTER_DATA_BUCKET"]
    watched = {"new_data": {"objects": f"gs://{data}/new/**", "min_objects": 1, "quiet_s": 0}}
    rule(deployed, "data", watched)
    deployed.upload("on_data_arrived", data, "new/1.jpg", "x")

    def fired() -> dict[str, Any] | None:
        deployed.publish("on_tick", {"schedule": "trainmaster-tick"})
        return deployed.run_of("data")

    deployed.project.eventually(fired, "the tick fires the rule")
