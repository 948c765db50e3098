"""`trainmaster submit` on a running stack: from files and scripts to runs, and what it refuses."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import ROOT, Project, image_uri, request

from .conftest import PROJECT, Trainmaster

pytestmark = pytest.mark.slow(seconds=30)
SUBMIT = [sys.executable, "-m", "trainmaster", "submit"]
SLEEP = "import time\nprint('ready', flush=True)\ntime.sleep(600)\n"


@pytest.fixture
def folder(tmp_path: Path, trainmaster: Trainmaster, stack: Project) -> Path:
    """A folder with the files that `init` writes."""
    assert trainmaster("init", str(tmp_path)).status == 0
    return tmp_path


def local(stack: Project) -> str:
    return f"local:{stack.state}"


def inbox(stack: Project) -> list[str]:
    return sorted(f"{blob.name}#{blob.generation}" for blob in stack.storage.list_blobs(stack.inbox))


def test_the_files_of_init_become_a_model_on_record(
    folder: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    done = trainmaster("submit", "request.yaml", "--logs", "--context", local(stack), cwd=folder)
    assert done.status == 0, done.err
    run_id, *log = done.out.splitlines()
    assert "workerpool0-0 | epoch 20/20: loss 0.0456, accuracy 0.998" in log
    record = stack.finished_record(run_id)
    assert record["model"]["metrics"] == {"val_accuracy": 0.998}
    assert record["request"]["document"]["script"]["file"] == "train.py"
    assert record["request"]["document"]["image"].endswith("/trainmaster/trainer:latest")
    assert f"Submitting request.yaml in the local stack on {stack.state}." in done.err
    several = ("--matrix", "learning_rate=0.1,0.2", "--logs")
    again = trainmaster("submit", "request.yaml", *several, "--context", local(stack), cwd=folder)
    assert again.status == 0, again.err
    assert "Already there: 2 files as gs://e2e-verbs-data/scripts/" in again.err
    assert "those of the first run alone. Of all: trainmaster wait " in again.err


def test_several_files_start_one_run_each_and_the_worst_end_counts(
    tmp_path: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    (tmp_path / "good.yaml").write_text(request(PROJECT))
    (tmp_path / "bad.yaml").write_text(request(PROJECT, "--no-such-flag"))
    done = trainmaster("submit", "good.yaml", "bad.yaml", "--wait", "--context", local(stack), cwd=tmp_path)
    assert done.status == 1, done.err
    assert [stack.record(run_id)["state"] for run_id in done.out.split()] == ["succeeded", "failed"]


def test_one_faulty_file_among_several_sends_nothing(
    tmp_path: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    before = inbox(stack)
    (tmp_path / "good.yaml").write_text(request(PROJECT))
    (tmp_path / "bad.yaml").write_text(f"model_name: m\nimage: {image_uri(PROJECT)}:1\nclutser: {{}}\n")
    done = trainmaster(
        "submit", "good.yaml", "bad.yaml", "none.yaml", "--context", local(stack), cwd=tmp_path
    )
    assert (done.status, done.out) == (2, "")
    assert "bad.yaml:3:1: error: $.clutser" in done.err
    assert "none.yaml: No such file or directory" in done.err
    assert "Nothing was sent." in done.err
    assert inbox(stack) == before


def test_what_is_sent_by_force_says_why_it_would_have_been_refused(
    tmp_path: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    (tmp_path / "train.py").write_text("import argparse\n\nargparse.ArgumentParser().parse_args()\n")
    words = ("submit", "--script", str(tmp_path / "train.py"), "--context", local(stack))
    assert trainmaster(*words, "--", "--lr=1").status == 2
    done = trainmaster(*words, "--force", "--wait", "--", "--lr=1", cwd=tmp_path)
    assert done.status == 1, done.err
    record = stack.finished_record(done.out.strip())
    assert record["source"]["forced"].startswith("The program gets --lr, and names no such flag")
    shown = trainmaster("status", record["run_id"], "--context", local(stack))
    assert "sent although the check said: The program gets --lr" in shown.out


def test_a_key_names_one_run_however_often_it_is_sent(
    tmp_path: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    words = ("submit", "-", "--key", "nightly-1", "--wait", "-o", "json", "--context", local(stack))
    done = [trainmaster(*words, stdin=request(PROJECT), cwd=tmp_path) for _ in range(2)]
    assert [each.status for each in done] == [0, 0], done
    sent: list[Any] = [json.loads(each.out) for each in done]
    assert sent[0] == sent[1]
    run_id = sent[0][0]["run_id"]
    assert stack.record(run_id)["source"]["idempotency_key"] == "nightly-1"
    assert f"{run_id} was started before, by the same request" in done[1].err
    other = trainmaster(*words, stdin=request(PROJECT, "--other"), cwd=tmp_path)
    assert (other.status, other.out) == (2, "")
    assert f"has already started {run_id}, and the request differs" in other.err


def test_a_folder_as_an_image_is_provided_to_the_stack(
    tmp_path: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    (tmp_path / "Dockerfile").write_text(
        'FROM python:3.11-slim\nWORKDIR /app\nCOPY a.py .\nENTRYPOINT ["python", "a.py"]\n'
    )
    (tmp_path / "a.py").write_text("print('from the image', flush=True)\n")
    done = trainmaster(
        "submit", "--image", str(tmp_path), "--name", "own", "--logs", "--context", local(stack)
    )
    assert done.status == 0, done.err
    assert "workerpool0-0 | from the image" in done.out.splitlines()


@pytest.mark.parametrize(
    ("words", "typed", "asks", "status"),
    [
        ((), "n\n", True, 2),
        ((), "y\n", True, 0),
        ((), "\x04", True, 130),
        (("--yes",), "", False, 0),
        (("-o", "json"), "", False, 0),
        (("-o", "name"), "", False, 0),
        (("--set", "scheduling.timeout_s=3600"), "", False, 0),
    ],
)
def test_a_terminal_is_asked_before_a_run_that_may_cost_much(
    words: tuple[str, ...], typed: str, asks: bool, status: int, trainmaster: Trainmaster, stack: Project
) -> None:
    dear = {"chief": {"machine": "n1-highmem-96"}}
    (trainmaster.folder / "dear.yaml").write_text(request(PROJECT, cluster=dear))
    command = [*SUBMIT, "dear.yaml", "--context", local(stack), *words]
    environment = {**os.environ, **trainmaster.environment, "PYTHONPATH": str(ROOT)}
    before = inbox(stack)
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    with subprocess.Popen(
        command, cwd=trainmaster.folder, env=environment, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
    ) as process:
        process.communicate()
    os.close(theirs)
    said = os.read(ours, 2**16).decode()
    os.close(ours)
    assert process.returncode == status, said
    assert ("The policy asks above 50.00 USD" in said) == asks, said
    assert ("Submit? [y/N]" in said) == asks
    assert (inbox(stack) == before) == (status != 0)
    assert ("Nothing was sent." in said) == (status != 0)


def test_ctrl_c_ends_the_command_and_says_how_to_see_and_cancel_the_run(
    tmp_path: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    (tmp_path / "sleep.py").write_text(SLEEP)
    command = [*SUBMIT, "--script", "sleep.py", "--logs", "--context", local(stack)]
    environment = {**os.environ, **trainmaster.environment, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        run_id = process.stdout.readline().strip()
        for line in process.stdout:
            if "ready" in line:
                break
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "The run continues:" in err
    assert f"trainmaster cancel {run_id}" in err
    assert stack.record(run_id)["state"] == "running"
    assert trainmaster("cancel", run_id, "--context", local(stack)).status == 0
