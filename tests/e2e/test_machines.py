"""What machines do, on a whole stack: sparklines while a run trains, its record beside `ps`, and a silent job cancelled."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.stack.jobs.conftest import processes_with

from .project import ROOT, Project, eventually, request, running_project
from .topologies import quick_topology

pytestmark = [pytest.mark.slow(seconds=40), pytest.mark.timeout(300)]
VCPUS = 4
TWO_REPLICAS = {"chief": {"machine": "n1-standard-4"}, "workers": {"machine": "n1-standard-4", "count": 1}}
BURN = "--burn=9.015625"


def impatient_topology(folder: Path) -> Path:
    """The topology of a deployment that cancels a job which logs nothing for 15 s."""
    policy = folder / "policy.yaml"
    shipped = (ROOT / "functions" / "policy.yaml").read_text()
    policy.write_text(f"{shipped}\nwaste: {{silent_s: 15, then: cancel}}\n")
    path = quick_topology(folder)
    topology = yaml.safe_load(path.read_text())
    topology["environment"] = {**topology.get("environment", {}), "TRAINMASTER_POLICY": str(policy)}
    path.write_text(yaml.safe_dump(topology, sort_keys=False))
    return path


def shown(project: Project, *words: str) -> str:
    command = [sys.executable, "-m", "trainmaster", *words, "--context", f"local:{project.state}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def shares_by_ps(before: list[float]) -> list[float]:
    """The shares of a core of the processes that burn one, in order; those before, if they have ended."""
    pids = [str(pid) for pid in processes_with(BURN)]
    command = ["ps", "-o", "pcpu=", "-p", ",".join(pids)]
    if not pids:
        return before
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    shares = sorted(float(cpu) / 100 for cpu in found if float(cpu) > 10)
    return shares if len(shares) == 2 else before


def test_two_replicas_are_drawn_recorded_as_ps_says_and_a_silent_job_is_cancelled(tmp_path: Path) -> None:
    options = ("--topology", str(impatient_topology(tmp_path)), "--tick-s", "1")
    with running_project(tmp_path / "state", *options, project="e2e-machines") as project:
        project.upload("requests/busy.yaml", request(project.id, BURN, cluster=TWO_REPLICAS))
        waits = f"--wait-for=gs://{project.models}/never"
        project.upload("requests/silent.yaml", request(project.id, waits, model_name="silent"))
        by_ps: list[float] = []

        def sparklines() -> str:
            nonlocal by_ps
            by_ps = shares_by_ps(by_ps)
            screen = shown(project, "status", "requests/busy.yaml")
            return (
                screen if len(re.findall(r"workerpool[01]-0  CPU [▁▂▃▄▅▆▇█]{2,} +\d+ %", screen)) == 2 else ""
            )

        eventually(
            sparklines,
            "sparklines of both replicas",
            hint=lambda: shown(project, "status", "requests/busy.yaml"),
        )
        while not (status := project.status("requests/busy.yaml")) or status["state"] != "succeeded":
            by_ps = shares_by_ps(by_ps)
        record = project.finished_record(status["run_id"])
        replicas = record["utilization"]["replicas"]
        assert [one["replica"] for one in replicas] == ["workerpool0-0", "workerpool1-0"]
        # Of a whole core 10 %: beside other tests, a replica's start and end weigh more in its mean.
        assert sorted(VCPUS * one["cpu"]["mean"] for one in replicas) == pytest.approx(
            by_ps, rel=0.1, abs=0.1
        )
        silent = project.finished_record(project.final_status("requests/silent.yaml")["run_id"])
        assert (silent["state"], silent["wasteful"]["reason"]) == (
            "cancelled",
            "it has logged nothing for 15 s",
        )
        assert "by the policy `waste`: it has logged nothing" in shown(project, "why", silent["run_id"])
        assert "by the policy `waste`" in shown(project, "ls", "-o", "json")
