"""When a job that has not started is given up, and what a deadline counts from."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.candidates import WITH_FALLBACKS
from tests.contract.rooms import TWO_REGIONS, launched
from tests.contract.world import ELSEWHERE, START, World
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.candidates import candidates_of
from trainmaster.orchestrator.core.admission.start_deadline import (
    ended_given_up,
    queued_job,
    start_deadline,
    with_start_overdue,
)
from trainmaster.orchestrator.core.requests.spec import Scheduling
from trainmaster.orchestrator.core.runs.job import Job, JobState, Queued, Trial, TrialState
from trainmaster.orchestrator.core.runs.record import GivingUp, RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

HOUR = timedelta(hours=1)
LATE = START + timedelta(days=1)


def submitted(**scheduling: Any) -> tuple[RunRecord, Job]:
    """A run with three candidates, the last one elsewhere, and its job, as it is before it starts."""
    world = World(TWO_REGIONS)
    record = world.record(
        launched(world, **{**WITH_FALLBACKS, "scheduling": {"timeout_s": 60, **scheduling}})
    )
    return record, world.jobs.all()[0]


def on_candidate(record: RunRecord, number: int) -> RunRecord:
    return replace(record, submission=replace(record.submission, candidate=number))


@pytest.mark.parametrize(
    ("scheduling", "seconds"),
    [
        ({}, 7200),
        ({"start_within_s": 60}, 60),
        ({"start_within_s": 0}, 0),
        ({"flex_start": True}, 24 * 3600 + 900),
        ({"flex_start": True, "max_wait_s": 600, "start_within_s": 60}, 1500),
        ({"flex_start": True, "max_wait_s": 0}, 0),
    ],
)
def test_how_long_a_job_may_be_queued(scheduling: Any, seconds: int) -> None:
    assert Scheduling(**scheduling).start_limit_s == seconds


def test_the_deadline_counts_from_the_jobs_own_creation_and_spares_the_last_candidate() -> None:
    record, job = submitted(start_within_s=600)
    created = present(job.create_time)
    assert start_deadline(record) == created + timedelta(seconds=600)
    assert start_deadline(on_candidate(record, len(candidates_of(record)) - 1)) is None
    assert start_deadline(replace(record, state=RunState.RUNNING)) is None
    assert start_deadline(replace(record, cancel_requested_at=START)) is None
    assert start_deadline(submitted(start_within_s=0)[0]) is None


@pytest.mark.parametrize(
    ("number", "following"),
    [(0, "n1-standard-8"), (1, ELSEWHERE), (2, None)],
    ids=["machine", "region", "last"],
)
def test_a_queued_job_shows_what_follows(number: int, following: str | None) -> None:
    record, job = submitted(start_within_s=600)
    found, since = queued_job(on_candidate(record, number)), present(job.create_time)
    start_by = since + timedelta(seconds=600) if following else None
    region = candidates_of(record)[number].region
    assert found == Queued(since=since, region=region, next_candidate=following, start_by=start_by)
    assert queued_job(replace(record, state=RunState.RUNNING)) is None


STARTED = Trial(id="1", state=TrialState.ACTIVE, start_time=START)


@pytest.mark.parametrize(
    ("change", "is_due"),
    [
        ({}, True),
        ({"state": JobState.QUEUED}, True),
        ({"state": JobState.CANCELLING}, False),
        ({"state": JobState.RUNNING, "start_time": START}, False),
        ({"trials": (STARTED,)}, False),
    ],
)
def test_only_a_job_that_is_still_queued_is_given_up(change: Any, is_due: bool) -> None:
    record, job = submitted()
    overdue = with_start_overdue(record, replace(job, **change), LATE)
    assert (overdue.submission.giving_up is not None) == is_due
    again = with_start_overdue(overdue, job, LATE + HOUR)
    assert (again is overdue) == is_due, "once is enough"
    assert with_start_overdue(record, job, START) is record


@pytest.mark.parametrize(
    ("state", "started", "ended", "follows"),
    [
        (JobState.CANCELLED, None, LATE, True),
        (JobState.FAILED, None, LATE, True),
        (JobState.SUCCEEDED, LATE, LATE + HOUR, False),
        (JobState.FAILED, LATE, LATE + HOUR, False),
        (JobState.CANCELLED, LATE, LATE + HOUR, True),
        (JobState.CANCELLED, LATE, LATE + 2 * HOUR, False),
        (JobState.PENDING, None, None, False),
    ],
)
def test_what_follows_the_end_of_a_job_that_was_given_up(
    state: JobState, started: Any, ended: Any, follows: bool
) -> None:
    record, job = submitted()
    job = replace(job, state=state, start_time=started, end_time=ended)
    assert not ended_given_up(record, job)
    giving_up = GivingUp(job=job.name, since=LATE, reason="late")
    record = replace(record, submission=replace(record.submission, giving_up=giving_up))
    assert ended_given_up(record, job) == follows
    assert not ended_given_up(replace(record, cancel_requested_at=LATE), job)
