"""The example workflow of GitHub Actions: its steps run in shells against a stack, and its rights are the least."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from .project import ROOT, Project, request, running_project

PROJECT = "workflow"
FILE = ROOT / "examples/ci/github/trainmaster.yml"
WORKFLOW: dict[Any, Any] = yaml.safe_load(FILE.read_text())  # Any: YAML 1.1 reads the key `on` as true
JOBS: dict[str, Any] = WORKFLOW["jobs"]
NOT_RUN = {"Install": "needs a package index with Trainmaster", "Comment": "needs a pull request"}
"""Steps that only GitHub can run, as docs/how-to/run-from-ci.md says."""
TIMEOUT_S = 120


def steps(job: str) -> Iterator[dict[str, Any]]:
    yield from (step for step in JOBS[job]["steps"] if "run" in step)


@dataclass
class Runner:
    """A machine of GitHub: the repository is checked out where the workflow asks, and each step has a shell of its own."""

    workspace: Path
    environment: dict[str, str]
    printed: dict[str, str] = field(default_factory=dict)

    def run(self, job: str, *, fails: str | None = None) -> None:
        """The job's steps up to the first that fails, which is `fails`.

        Source: https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell
        """
        folder = self.workspace / JOBS[job]["defaults"]["run"]["working-directory"]
        for step in steps(job):
            if step["name"] in NOT_RUN:
                continue
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=TIMEOUT_S,
            )  # fmt: skip
            self.printed[step["name"]] = done.stdout
            assert (done.returncode != 0) == (step["name"] == fails), (step["name"], done.stdout)
            if done.returncode != 0:
                return

    def result(self, name: str) -> str:
        return (Path(self.environment["RUNNER_TEMP"]) / name).read_text()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    state = tmp_path_factory.mktemp("stack") / ".trainmaster"
    with running_project(state, "--tick-s", "2", project=PROJECT) as running:
        yield running


@pytest.fixture
def runner(stack: Project, tmp_path: Path) -> Runner:
    """With the variables that GitHub sets, those of the workflow, and the settings of a repository on the stack."""
    for folder in ("source/rules", "temp", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    command = tmp_path / "bin" / "trainmaster"
    command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m trainmaster "$@"\n')
    command.chmod(0o755)
    settings = {"TRAINMASTER_CONTEXT": f"local:{stack.state}", "TRAINMASTER_PACKAGE": "trainmaster"}
    own = {name: re.sub(r"\$\{\{ vars\.(\w+) \}\}", lambda found: settings[found[1]], str(value))
           for name, value in WORKFLOW["env"].items()}  # fmt: skip
    return Runner(
        workspace=tmp_path,
        environment={
            "PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "HOME": str(tmp_path), "CI": "true", "GITHUB_ACTIONS": "true",
            "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567", "GITHUB_REPOSITORY": "octo/flowers",
            "GITHUB_WORKSPACE": str(tmp_path), "RUNNER_TEMP": str(tmp_path / "temp"), **own,
        },
    )  # fmt: skip


@pytest.mark.slow(seconds=30)
@pytest.mark.timeout(300)
def test_a_pull_request_is_planned_and_a_merge_trains_once_and_keeps_the_rules_as_files(
    runner: Runner, stack: Project
) -> None:
    source = runner.workspace / "source"
    for name in ("train.py", "request.yaml"):
        (source / name).write_bytes((ROOT / "examples/starter" / name).read_bytes())
    asked = yaml.safe_load((source / "request.yaml").read_text())
    rule = {"when": [{"manual": {}}], "request": json.loads(request(PROJECT))}
    (source / "rules" / "by-hand.yaml").write_text(yaml.safe_dump(rule))
    runner.run("plan")
    assert runner.result("plan.md").startswith("### Plan\n")
    assert "The last run" not in runner.result("plan.md")
    assert "add rules/by-hand.yaml" in runner.printed["Plan the rules"]
    assert stack.records() == {}

    runner.run("train")
    first = json.loads(runner.result("run.json"))
    assert (first["state"], bool(first["model"])) == ("succeeded", True)
    assert runner.printed["Apply the rules"].endswith("by-hand accepted\n")
    runner.run("train")
    assert json.loads(runner.result("run.json"))["run_id"] == first["run_id"]
    assert "are the same already" in runner.printed["Apply the rules"]

    (source / "request.yaml").write_text(yaml.safe_dump({**asked, "priority": 70}))
    runner.environment["GITHUB_SHA"] = "f" * 40
    runner.run("plan")
    page = runner.result("plan.md")
    assert f"run:           {first['run_id']}\nstate:         succeeded" in page
    assert "\n+priority: 70\n" in page
    (source / "request.yaml").write_text(yaml.safe_dump({**asked, "image": "docker.io/x/y:1"}))
    runner.run("plan", fails="Check")
    assert "request.yaml:" in runner.printed["Check"]


def test_every_step_is_run_or_said_to_need_github() -> None:
    assert {step["name"] for job in JOBS for step in steps(job)} >= set(NOT_RUN)
    used = {
        step["uses"].partition("@")[0] for job in JOBS.values() for step in job["steps"] if "uses" in step
    }
    page = (ROOT / "docs/how-to/run-from-ci.md").read_text()
    assert {each for each in (*NOT_RUN, *used) if f"`{each}`" not in page} == set()


def test_each_job_has_the_least_rights_and_only_the_comments_may_write() -> None:
    assert (WORKFLOW["permissions"], set(WORKFLOW[True])) == ({}, {"pull_request", "push"})
    signs_in = {"contents": "read", "id-token": "write"}
    assert {name: job["permissions"] for name, job in JOBS.items()} == {
        "plan": signs_in,
        "comment": {"pull-requests": "write"},
        "train": signs_in,
    }
    assert JOBS["train"]["environment"], "an environment is what the account that submits asks for"
    for job in JOBS.values():
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), "what others name would be part of a script"
            assert re.search(r"@(v\d+|[0-9a-f]{40})$", step.get("uses", "@v1")), "a version that is pinned"
    (comment,) = steps("comment")
    assert "uses: actions/checkout" not in yaml.safe_dump(JOBS["comment"])
    assert comment["run"].split()[:3] == ["gh", "pr", "comment"]
    assert {"--edit-last", "--create-if-none", "--body-file"} <= set(comment["run"].split())
