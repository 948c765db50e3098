"""Notices on a running stack, as the page says; and one whose receiver fails, up to its replay."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.command import Done, trainmaster
from tests.e2e.test_dead_letters import impatient_topology
from trainstack.stack.receiver import RECEIVED

from .project import ROOT, eventually, running_project
from .reader import DEADLINE_S, Reader

pytestmark = [pytest.mark.slow(seconds=40), pytest.mark.timeout(DEADLINE_S)]
PAGE = ROOT / "docs" / "how-to" / "notify.md"
NOTIFY = """
notify:
  - {name: good, webhook: {url: "http://receiver.localhost/good", secret: key}, when: {states: [rejected]}}
  - {name: late, slack: {secret: url}, when: {states: [rejected]}}
"""


def received(state: Path) -> list[dict[str, Any]]:
    file = state / RECEIVED
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def of_type(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in found if json.loads(each["body"])["type"] == kind]


def test_the_page_sends_a_test_and_the_end_of_a_run_signed(tmp_path: Path) -> None:
    reader = Reader(PAGE, tmp_path)
    try:
        reader.follow("Start")
        reader.follow("See what is sent")
        state = reader.folder / ".trainmaster"
        ends = eventually(
            lambda: of_type(received(state), "trainmaster.run.succeeded.v1"), "a notice of the end"
        )
        assert "chat delivered" in " ".join(reader.run("trainmaster notices ls").split())
        assert len(of_type(received(state), "trainmaster.notice.test.v1")) == 1
        (end,) = ends
        body = json.loads(end["body"])
        assert f"trainmaster why {body['subject']}" in body["message"]
        assert "cost " in body["message"]
        assert end["headers"]["X-Trainmaster-Signature"].startswith("v1=")
        assert end["headers"]["Idempotency-Key"] == body["id"]
        reader.follow("Rehearse a failure")
        reader.follow("Stop")
    finally:
        reader.stop()


def test_a_notice_whose_receiver_fails_is_a_dead_letter_and_its_replay_goes_to_that_receiver_alone(
    tmp_path: Path,
) -> None:
    policy, state = tmp_path / "policy.yaml", tmp_path / "state"
    policy.write_text((ROOT / "functions" / "policy.yaml").read_text() + NOTIFY)
    arguments = (
        "--topology", str(impatient_topology(tmp_path)), "--policy", str(policy),
        "--retry-min-s", "0.1", "--retry-max-s", "0.5", "--tick-s", "1",
    )  # fmt: skip
    with running_project(state, *arguments, project="e2e-notify") as project:
        (state / "secrets" / "key").write_text("k3y")

        def run(*words: str) -> Done:
            return trainmaster(
                *words, cwd=ROOT, environment={**os.environ, "TRAINMASTER_CONTEXT": f"local:{state}"}
            )

        project.drop("requests/broken.yaml", "model_name: m\n")
        why = "late: the secret url is missing"
        eventually(lambda: why in run("dead-letters", "ls").out, "the notice is a dead letter", deadline_s=60)
        assert [each["path"] for each in received(state)] == ["/good"]
        (state / "secrets" / "url").write_text("http://receiver.localhost/late")
        replayed = run("dead-letters", "replay")
        assert (replayed.status, "replayed successfully" in replayed.out) == (0, True), replayed.out
        assert [each["path"] for each in received(state)] == ["/good", "/late"]
        (notice,) = json.loads(run("notices", "ls", "-o", "json").out)["notices"]
        states = {name: (each["state"], each["attempts"]) for name, each in notice["receivers"].items()}
        assert states == {"good": ("delivered", 1), "late": ("delivered", 6)}
        log = (state / "logs" / "on-notice-out.log").read_text()
        assert "k3y" not in log
