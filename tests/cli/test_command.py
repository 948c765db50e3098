"""`trainmaster study` says why it cannot draw."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from .studies import JOB

ROOT = Path(__file__).resolve().parents[2]


def study(job_name: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "trainmaster", "study", job_name],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_a_name_that_is_no_tuning_jobs_is_refused_with_the_form_of_one() -> None:
    refused = study(JOB.replace("hyperparameterTuningJobs", "customJobs"))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "names no tuning job" in refused.stderr
    assert "hyperparameterTuningJobs/ID" in refused.stderr


def test_a_stack_that_does_not_answer_is_told_without_a_traceback() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens: connections are refused
        host = f"http://127.0.0.1:{taken.getsockname()[1]}"
        silent = study(JOB, VERTEX_EMULATOR_HOST=host)
    assert silent.returncode == 1
    assert "JobService could not be asked" in silent.stderr
    assert "Traceback" not in silent.stderr


def test_missing_credentials_are_told_with_what_to_do(tmp_path: Path) -> None:
    missing = study(JOB, GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "none.json"))
    assert missing.returncode == 1
    assert "gcloud auth application-default login" in missing.stderr
