"""The example workflow of GitHub Actions: its steps run in shells against a stack, and its rights are the least."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .project import ROOT, request, running_project

PROJECT = "workflow"
WORKFLOW: dict[Any, Any] = yaml.safe_load((ROOT / "examples/ci/github/trainmaster.yml").read_text())
JOBS: dict[str, Any] = WORKFLOW["jobs"]
ONLY_ON_GITHUB = {"Install", "Comment"}
"""Steps that need a package index with Trainmaster, or a pull request; the page says so."""


class Runner:
    """A machine of GitHub, whose workspace is the folder, with the variables that GitHub and the workflow set."""

    def __init__(self, folder: Path, context: str) -> None:
        for each in ("source/rules", "temp", "bin"):
            (folder / each).mkdir(parents=True)
        command = folder / "bin" / "trainmaster"
        command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m trainmaster "$@"\n')
        command.chmod(0o755)
        own = WORKFLOW["env"] | {"TRAINMASTER_CONTEXT": context}
        github = {"CI": "true", "GITHUB_SHA": "0" * 40, "RUNNER_TEMP": str(folder / "temp")}
        path = f"{folder}/bin:{os.environ['PATH']}"
        self.environment = {"HOME": str(folder), "PATH": path, **github, **own}
        self.folder = folder

    def run(self, job: str) -> dict[str, subprocess.CompletedProcess[str]]:
        """What each step did, by its name, up to the first that failed.

        Source: https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell
        """
        done: dict[str, subprocess.CompletedProcess[str]] = {}
        folder = self.folder / JOBS[job]["defaults"]["run"]["working-directory"]
        for step in (each for each in JOBS[job]["steps"] if "run" in each):
            if step["name"] not in ONLY_ON_GITHUB and all(each.returncode == 0 for each in done.values()):
                done[step["name"]] = subprocess.run(
                    ["bash", "-e", "-c", step["run"]], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                    capture_output=True, text=True, check=False, timeout=200,
                )  # fmt: skip
        return done

    def trained(self) -> tuple[dict[str, Any], str]:
        """The record of the run of the job `train`, and what it said about the rules."""
        done = self.run("train")
        assert [each.stderr for each in done.values() if each.returncode != 0] == []
        rules = done["Apply the rules"]
        return json.loads((self.folder / "temp/run.json").read_text()), rules.stdout + rules.stderr


@pytest.mark.slow(seconds=30)
@pytest.mark.timeout(400)
def test_a_pull_request_is_planned_and_a_merge_trains_once_and_keeps_the_rules_as_files(
    tmp_path: Path,
) -> None:
    source, page = tmp_path / "runner/source", tmp_path / "runner/temp/plan.md"
    with running_project(tmp_path / ".trainmaster", "--tick-s", "2", project=PROJECT) as stack:
        runner = Runner(tmp_path / "runner", f"local:{stack.state}")
        for name in ("train.py", "request.yaml"):
            (source / name).write_bytes((ROOT / "examples/starter" / name).read_bytes())
        asked = yaml.safe_load((source / "request.yaml").read_text())
        rule = {"when": [{"manual": {}}], "request": json.loads(request(PROJECT))}
        (source / "rules/by-hand.yaml").write_text(yaml.safe_dump(rule))
        assert "add rules/by-hand.yaml" in runner.run("plan")["Plan the rules"].stderr
        assert page.read_text().startswith("### Plan\n")
        assert stack.records() == {}

        first, said = runner.trained()
        assert (first["state"], bool(first["model"]), "by-hand accepted\n" in said) == (
            "succeeded",
            True,
            True,
        )
        again, said = runner.trained()
        assert (again["run_id"], "are the same already" in said) == (first["run_id"], True)

        (source / "request.yaml").write_text(yaml.safe_dump({**asked, "priority": 70}))
        (source / "rules/by-hand.yaml").rename(source / "rules/renamed.yaml")
        runner.environment["GITHUB_SHA"] = "f" * 40
        runner.run("plan")
        assert f"run:           {first['run_id']}\nstate:         succeeded" in page.read_text()
        assert "\n+priority: 70\n" in page.read_text()
        assert runner.trained()[0]["run_id"] != first["run_id"]
        rules = stack.storage.list_blobs(stack.inbox, prefix="rules/")
        assert [blob.name for blob in rules] == ["rules/renamed.yaml"]
        (source / "request.yaml").write_text(yaml.safe_dump({**asked, "image": "docker.io/x/y:1"}))
        assert {name: each.returncode for name, each in runner.run("plan").items()} == {"Check": 1}


def test_each_job_has_the_least_rights_and_the_page_says_what_only_github_can_run() -> None:
    signs_in = {"contents": "read", "id-token": "write"}
    assert (WORKFLOW["permissions"], set(WORKFLOW[True])) == ({}, {"pull_request", "push"})  # True: `on`
    assert {name: job["permissions"] for name, job in JOBS.items()} == {
        "plan": signs_in,
        "train": signs_in,
        "comment": {"pull-requests": "write"},
    }
    assert JOBS["train"]["environment"], "the account that submits asks for one"
    steps = [step for job in JOBS.values() for step in job["steps"]]
    assert not [step for step in steps if "${{" in step.get("run", "")], "what others name would be code"
    used = [step["uses"].partition("@") for step in steps if "uses" in step]
    assert all(re.fullmatch(r"v\d+|[0-9a-f]{40}", version) for _, _, version in used)
    says = (ROOT / "docs/how-to/run-from-ci.md").read_text()
    assert {
        each for each in (*ONLY_ON_GITHUB, *(name for name, _, _ in used)) if f"`{each}`" not in says
    } == set()
    assert "checkout" not in yaml.safe_dump(JOBS["comment"])
    assert "--edit-last --create-if-none --body-file plan.md" in JOBS["comment"]["steps"][-1]["run"]
