"""`trainmaster study` says why it cannot draw."""

import socket
from pathlib import Path

from tests.command import Done, trainmaster

from .studies import JOB


def study(job_name: str, **environment: str) -> Done:
    return trainmaster("study", job_name, cwd=Path(), environment=environment)


def test_a_name_that_is_no_tuning_jobs_is_refused_with_the_form_of_one() -> None:
    refused = study(JOB.replace("hyperparameterTuningJobs", "customJobs"))
    assert (refused.status, refused.out) == (2, "")
    assert "is not the name of a tuning job" in refused.err
    assert "hyperparameterTuningJobs/ID" in refused.err


def test_a_stack_that_does_not_answer_is_reported_without_a_traceback() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no process listens: connections are refused
        host = f"http://127.0.0.1:{taken.getsockname()[1]}"
        silent = study(JOB, VERTEX_EMULATOR_HOST=host)
    assert silent.status == 1
    assert "JobService could not be reached" in silent.err
    assert "Traceback" not in silent.err


def test_missing_credentials_are_reported_with_what_to_do(tmp_path: Path) -> None:
    missing = study(JOB, GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "none.json"))
    assert missing.status == 1
    assert "gcloud auth application-default login" in missing.err
