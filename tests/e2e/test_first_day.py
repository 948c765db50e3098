"""A first day on a local stack: what it saves answers every question and has no personal detail, and nothing runs on."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.pubsub_v1 import SubscriberClient

from trainmaster.local.events.clients import clients_of
from trainmaster.local.project import project_number

from .project import ENDED, ROOT, Project, eventually, running_project

pytestmark = pytest.mark.slow(seconds=50)

PROJECT = "e2e-first-day"
NO_GPUS = {"stockouts": [{"region": "us-central1", "resource": "NVIDIA_L4"}]}
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("first")
    (folder / "quota.json").write_text(json.dumps(NO_GPUS))
    arguments = ("--tick-s", "5", "--quota", str(folder / "quota.json"))
    with running_project(folder / "state", *arguments, project=PROJECT) as running:
        yield running


def begun(project: Project, fixtures: Path, output: Path) -> "subprocess.Popen[bytes]":
    """`make first-day` as a user in a terminal runs it: Ctrl-C would reach all of its processes."""
    words = [f"STATE={project.state}", f"FIXTURES={fixtures}"]
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    with output.open("wb") as file:
        return subprocess.Popen(
            ["make", "--no-print-directory", "first-day", *words], cwd=ROOT, env=environment,
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip


def ended(process: "subprocess.Popen[bytes]", output: Path) -> int:
    try:
        return process.wait(150)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def active(project: Project) -> list[str]:
    return [run_id for run_id, record in project.records().items() if record["state"] not in ENDED]


def left_subscriptions(project: Project) -> list[str]:
    with clients_of(project.env["PUBSUB_EMULATOR_HOST"]) as clients:
        subscriber: SubscriberClient = clients.subscriber
        names = [each.name for each in subscriber.list_subscriptions(project=f"projects/{PROJECT}")]
    return [name for name in names if "first-day" in name.rpartition("/")[2]]


def find_details(text: str, project: Project) -> set[str]:
    """What the text has of the project, of this machine and of people; judged by other rules than those that replaced it."""
    literal = {PROJECT, project_number(PROJECT), str(ROOT), str(project.state), str(Path.home())}
    ours = ("example.com", "my-project.iam.gserviceaccount.com", "another-project.iam.gserviceaccount.com")
    emails = {
        each for each in EMAIL.findall(text) if not each.endswith(ours) and "-123456789012@" not in each
    }
    addresses = set(ADDRESS.findall(text)) - {"127.0.0.1"}
    return (
        {each for each in literal if each in text} | emails | addresses | set(re.findall(r"ya29\.\S+", text))
    )


def test_an_interrupt_ends_every_run_and_what_was_seen_is_saved(deployed: Project, tmp_path: Path) -> None:
    output, fixtures = tmp_path / "out", tmp_path / "seen"
    process = begun(deployed, fixtures, output)
    try:
        eventually(
            lambda: any(
                record["state"] == "running" and "cancelled" in run_id
                for run_id, record in deployed.records().items()
            ),
            "the long run is running",
            hint=output.read_text,
        )
        os.killpg(process.pid, signal.SIGINT)
    finally:
        status = ended(process, output)
    assert status != 0
    assert "stopped" in output.read_text()
    assert len(deployed.records()) >= 3
    assert active(deployed) == []
    assert left_subscriptions(deployed) == []
    saved = json.loads((fixtures / "cancelled.run.json").read_text())
    assert saved["state"] == "cancelled"


def test_a_whole_day_answers_every_question_without_a_personal_detail(
    deployed: Project, tmp_path: Path
) -> None:
    output, fixtures = tmp_path / "out", tmp_path / "seen"
    status = ended(begun(deployed, fixtures, output), output)
    assert status == 0, output.read_text()
    assert "Nothing is deployed" in output.read_text()
    assert active(deployed) == []
    assert left_subscriptions(deployed) == []
    files = sorted(fixtures.iterdir())
    assert {
        name: details
        for each in files
        if (details := find_details(each.read_text(), deployed))
        for name in [each.name]
    } == {}
    seen: dict[str, Any] = {
        each.stem: json.loads(each.read_text()) for each in files if each.suffix == ".json"
    }
    assert_answered(seen["answers"])
    assert seen["first_day"]["where"] == "the local stack"
    assert {each["verdict"] for each in seen["first_day"]["steps"]} == {"ok"}
    assert [each["status"] for each in seen["tuning.jobs"]] == [200, 200, 200]
    assert "customJob" in seen["tuning.jobs"][0]["body"]["trials"][0]
    assert seen["small.run"]["state"] == "succeeded"
    assert "insertId" in seen["small.log"][0]


def assert_answered(answers: dict[str, Any]) -> None:
    """What the local stack does, by docs/reference/fidelity.md."""
    assert [name for name, answer in answers.items() if answer is None] == []
    assert answers["cancelled_lines"][-1]["textPayload"] == "Job cancelled."
    assert answers["cancelled_end"][0]["state"] == "JOB_STATE_CANCELLED"
    assert answers["cancel_of_ended"]["body"]["error"]["status"] == "FAILED_PRECONDITION"
    assert {line["labels"].get("ml.googleapis.com/trial_id") for line in answers["tuning_lines"]} == {
        "1",
        "2",
        None,
    }
    assert {each["argv"][0] for each in answers["parameters"]} <= {"--units=4", "--units=8"}
    assert {
        (each["state"], each["error"]["code"], each["startTime"]) for each in answers["flex_start_end"]
    } == {("JOB_STATE_FAILED", 8, None)}
    assert any("the sink forwards it" in line for line in answers["own_entries"])
    assert answers["refusals"]["field_missing"]["status"] == 400
    assert answers["refusals"]["job_unknown"]["status"] == 404
    assert set(answers["attributes"]) == {"job_logs", "notices", "inbox"}
