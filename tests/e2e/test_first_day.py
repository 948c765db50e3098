"""A first day on a local stack, interrupted in its last step: every run ends, and what is saved has no personal detail."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainstack.project import project_number

from .project import ENDED, ROOT, Project, eventually, running_project

PROJECT = "e2e-first-day"
NO_GPUS = {"name": "s", "at": "vertex.jobs", "kind": "stockout", "match": "us-central1/NVIDIA_L4"}
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
ADDRESS = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])")


def take_day_until_capacity_is_missing(project: Project, fixtures: Path, output: Path) -> None:
    """`make first-day` as in a terminal, where Ctrl-C reaches all of its processes."""
    words = ["make", "first-day", f"STATE={project.state}", f"FIXTURES={fixtures}"]
    environment = {**os.environ, "VIRTUAL_ENV": sys.prefix}
    with output.open("wb") as file:
        process = subprocess.Popen(
            words, cwd=ROOT, env=environment, stdout=file, stderr=file, start_new_session=True
        )

    def is_missing() -> bool:
        of_run = [each for run_id, each in project.records().items() if "flex_start" in run_id]
        lost = any(each["submission"]["abandoned_jobs"] for each in of_run)
        return (lost and "== flex_start" in output.read_text()) or process.poll() is not None

    try:
        eventually(is_missing, "the last run has no capacity", hint=output.read_text)
        os.killpg(process.pid, signal.SIGINT)
        process.wait(120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def find_details(text: str, project: Project) -> set[str]:
    """Those of the project, this machine and people, by other rules than those that replaced them."""
    known = {PROJECT, project_number(PROJECT), str(ROOT), str(project.state), str(Path.home())}
    ours = ("example.com", "my-project.iam.gserviceaccount.com")
    emails = {each for each in EMAIL.findall(text) if not each.endswith(ours) and "123456789012" not in each}
    return {each for each in known if each in text} | emails | (set(ADDRESS.findall(text)) - {"127.0.0.1"})


@pytest.mark.slow(seconds=30)
def test_a_day_saves_what_the_services_have_and_ctrl_c_ends_every_run(tmp_path: Path) -> None:
    output, fixtures, plan = tmp_path / "out", tmp_path / "days", tmp_path / "plan.json"
    plan.write_text(json.dumps(NO_GPUS))
    arguments = ("--tick-s", "2", "--injections", str(plan))
    with running_project(tmp_path / "state", *arguments, project=PROJECT) as project:
        take_day_until_capacity_is_missing(project, fixtures, output)
        states = [record["state"] for record in project.records().values()]
        files = [*next(fixtures.iterdir()).iterdir()]
        details = {each.name: found for each in files if (found := find_details(each.read_text(), project))}
    assert details == {}
    assert "Error 130" in output.read_text()
    assert len(states) == 4
    assert set(states) <= set(ENDED)
    seen: dict[str, Any] = {each.stem: json.loads(each.read_text()) for each in files}
    assert {name for name, each in seen["first_day"]["steps"].items() if each[:2] != "ok"} == {"flex_start"}
    page = (ROOT / "docs" / "maintainers" / "judges.md").read_text()
    answering = {*re.findall(r"\| `([\w.]+)\.json` \|", page)}
    assert {"small.log"} < answering <= set(seen)
    assert_as_imitated(seen)


def assert_as_imitated(seen: dict[str, Any]) -> None:
    tuning, flex_start = (
        [each["body"] for each in seen[f"{name}.jobs"].values()] for name in ("tuning", "flex_start")
    )
    assert [each["state"] for each in tuning] == ["JOB_STATE_SUCCEEDED"] * 3
    assert (flex_start[0]["state"], flex_start[0]["error"]["code"]) == ("JOB_STATE_FAILED", 8)
    assert seen["cancelled.log"][-1]["textPayload"] == "Job cancelled."
    assert any("argv" in each.get("jsonPayload", {}) for each in seen["tuning.log"])
    assert [each["status"] for each in seen["refusals"].values()] == [400, 404, 200, 400]
    assert seen["doctor.log"][0]["resource"]["type"] == "ml_job"
