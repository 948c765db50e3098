"""`trainmaster study` says why it cannot draw."""

import socket
from pathlib import Path

from tests.client.served import run_record, served_context
from tests.command import Done, trainmaster
from tests.ready_stack import announce

from .studies import JOB

CLOUD = "some-project/us-central1"


def study(*words: str, **environment: str) -> Done:
    return trainmaster("study", *words, cwd=Path(), environment=environment)


def test_a_name_that_is_no_tuning_jobs_is_refused_with_the_form_of_one() -> None:
    refused = study(JOB.replace("hyperparameterTuningJobs", "customJobs"), "--context", CLOUD)
    assert (refused.status, refused.out) == (2, "")
    assert "is not the name of a tuning job" in refused.err
    assert "hyperparameterTuningJobs/ID" in refused.err


def test_a_stack_that_does_not_answer_is_reported_without_a_traceback(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # no process listens: connections are refused
        host = f"http://127.0.0.1:{taken.getsockname()[1]}"
        announce(tmp_path, {"LOGGING_EMULATOR_HOST": host})
        silent = study(JOB, "--context", f"local:{tmp_path}")
    assert silent.status == 4
    assert "no longer answers" in silent.err
    assert "Traceback" not in silent.err


def test_missing_credentials_are_reported_with_what_to_do(tmp_path: Path) -> None:
    missing = study(JOB, "--context", CLOUD, GOOGLE_APPLICATION_CREDENTIALS=str(tmp_path / "none.json"))
    assert missing.status == 4
    assert "gcloud auth application-default login" in missing.err


def test_a_run_without_trials_is_not_found_and_the_message_names_another_verb(tmp_path: Path) -> None:
    with served_context(tmp_path) as served:
        served.write("ledger", "runs/plain.json", run_record(run_id="plain"))
        done = served.trainmaster("study", "plain")
    assert (done.status, done.out) == (3, "")
    assert "plain is not a tuning, so it has no trials" in done.err
    assert "trainmaster logs plain" in done.err
