"""A study as JSON, as CSV, and as the request for its best trial."""

import csv
import io
from dataclasses import replace
from typing import Any

import pytest

from tests.cli.study.studies import many, study, trial
from tests.client.served import run_record
from tests.client.study.jobs import HOSTILE, JOB, RUN, Jobs, served_jobs, tuning_job
from tests.client.study.jobs import trial as on_the_wire
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from trainmaster.cli.study.best_request import best_request
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.study.document import study_csv, study_document
from trainmaster.client.study.read import TuningStudy, find_tuning
from trainmaster.client.study.study import Choices
from trainmaster.orchestrator.core.runs.job import TrialState

jobs = fixture_of(served_jobs)


def found_by(jobs: Jobs, text: str) -> TuningStudy:
    return find_tuning(jobs.served.clients, text)


@pytest.mark.parametrize("drawn", [study(), study(trial(1, curve=(0.5,))), many(40)])
def test_every_study_has_a_document_of_the_schema(drawn: object) -> None:
    assert isinstance(drawn, type(study()))
    assert_valid(
        study_document(TuningStudy(study=drawn, state="JOB_STATE_RUNNING", has_ended=False)), "study.v1"
    )


def test_a_run_and_its_job_have_the_same_study(jobs: Jobs) -> None:
    jobs.document = tuning_job(
        on_the_wire(1, 0.5), on_the_wire(2, 0.75), on_the_wire(3, state="ACTIVE", endTime=None)
    )
    by_run, by_job = (study_document(found_by(jobs, text)) for text in (RUN, JOB))
    assert_valid(by_run, "study.v1")
    assert by_run.pop("run_id") == RUN
    assert by_run == by_job
    assert by_run["best_trial"]["model_uri"] == f"gs://models/horses/{RUN}/2/model/"
    assert by_run["trials"][0]["measurements"][0] == {"step": 0, "value": 0.0}


def test_a_run_that_is_not_a_tuning_is_refused(jobs: Jobs) -> None:
    with pytest.raises(NotFound, match=r"plain is not a tuning, so it has no trials.*trainmaster logs plain"):
        found_by(jobs, "plain")
    with pytest.raises(ClientRefused, match="hyperparameterTuningJobs/ID"):
        found_by(jobs, JOB.replace("hyperparameterTuningJobs", "customJobs"))


def test_a_run_without_a_job_is_not_found_and_the_message_has_what_it_waits_for(jobs: Jobs) -> None:
    waiting = {"reason": "the quota is used up", "not_before": "2026-03-01T13:00:00Z", "attempts": 1}
    record = run_record("tuned", run_id="slow", state="waiting", admission={"waiting": waiting})
    del record["job"], record["tuning"]
    jobs.served.write("ledger", "runs/slow.json", record)
    with pytest.raises(NotFound, match="slow is waiting and has no job yet: the quota is used up"):
        found_by(jobs, "slow")


def test_the_request_of_the_best_trial_has_its_flags_and_no_tuning(jobs: Jobs) -> None:
    jobs.document = tuning_job(on_the_wire(1, 0.75), on_the_wire(2, 0.5))
    found = best_request(found_by(jobs, RUN))
    assert found["args"] == [
        "--dataset=cassava",
        "--epochs=2",
        "--rate=0.01",
        "--layers=1",
        f"--{HOSTILE}={HOSTILE}",
    ]
    assert "tuning" not in found
    assert "model_uri" not in found  # it had the trial's id


def test_programs_with_arguments_of_their_own_get_the_flags_too(jobs: Jobs) -> None:
    jobs.document = tuning_job(on_the_wire(4, 0.75))
    tuning = found_by(jobs, RUN)
    assert tuning.run is not None
    record = tuning.run.record
    assert record.request is not None
    roles: dict[str, dict[str, Any]] = {
        "chief": {"machine": "m", "args": ["--x"]},
        "workers": {"image": "i"},
        "evaluator": {"machine": "m"},
    }
    document = {
        **record.request.document,
        "cluster": roles,
        "fallbacks": [{"args": []}, {"cluster": {"workers": None}}],
    }
    record = replace(record, request=replace(record.request, document=document))
    found = best_request(replace(tuning, run=replace(tuning.run, record=record)))
    flags = ["--rate=0.1", "--layers=4", f"--{HOSTILE}=sgd"]
    assert found["cluster"]["chief"]["args"] == ["--x", *flags]
    assert found["cluster"]["workers"]["args"] == flags
    assert "args" not in found["cluster"]["evaluator"]
    assert found["fallbacks"] == [{"args": flags}, {"cluster": {"workers": None}}]
    assert roles["chief"]["args"] == ["--x"]


def test_there_is_no_request_without_a_best_trial_or_a_run(jobs: Jobs) -> None:
    jobs.document = tuning_job(on_the_wire(1, state="INFEASIBLE"))
    with pytest.raises(NotFound, match="none is the best"):
        best_request(found_by(jobs, RUN))
    with pytest.raises(NotFound, match="A request is that of a run"):
        best_request(found_by(jobs, JOB))


def test_a_spreadsheet_finds_no_formula_in_the_csv() -> None:
    attacks = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r\n=1", "＝1")
    drawn = study(
        *(trial(n, final=-0.5, parameters={"=x": each}) for n, each in enumerate(attacks, start=1)),
        trial(9, state=TrialState.INFEASIBLE, curve=(), parameters={}, reason='a "quoted", reason\n=1'),
        parameters=(Choices(name="=x", values=attacks),),
        metric="@metric",
    )
    headings, *rows = csv.reader(io.StringIO(study_csv(drawn)))
    assert headings[2:4] == ["'=x", "'@metric"]
    assert all(row[2].startswith("'") for row in rows[:-1])
    assert rows[0][3] == "-0.5"  # a number stays one
    assert rows[-1][-1] == 'a "quoted", reason =1'


def test_the_csv_has_every_trial_and_exact_numbers() -> None:
    found = [*csv.reader(io.StringIO(study_csv(many(30))))]
    assert [row[0] for row in found[1:]] == [str(n) for n in range(1, 31)]
    assert float(found[1][4]) == 1 / 31
    assert found[1][7] == "2026-01-01T00:00:00.000000Z"
