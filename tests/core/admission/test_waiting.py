"""A run that found no room is tried again, and given up in the end: docs/reference/admission.md."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.core.admission_cases import document
from tests.core.runs.test_record import NOW, record
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.candidates import is_rate_limit, parse_candidates
from trainmaster.orchestrator.core.admission.waiting import (
    ROUNDS_MAX,
    back_off,
    may_wait,
    reason_to_give_up,
    short_pause,
    stocked_out,
    with_rate_limit,
    with_refused_candidate,
    with_unanswered_submission,
)
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.moves import gave_up
from trainmaster.orchestrator.core.runs.record import (
    REASON_MAX_CHARS,
    TRIES_KEPT,
    AbandonedJob,
    AcceptedRequest,
    Original,
    RunRecord,
    SubmissionState,
)
from trainmaster.orchestrator.core.runs.states import RunState

REQUEST = AcceptedRequest(
    document=document(region="us-central1", fallbacks=[{"region": "europe-west4"}]),
    original=Original(uri="gs://ledger/original", sha256="0" * 64, dialect="training_request.v1"),
    model_name="m",
    output_uri="gs://models/m/run-1",
)
FIRST, LAST = parse_candidates(REQUEST.document)


def test_a_pause_doubles_from_half_a_minute_up_to_ten_minutes() -> None:
    found = [back_off(attempts).total_seconds() for attempts in (1, 2, 3, 4, 5, 6, 7, 1_000_000)]
    assert found == [30, 60, 120, 240, 480, 600, 600, 600]


def test_runs_that_asked_too_fast_come_back_at_different_times_within_half_a_minute() -> None:
    pauses = {short_pause(f"run-{number}", NOW).total_seconds() for number in range(200)}
    assert 10 <= min(pauses) < 12
    assert 28 < max(pauses) <= 30
    assert len(pauses) > 50
    assert short_pause("run-1", NOW) == short_pause("run-1", NOW)


@pytest.mark.parametrize(
    ("code", "reason", "meant"),
    [
        (429, "Quota exceeded: Resource management requests per minute per region", True),
        (429, "RATE_LIMIT_EXCEEDED", True),
        (429, "aiplatform.googleapis.com/resource_management_requests", True),
        (429, "The following quota metrics exceed quota limits: custom_model_training_cpus", False),
        (503, "insufficient capacity; too many requests per minute", False),
    ],
)
def test_a_rate_limit_is_distinguished_from_lack_of_quota(code: int, reason: str, meant: bool) -> None:
    assert is_rate_limit(code, reason) is meant


def test_seven_days_count_from_the_first_refusal() -> None:
    since = with_refused_candidate(record(), FIRST, "no room", NOW)
    again = with_refused_candidate(since, LAST, "no room", NOW + timedelta(days=6))
    assert reason_to_give_up(again, NOW + timedelta(days=7)) is None
    assert "7 days since 2026-03-01 12:00 UTC" in str(
        reason_to_give_up(again, NOW + timedelta(days=7, seconds=1))
    )
    assert may_wait(record(), NOW + timedelta(days=100)), "it was never refused"


def test_seven_days_of_rate_limits_end_a_run_too() -> None:
    again = with_rate_limit(with_rate_limit(record(), NOW), NOW + timedelta(days=6))
    assert reason_to_give_up(again, NOW + timedelta(days=7)) is None
    reason = str(reason_to_give_up(again, NOW + timedelta(days=7, seconds=1)))
    assert reason.startswith("the service kept asking for fewer requests during the 7 days since 2026-03-01")


def test_after_too_many_jobs_without_capacity_the_run_gives_up() -> None:
    gone = AbandonedJob(job="projects/p/locations/l/customJobs/1", candidate=0, reason="no capacity", at=NOW)

    def after(jobs: int) -> RunRecord:
        return replace(record(), submission=SubmissionState(abandoned_jobs=(gone,) * jobs))

    assert may_wait(after(ROUNDS_MAX - 1), NOW)
    assert f"{ROUNDS_MAX} jobs" in str(reason_to_give_up(after(ROUNDS_MAX), NOW))


def test_the_last_tries_are_kept_and_their_reasons_cut() -> None:
    tried = record()
    for number in range(TRIES_KEPT + 1):
        tried = with_refused_candidate(tried, FIRST, f"{number} {'x' * 500}", NOW)
    assert len(tried.submission.tries) == TRIES_KEPT
    assert tried.submission.tries[0].outcome.startswith("1 ")
    assert {len(each.outcome) for each in tried.submission.tries} == {REASON_MAX_CHARS}
    assert (tried.submission.tries[0].candidate, tried.submission.tries[0].text) == (0, FIRST.text)


def test_a_refusal_resets_the_count_of_unanswered_submissions() -> None:
    silent = with_unanswered_submission(
        with_unanswered_submission(record(), FIRST, "lost", NOW), FIRST, "lost", NOW
    )
    assert (silent.submission.unanswered, silent.admission.refused_since) == (2, None)
    assert with_refused_candidate(silent, FIRST, "no room", NOW).submission.unanswered == 0


def test_a_stockout_makes_the_next_candidate_due_at_once_and_after_the_last_the_first_with_a_pause() -> None:
    def without_capacity(before: RunRecord, number: int) -> RunRecord:
        name = f"projects/p/locations/us-central1/customJobs/{number}"
        job = Job(name=name, state=JobState.FAILED, create_time=NOW)
        return stocked_out(before, job, "no machines", now=NOW, attempt="b")

    first = without_capacity(replace(record(), request=REQUEST), 1)
    assert (
        first.state,
        first.submission.candidate,
        present(first.admission.waiting).not_before,
        first.job,
    ) == (RunState.WAITING, 1, NOW, None)
    last = without_capacity(first, 2)
    assert last.admission.waiting is not None
    assert (
        last.submission.candidate,
        last.admission.waiting.attempts,
        last.admission.waiting.not_before,
    ) == (0, 1, NOW + back_off(1))
    assert [each.candidate for each in last.submission.abandoned_jobs] == [0, 1]
    assert all(gave_up(last, f"projects/9/locations/us-central1/customJobs/{number}") for number in (1, 2))
