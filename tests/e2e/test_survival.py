"""A run of the real trainer survives its machines: it resumes by itself where it stopped."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil
import pytest

from .project import ENDED, ROOT, Project, running_project
from .topologies import quick_topology

pytestmark = [pytest.mark.slow(seconds=80), pytest.mark.timeout(900)]

LIVES = 2
EPOCHS = 12
"""Enough that a chief which does not answer SIGTERM is killed before it is done: TensorFlow catches the signal."""
GRACE_S = 3
DEADLINE_S = 600


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("survival")
    arguments = (
        "--topology",
        str(quick_topology(folder, timeout_s=60)),
        "--tick-s",
        "2",
        "--grace-s",
        str(GRACE_S),
    )
    with running_project(folder / "state", *arguments, project="e2e-survival") as running:
        yield running


IN_STEP = {"restart_on_worker_restart": True, "timeout_s": DEADLINE_S}
RETRIED = {"disable_retries": True, "retries": 1, "retry_on": ["out_of_memory"], "timeout_s": DEADLINE_S}


class Training:
    """A run of a dropped request, on two replicas unless it is `alone`."""

    def __init__(self, stack: Project, name: str, data_dir: Path, *, alone: bool = False) -> None:
        machine = {"machine": "n1-standard-4"}
        workers = {} if alone else {"workers": {"count": 1, **machine}}
        request = {
            "model_name": name,
            "image": f"{stack.region}-docker.pkg.dev/{stack.id}/trainmaster/trainer:1",
            "args": ["--workload=horses_or_humans", f"--data_dir={stack.provide_data(data_dir)}", "--image_size=32", "--batch_size=2",
                     "--steps_per_epoch=8", f"--epochs={EPOCHS}", "--weights=random"],
            "cluster": {"chief": machine, **workers},
            "scheduling": RETRIED if alone else IN_STEP,
        }  # fmt: skip
        self.stack = stack
        self.drop = f"requests/{name}.json"
        stack.drop(self.drop, json.dumps(request))
        status = stack.eventually(lambda: self.status("running"), f"{name} runs")
        self.run_id = str(status["run_id"])
        self.job_id = str(stack.record(self.run_id)["job"]["name"]).rpartition("/")[2]

    def status(self, *states: str) -> dict[str, Any] | None:
        status = self.stack.status(self.drop)
        assert not status or status["state"] in states or status["state"] not in ENDED, status
        return status if status and status["state"] in states else None

    def events(self, name: str, task: str = "workerpool0-0") -> list[dict[str, Any]]:
        """The trainer's events of this name, oldest first."""
        labels = f'resource.labels.job_id="{self.job_id}" AND resource.labels.task_name="{task}"'
        entries = self.stack.logging.list_entries(filter_=f'{labels} AND jsonPayload.event="{name}"')
        return [entry.payload for entry in entries]

    def texts(self) -> list[str]:
        entries = self.stack.logging.list_entries(filter_=f'resource.labels.job_id="{self.job_id}"')
        return [str(entry.payload) for entry in entries]

    def wait_for_epoch(self, number: int) -> None:
        """Wait until `number` epochs are over, and the checkpoints of all but the last of them are written."""
        self.stack.eventually(
            lambda: any(event["epoch"] >= number for event in self.events("epoch_finished")),
            f"epoch {number}: {self.texts()[-20:]}",
            deadline_s=DEADLINE_S,
        )

    def processes(self) -> list[psutil.Process]:
        """Every process of the job."""
        found = []
        for process in psutil.process_iter():
            try:
                environment = process.environ()
            except psutil.Error:
                continue
            if environment.get("CLOUD_ML_JOB_ID") == self.job_id and "CLUSTER_SPEC" in environment:
                found.append(process)
        return found

    def assert_survived(self) -> None:
        """The run succeeded, and its last process resumed where the first one stopped."""
        status = self.stack.eventually(
            lambda: self.status("succeeded"),
            f"the run succeeds: {self.texts()[-20:]}",
            deadline_s=DEADLINE_S,
        )
        record = self.stack.record(status["run_id"])
        assert record["model"]["uri"].endswith("/model/")
        begun_at = [event["initial_epoch"] for event in self.events("train_started")]
        assert begun_at[0] == 0
        assert len(begun_at) == LIVES
        assert begun_at == sorted(set(begun_at)), "each process resumes after the previous one"
        epochs = [event["epoch"] for event in self.events("epoch_finished")]
        assert set(epochs) == set(range(1, EPOCHS + 1))
        assert epochs.count(1) == 1, "epochs continue rather than restart"
        assert any("all replicas of the job are restarted" in text for text in self.texts())
        assert self.stack.eventually(lambda: not self.processes(), "no process is left")


def test_a_run_whose_chief_is_preempted_continues_and_succeeds(stack: Project, figures: Path) -> None:
    training = Training(stack, "survivor", figures)
    training.wait_for_epoch(2)
    command = [
        sys.executable,
        "-m",
        "trainmaster",
        "stack",
        "preempt",
        training.job_id,
        "--state",
        str(stack.state),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    training.assert_survived()
    assert any("The machine of replica workerpool0-0 is being preempted" in text for text in training.texts())


def test_a_run_out_of_memory_continues_on_a_larger_machine_to_the_same_weights(
    stack: Project, figures: Path
) -> None:
    """The kernel ends a program that exhausts the memory by SIGKILL, and so does this test, until the service gives up."""
    training = Training(stack, "hoarder", figures, alone=True)
    training.wait_for_epoch(2)

    def kill() -> dict[str, Any] | None:
        for process in training.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return training.status("waiting")

    waiting = stack.eventually(kill, "the run waits for its retry")
    assert waiting["reason"].startswith(
        "retry 1 of 1 after out of memory: The replica workerpool0-0 ran out of"
    )
    undisturbed = Training(stack, "undisturbed", figures, alone=True)
    stack.eventually(lambda: undisturbed.status("succeeded"), "the other succeeds", deadline_s=DEADLINE_S)
    stack.eventually(lambda: training.status("succeeded"), "the run succeeds", deadline_s=DEADLINE_S)
    record = stack.finished_record(training.run_id)
    (lost,) = record["submission"]["abandoned_jobs"]
    training.job_id = record["job"]["name"].rpartition("/")[2]
    assert lost["why"] == "out_of_memory"
    jobs = {job.name: job.job_spec.worker_pool_specs[0].machine_spec for job in stack.jobs(training.run_id)}
    machines = [jobs[name].machine_type for name in (lost["job"], record["job"]["name"])]
    assert machines == ["n1-standard-4", "n1-highmem-4"]
    (began,), (ended,) = training.events("train_started"), training.events("train_finished")
    assert began["initial_epoch"] > 0
    assert ended["weights_sha256"] == undisturbed.events("train_finished")[0]["weights_sha256"]
    parts = record["completion"]["cost"]
    own = sum(map(Decimal, parts["roles"].values()))
    assert Decimal(parts["total"]) == own + Decimal(parts["earlier_jobs"]) > own
