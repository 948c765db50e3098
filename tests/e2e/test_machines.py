"""What machines do, on a whole stack: sparklines while a run trains, its record beside the processor seconds, and a silent job cancelled."""

import json
import re
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
import yaml

from tests.stack.jobs.conftest import processes_with

from .project import ROOT, Project, eventually, request, running_project
from .topologies import quick_topology

pytestmark = [pytest.mark.slow(seconds=40), pytest.mark.timeout(300)]
VCPUS = 4
TWO_REPLICAS = {"chief": {"machine": "n1-standard-4"}, "workers": {"machine": "n1-standard-4", "count": 1}}


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


@contextmanager
def processors_watched(word: str) -> Iterator[dict[str, list[tuple[float, float]]]]:
    """What the process of each task with this argument has used: moments, in seconds since the epoch, and processor seconds."""
    seen: dict[str, list[tuple[float, float]]] = {}
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            for pid in processes_with(word):
                with suppress(psutil.Error, KeyError):
                    process = psutil.Process(pid)
                    task, used = process.environ()["TF_CONFIG"], process.cpu_times()
                    of_task = seen.setdefault(
                        json.loads(task)["task"]["type"], [(process.create_time(), 0.0)]
                    )
                    of_task.append((time.time(), used.user + used.system))

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            yield seen
        finally:
            over.set()
    watching.result()


def mean_share(project: Project, replica: str, seen: list[tuple[float, float]]) -> float:
    """The mean share of a processor over the intervals of the samples that Cloud Monitoring has of the replica."""
    url = f"{project.env['MONITORING_EMULATOR_HOST']}/v3/projects/{project.id}/timeSeries"
    metric = 'metric.type = "ml.googleapis.com/training/cpu/utilization"'
    until = datetime.now(UTC).isoformat()
    asked = {"filter": f'{metric} AND resource.labels.task_name = "{replica}"', "interval.endTime": until}
    answer = httpx.get(url, params={**asked, "interval.startTime": "2026-01-01T00:00:00Z"}, timeout=60)
    ends = [point["interval"]["endTime"] for point in answer.json()["timeSeries"][0]["points"]]
    edges = np.array([seen[0][0], *sorted(datetime.fromisoformat(end).timestamp() for end in ends)])
    moments, used = zip(*seen, strict=True)
    return float((np.diff(np.interp(edges, moments, used)) / np.diff(edges)).mean())


def test_two_replicas_are_drawn_recorded_as_they_ran_and_a_silent_job_is_cancelled(tmp_path: Path) -> None:
    options = ("--topology", str(impatient_topology(tmp_path)), "--tick-s", "1")
    with running_project(tmp_path / "state", *options, project="e2e-machines") as project:
        seen_name = uuid.uuid4().hex
        until_seen = f"--wait-for=gs://{project.models}/{seen_name}"
        project.upload("requests/busy.yaml", request(project.id, "--burn", until_seen, cluster=TWO_REPLICAS))
        waits = f"--wait-for=gs://{project.models}/never"
        project.upload("requests/silent.yaml", request(project.id, waits, model_name="silent"))

        def sparklines() -> bool:
            screen = shown(project, "status", "requests/busy.yaml")
            return len(re.findall(r"workerpool[01]-0  CPU [▁▂▃▄▅▆▇█]{2,} +\d+ %", screen)) == 2

        with processors_watched(until_seen) as seen:
            eventually(
                sparklines,
                "sparklines of both replicas",
                hint=lambda: shown(project, "status", "requests/busy.yaml"),
            )
            project.storage.bucket(project.models).blob(seen_name).upload_from_string("go")
            status = project.final_status("requests/busy.yaml")
        record = project.finished_record(status["run_id"])
        replicas = record["utilization"]["replicas"]
        assert [one["replica"] for one in replicas] == ["workerpool0-0", "workerpool1-0"]
        for one, task in zip(replicas, ("chief", "worker"), strict=True):
            share = mean_share(project, one["replica"], seen[task])
            assert VCPUS * one["cpu"]["mean"] == pytest.approx(share, rel=0.1)
        silent = project.finished_record(project.final_status("requests/silent.yaml")["run_id"])
        assert (silent["state"], silent["wasteful"]["reason"]) == (
            "cancelled",
            "it has logged nothing for 15 s",
        )
        assert "by the policy `waste`: it has logged nothing" in shown(project, "why", silent["run_id"])
        assert "by the policy `waste`" in shown(project, "ls", "-o", "json")
