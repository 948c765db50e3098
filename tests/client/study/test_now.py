"""A tuning that has not ended is shown as the training service reports it: its record follows later."""

import json
import threading
from collections.abc import Iterator

import pytest
import yaml

from tests.client.served import ROOT, run_record
from tests.client.study.jobs import JOB, Jobs, served_jobs, trial, tuning_job
from trainmaster.cli.runs.following import say_change
from trainmaster.client.find import Run
from trainmaster.client.runs.facts import trials_text
from trainmaster.client.wait import wait_for_end

RUN = "horses-20260301t120000-0000000002"
START = "2026-03-01T12:00:30Z"


@pytest.fixture
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """A run that is submitted according to its record, and whose job runs its trials."""
    with served_jobs(tmp_path_factory.mktemp("jobs")) as found:
        write(found, "submitted")
        found.document = tuning_job(
            trial(1, 0.5), trial(2), trial(3, state="ACTIVE", endTime=None), startTime=START
        )
        yield found


def write(jobs: Jobs, state: str) -> None:
    record = run_record("tuned", run_id=RUN, state=state)
    record["history"] = record["history"][:2]
    record["job"] = {"name": JOB, "state": "JOB_STATE_PENDING"}
    request = (ROOT / "schemas/examples/valid/training_request.v1.tuning.yaml").read_text()
    record["request"]["document"]["tuning"] = yaml.safe_load(request)["tuning"]
    for key in ("tuning", "model", "completion"):
        del record[key]
    jobs.served.write("ledger", f"runs/{RUN}.json", record)


def test_status_has_the_state_and_the_trials_of_the_job_and_json_the_record(jobs: Jobs) -> None:
    shown = jobs.served.trainmaster("status", RUN).out
    assert "state        running for" in shown
    assert f"job          {JOB}, running\n" in shown
    assert "trials       2 of 6 trials ended: 1 active, 2 succeeded\n" in shown
    assert "best trial   1: accuracy 0.5 (maximize)" in shown
    document = json.loads(jobs.served.trainmaster("status", RUN, "-o", "json").out)
    assert (document["state"], "progress" in document) == ("submitted", False)
    assert f"job          {JOB}, running\n" in jobs.served.trainmaster("why", RUN).out


def test_a_job_that_cannot_be_read_leaves_what_is_on_record(jobs: Jobs) -> None:
    jobs.document = {"name": "another"}
    shown = jobs.served.trainmaster("status", RUN).out
    assert "state        submitted for" in shown
    assert f"job          {JOB}, pending\n" in shown


def test_waiting_says_how_many_trials_have_ended_after_each_change(
    jobs: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []

    def change(run: Run) -> None:
        say_change(run)
        seen.append(trials_text(run.record))
        if run.record.ended:
            return
        if seen[-1].startswith("2"):
            jobs.document = tuning_job(trial(1, 0.5), trial(2, 0.6), trial(3, 0.7), startTime=START)
        else:
            threading.Timer(0, write, (jobs, "succeeded")).start()

    assert wait_for_end(jobs.served.clients, RUN, timeout_s=60, on_change=change).record.ended
    assert seen == ["2 of 6 trials ended", "3 of 6 trials ended", ""]
    assert f"{RUN} is running, 3 of 6 trials ended\n" in capsys.readouterr().err
