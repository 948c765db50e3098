"""The cost of an ended job: its time by the service, at the prices of the machines that ran."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from tests.core.admission_cases import CHIEF, PRICES, document, sound
from tests.core.roles import TUNING
from tests.core.runs.test_record import record as plain_record
from trainmaster.orchestrator.core.admission.actual_cost import cost_of
from trainmaster.orchestrator.core.job_names import JobKind, job_name
from trainmaster.orchestrator.core.runs.end import Cost
from trainmaster.orchestrator.core.runs.job import Job, JobState, Trial, TrialState
from trainmaster.orchestrator.core.runs.record import (
    AcceptedRequest,
    Original,
    RunRecord,
    SubmissionState,
)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
STUDY = {**TUNING, "max_trials": 3, "parallel_trials": 2}


def record(candidate: int = 0, **changes: Any) -> RunRecord:
    request = sound(document(**changes))
    accepted = AcceptedRequest(
        document=request.document,
        original=Original(uri="gs://ledger/x", sha256="0", dialect="trainmaster"),
        model_name="m",
        output_uri="gs://models/m/run-1",
    )
    return replace(plain_record(), request=accepted, submission=SubmissionState(candidate=candidate))


def job(kind: JobKind = JobKind.CUSTOM, *, region: str = "us-central1", **changes: Any) -> Job:
    usual = {"state": JobState.SUCCEEDED, "start_time": START, "end_time": START + 2 * HOUR}
    return Job(name=job_name("p", region, kind, "1"), create_time=START - HOUR, **{**usual, **changes})


def cost(written: RunRecord, ended: Job | None = None) -> Cost:
    return cost_of(written, ended or job(), PRICES)


def test_a_job_costs_the_time_from_its_start_to_its_end_and_not_its_time_in_the_queue() -> None:
    found = cost(record())
    assert (found.ran_s, found.total, found.currency, found.as_of) == (
        7200,
        Decimal("3.6"),
        "USD",
        "2025-01-01",
    )
    assert (found.roles, found.trials, found.unknown) == ({"chief": Decimal("3.6")}, None, ())


def test_each_role_costs_what_all_its_replicas_do() -> None:
    workers = {"machine": "n1-standard-8", "count": 3}
    found = cost(record(cluster={"chief": CHIEF, "workers": workers}))
    assert found.roles == {"chief": Decimal("3.6"), "workers": Decimal("12.6")}
    assert found.total == sum(found.roles.values())


@pytest.mark.parametrize(
    ("written", "ended", "total"),
    [
        (record(scheduling={"spot": True}), job(), "3.2"),
        (record(), job(end_time=START + timedelta(milliseconds=1234)), "0.000617"),
        (record(), job(end_time=START - HOUR), "0"),
        (
            record(candidate=1, fallbacks=[{"cluster": {"chief": {"machine": "n1-standard-8"}}}]),
            job(),
            "4.2",
        ),
    ],
    ids=["spot prices", "rounded to a millionth", "ended before it started", "the fallback that ran"],
)
def test_the_total_is_the_time_at_the_prices_of_what_ran(written: RunRecord, ended: Job, total: str) -> None:
    assert cost(written, ended).total == Decimal(total)


UNPRICED = {"machine": "n1-highmem-2", "count": 2}


@pytest.mark.parametrize(
    ("written", "ended", "unknown", "priced"),
    [
        pytest.param(
            record(cluster={"chief": CHIEF, "workers": UNPRICED}),
            job(),
            "n1-highmem-2 in us-central1",
            {"chief": Decimal("3.6")},
            id="a machine",
        ),
        pytest.param(
            record(), job(region="europe-west4"), "n1-standard-4 in europe-west4", {}, id="a region"
        ),
        pytest.param(record(), job(end_time=None), "the end of the job", None, id="an end"),
    ],
)
def test_a_missing_price_or_end_leaves_no_total(
    written: RunRecord, ended: Job, unknown: str, priced: dict[str, Decimal] | None
) -> None:
    found = cost(written, ended)
    assert (found.total, found.unknown[0]) == (None, unknown)
    if priced is not None:
        assert (found.roles, found.ran_s) == (priced, 7200)


@pytest.mark.parametrize("changes", [{}, {"machine": "n1-highmem-2"}])
def test_a_job_that_never_ran_costs_nothing_whatever_its_prices(changes: dict[str, Any]) -> None:
    never_ran = job(start_time=None, state=JobState.CANCELLED)
    found = cost(record(cluster={"chief": {**CHIEF, **changes}}), never_ran)
    assert (found.total, found.unknown, found.ran_s) == (Decimal(0), (), 0)


def test_a_tuning_costs_the_sum_of_its_trials() -> None:
    trials = (
        Trial(id="1", state=TrialState.SUCCEEDED, start_time=START, end_time=START + HOUR),
        Trial(id="2", state=TrialState.STOPPING, start_time=START + HOUR),
        Trial(id="3", state=TrialState.REQUESTED),
    )
    found = cost(record(tuning=STUDY), job(JobKind.TUNING, trials=trials))
    assert (found.ran_s, found.total) == (7200, Decimal("3.6"))
    assert found.trials == {"1": Decimal("1.8"), "2": Decimal("1.8")}, (
        "a trial without an end ended with its job"
    )
    assert found.roles == {"chief": Decimal("3.6")}
