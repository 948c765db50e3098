"""The smoke run is judged by what programs really do. These need no TensorFlow; they play chief and worker."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.processes import run_to_end

ROOT = Path(__file__).resolve().parents[2]

READ = """
import json, os, pathlib, socket, subprocess, sys, time
config = json.loads(os.environ["TF_CONFIG"])
task = config["task"]["type"]
model_dir = pathlib.Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
def save():
    (model_dir / "saved_model.pb").write_text(task)
"""
GOOD = READ + "if task == 'chief':\n    save()\n"
READ_ALONE = """
import os, pathlib, sys
pathlib.Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1), "model").touch()
"""


def command(program: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "trainmaster", "inspect", str(program), "--json", *options]


def inspected(program: Path, *options: str, status: int) -> list[dict[str, Any]]:
    """The findings of a run that ended with `status`."""
    done = run_to_end(command(program, *options), cwd=ROOT)
    assert done.returncode == status, done.stdout + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def said(findings: Sequence[dict[str, Any]], level: str) -> list[str]:
    return [finding["found"] for finding in findings if finding["level"] == level]


def written(tmp_path: Path, source: str) -> Path:
    program = tmp_path / "train.py"
    program.write_text(source)
    return program


def test_a_program_that_does_right_passes(tmp_path: Path) -> None:
    findings = inspected(written(tmp_path, GOOD), "--smoke", status=0)
    assert "Only the chief left files in AIP_MODEL_DIR" in said(findings, "ok")
    assert "A model appeared in AIP_MODEL_DIR: saved_model.pb" in said(findings, "ok")
    assert any(text.startswith("The program finished: both replicas") for text in said(findings, "ok"))
    assert {finding["level"] for finding in findings} == {"ok"}


def test_arguments_of_the_program_ask_for_a_smoke_run(tmp_path: Path) -> None:
    """Without them, or --smoke, nothing is started: tests/inspect/test_command.py."""
    mark = tmp_path / "started"
    program = written(tmp_path, f"open({str(mark)!r}, 'w')\n{GOOD}")
    inspected(program, "--", "--epochs=1", status=0)
    assert mark.exists()


def test_each_replica_has_the_variables_of_the_service_and_none_of_the_shells(tmp_path: Path) -> None:
    program = written(
        tmp_path, f"{READ}print(json.dumps(dict(os.environ)))\nif task == 'chief':\n    save()\n"
    )
    outer = {
        "TF_USE_LEGACY_KERAS": "1",
        "TF_CONFIG": "{}",
        "AIP_TRAINING_DATA_URI": "gs://mine",
        "KEPT": "yes",
    }
    done = run_to_end(
        [*command(program, "--smoke"), "--keep_output", str(tmp_path / "kept")],
        cwd=ROOT,
        env=os.environ | outer,
    )
    assert done.returncode == 0, done.stdout
    seen = {
        role: json.loads((tmp_path / "kept" / f"{role}-0.stdout").read_text()) for role in ("chief", "worker")
    }
    for role, pool in (("chief", "workerpool0"), ("worker", "workerpool1")):
        variables = seen[role]
        config, spec = json.loads(variables["TF_CONFIG"]), json.loads(variables["CLUSTER_SPEC"])
        assert (config["task"]["type"], config["task"]["index"]) == (role, 0)
        assert spec["task"]["type"] == pool
        assert {
            "workerpool0": config["cluster"]["chief"],
            "workerpool1": config["cluster"]["worker"],
        } == spec["cluster"]
        assert {
            "AIP_MODEL_DIR",
            "AIP_CHECKPOINT_DIR",
            "AIP_TENSORBOARD_LOG_DIR",
            "CLOUD_ML_JOB_ID",
        } <= variables.keys()
        assert variables["AIP_MODEL_DIR"].endswith("/model/")
        assert not {"TF_USE_LEGACY_KERAS", "AIP_TRAINING_DATA_URI", "CLOUD_ML_TRIAL_ID"} & variables.keys()
        assert variables["KEPT"] == "yes"
    assert seen["chief"]["TF_CONFIG"] != seen["worker"]["TF_CONFIG"]
    assert seen["chief"]["TMPDIR"] != seen["worker"]["TMPDIR"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (READ + "save()", "worker-0 wrote into AIP_MODEL_DIR: saved_model.pb"),
        (READ, "chief-0 exited with status 0, but AIP_MODEL_DIR is empty"),
        (
            READ + "if task == 'worker':\n    raise ValueError('no data')\nsave()",
            "worker-0 exited with status 1",
        ),
        (READ + "os.kill(os.getpid(), 9)", "was killed by signal 9"),
    ],
    ids=["both write", "nobody writes", "worker fails", "killed"],
)
def test_a_fault_of_the_program_is_reported(source: str, words: str, tmp_path: Path) -> None:
    errors = said(inspected(written(tmp_path, source), "--smoke", status=1), "error")
    assert any(words in error for error in errors), errors


def test_a_failure_is_reported_with_its_error_and_the_programs_own_line(tmp_path: Path) -> None:
    source = READ + "def load():\n    json.loads('{')\nload()\n"
    (finding,) = [
        found
        for found in inspected(written(tmp_path, source), "--smoke", status=1)
        if found["level"] == "error"
    ]
    assert "JSONDecodeError: Expecting property name" in finding["found"]
    assert finding["path"].endswith("train.py")
    assert finding["line"] == source[: source.index("    json.loads('{')")].count("\n") + 1


WAITS = (
    READ
    + """
if task == "chief":
    listener = socket.create_server(("127.0.0.1", int(config["cluster"]["chief"][0].rpartition(":")[2])))
    listener.accept()
    save()
"""
)


@pytest.mark.slow
def test_a_replica_that_waits_for_one_that_has_left_is_reported_with_its_line(tmp_path: Path) -> None:
    program = written(tmp_path, WAITS)
    findings = inspected(program, "--smoke", "--smoke_timeout_s=12", status=1)
    (finding,) = [found for found in findings if found["level"] == "error"]
    assert finding["found"] == (
        "chief-0 waited forever at `listener.accept()`; worker-0 had exited with status 0"
    )
    assert finding["line"] == WAITS[: WAITS.index("    listener.accept()")].count("\n") + 1


CHILD = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1], task).write_text(str(child.pid))
"""


def living(folder: Path) -> list[int]:
    """Those of the processes named in `folder` that still run; one that was killed has a moment to be gone."""
    pids = [int(path.read_text()) for path in folder.iterdir()]
    deadline = time.monotonic() + 20
    while (found := [pid for pid in pids if runs(pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
def test_what_the_replicas_started_ends_with_them(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    inspected(written(tmp_path, GOOD + CHILD), "--", str(pids), status=2)  # a path alone is not a program
    inspected(
        written(tmp_path, GOOD + CHILD), "--", "python", str(tmp_path / "train.py"), str(pids), status=0
    )
    assert {path.name for path in pids.iterdir()} == {"chief", "worker"}
    assert living(pids) == []


@pytest.mark.slow
def test_a_stopped_inspection_leaves_no_replica_behind(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    program = written(tmp_path, READ + CHILD + "time.sleep(600)\n")
    running = subprocess.Popen(
        [*command(program), "--", "python", str(program), str(pids)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while len([path for path in pids.iterdir() if path.read_text()]) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 128 + signal.SIGTERM
    finally:
        running.kill()
        running.wait()
    assert living(pids) == []


def test_the_program_gets_the_requests_arguments_and_then_those_behind_the_dashes(tmp_path: Path) -> None:
    request = tmp_path / "request.yaml"
    request.write_text(
        "model_name: a\nimage: gcr.io/p/b\nargs: [--epochs=5, '--run=${run_id}']\n"
        "cluster: {chief: {machine: n1-standard-4}}\n"
    )
    program = written(
        tmp_path, f"{READ_ALONE}assert sys.argv[1:] == ['--epochs=5', '--run=smoke-run', '--epochs=1']\n"
    )
    inspected(program, "--request", str(request), "--", "--epochs=1", status=0)
    request.write_text(request.read_text().replace("--epochs=5, ", "--epochs 5, "))
    strict = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--epochs')\nparser.parse_args()\n"
    findings = inspected(
        written(tmp_path, READ_ALONE + strict), "--request", str(request), "--smoke", status=1
    )
    assert any("unrecognized arguments: --epochs 5" in text for text in said(findings, "error"))


# As libraries do that write plain files: xgboost, lightgbm, h5py.
PLAIN_WRITER = """
import os
def save_model(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").close()
"""


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('save_model(os.environ["AIP_MODEL_DIR"] + "model.json")', "gs:/goog-smoke-run/run/model/model.json"),
        ('save_model(os.environ["AIP_CHECKPOINT_DIR"] + "last.pt")', "gs:/goog-smoke-run/run/checkpoints/last.pt"),
        ('open(os.environ["AIP_MODEL_DIR"] + "model.json", "w")', "No such file or directory: 'gs://goog-"),
    ],
    ids=["model", "checkpoint", "no folder"],
)  # fmt: skip
def test_plain_files_at_a_uri_are_found_where_they_were_written(
    source: str, words: str, tmp_path: Path
) -> None:
    findings = inspected(written(tmp_path, f"{PLAIN_WRITER}{source}\n"), "--smoke", status=1)
    errors = [found for found in findings if found["level"] == "error" and words in found["found"]]
    assert errors, findings
    assert "below /gcs" in errors[0]["repair"]
    assert not any("A model appeared" in text for text in said(findings, "ok"))
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_files_that_were_written_elsewhere_are_named_and_leave_the_tree_as_it_was(tmp_path: Path) -> None:
    source = f"{READ}import tempfile\npathlib.Path('out').mkdir()\npathlib.Path('out/model.pt').touch()\ntempfile.mkdtemp()\n"
    findings = inspected(written(tmp_path, source), "--smoke", status=1)
    assert "chief-0 exited with status 0, but AIP_MODEL_DIR is empty; it wrote out/model.pt" in said(
        findings, "error"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_a_request_for_one_replica_is_run_with_one(tmp_path: Path) -> None:
    (tmp_path / "request.yaml").write_text(
        "model_name: a\nimage: gcr.io/p/b\ncluster: {chief: {machine: n1-standard-4}}\n"
    )
    source = """
import os, pathlib
assert "TF_CONFIG" not in os.environ
pathlib.Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1), "model.keras").write_text("")
"""
    findings = inspected(
        written(tmp_path, source), "--request", str(tmp_path / "request.yaml"), "--smoke", status=0
    )
    assert any("the one replica" in text for text in said(findings, "ok"))
