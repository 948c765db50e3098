"""What machines do, on a whole stack: sparklines while a run trains, its record beside the processor seconds, and a silent job cancelled."""

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from .project import ROOT, Project, eventually, request, running_project
from .topologies import quick_topology

pytestmark = [pytest.mark.slow(seconds=40), pytest.mark.timeout(300)]
VCPUS = 4
TWO_REPLICAS = {"chief": {"machine": "n1-standard-4"}, "workers": {"machine": "n1-standard-4", "count": 1}}


def shown(project: Project, *words: str) -> str:
    command = [sys.executable, "-m", "trainmaster", *words, "--context", f"local:{project.state}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def mean_share(project: Project, job: CustomJob, replica: str) -> float:
    """The mean share of a processor that the replica says it used between the samples that Cloud Monitoring has of it."""
    own = f'resource.labels.task_name = "{replica}"'
    said = [
        each.payload for each in project.logging.list_entries(filter_=f'{own} AND jsonPayload.event="busy"')
    ]
    url = f"{project.env['MONITORING_EMULATOR_HOST']}/v3/projects/{project.id}/timeSeries"
    asked = {
        "filter": f'metric.type = "ml.googleapis.com/training/cpu/utilization" AND {own}',
        "interval.startTime": "2026-01-01T00:00:00Z",
        "interval.endTime": datetime.now(UTC).isoformat(),
    }
    points = httpx.get(url, params=asked, timeout=60).json()["timeSeries"][0]["points"]
    began = job.start_time.timestamp()
    ends = sorted(datetime.fromisoformat(point["interval"]["endTime"]).timestamp() for point in points)
    edges = np.array([began, *ends])
    used = np.interp(edges, [began, *(each["at"] for each in said)], [0, *(each["used_s"] for each in said)])
    return float((np.diff(used) / np.diff(edges)).mean())


def test_two_replicas_are_drawn_recorded_as_they_ran_and_a_silent_job_is_cancelled(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    shipped = (ROOT / "functions" / "policy.yaml").read_text()
    policy.write_text(f"{shipped}\nwaste: {{silent_s: 15, then: cancel}}\n")
    options = ("--topology", str(quick_topology(tmp_path)), "--policy", str(policy), "--tick-s", "1")
    with running_project(tmp_path / "state", *options, project="e2e-machines") as project:
        until_seen = f"--wait-for=gs://{project.models}/seen"
        project.upload("requests/busy.yaml", request(project.id, "--burn", until_seen, cluster=TWO_REPLICAS))
        waits = f"--wait-for=gs://{project.models}/never"
        project.upload("requests/silent.yaml", request(project.id, waits, model_name="silent"))

        def sparklines() -> bool:
            screen = shown(project, "status", "requests/busy.yaml")
            return len(re.findall(r"workerpool[01]-0  CPU [▁▂▃▄▅▆▇█]{2,} +\d+ %", screen)) == 2

        eventually(
            sparklines,
            "sparklines of both replicas",
            hint=lambda: shown(project, "status", "requests/busy.yaml"),
        )
        project.storage.bucket(project.models).blob("seen").upload_from_string("go")
        status = project.final_status("requests/busy.yaml")
        record = project.finished_record(status["run_id"])
        replicas = record["utilization"]["replicas"]
        assert [one["replica"] for one in replicas] == ["workerpool0-0", "workerpool1-0"]
        (job,) = project.jobs(status["run_id"])
        assert [VCPUS * one["cpu"]["mean"] for one in replicas] == [
            pytest.approx(mean_share(project, job, one["replica"]), rel=0.1) for one in replicas
        ]
        silent = project.finished_record(project.final_status("requests/silent.yaml")["run_id"])
        assert (silent["state"], silent["wasteful"]["reason"]) == (
            "cancelled",
            "it has logged nothing for 15 s",
        )
        assert "by the policy `waste`: it has logged nothing" in shown(project, "why", silent["run_id"])
        assert "by the policy `waste`" in shown(project, "ls", "-o", "json")
