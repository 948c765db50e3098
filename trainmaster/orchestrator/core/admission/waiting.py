"""The record of a run without a job: what was tried, why it waits, and when the next attempt is due."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.orchestrator.core.admission.candidates import Candidate, candidates_of, current_candidate
from trainmaster.orchestrator.core.runs.job import RecordedJob
from trainmaster.orchestrator.core.runs.moves import with_job, with_state
from trainmaster.orchestrator.core.runs.record import (
    TRIES_KEPT,
    AbandonedJob,
    RefusedCandidate,
    RunRecord,
    Waiting,
    short_reason,
)
from trainmaster.orchestrator.core.runs.states import RunState

WAIT_FIRST = timedelta(seconds=30)
WAIT_MOST = timedelta(minutes=10)
WAIT_IN_ALL = timedelta(days=7)
"""A run for which the service has had no room for this long fails: its user has long stopped waiting.

Time spent behind other runs, or waiting for a limit of the policy, does not count: the service refused nothing.
"""
UNANSWERED_MAX = 100
"""Consecutive submissions that may have no response, one per lease: most of a day. After that the cause is the job."""
ROUNDS_MAX = 1000
"""Jobs of one run that may end for lack of capacity. Each one is recorded, and the record must stay small."""
NO_CAPACITY = "no_capacity"
"""`why` of a job that the service ended."""
PAUSE_LEAST_S, PAUSE_MOST_S = 10, 30
"""Seconds between two attempts after the service asked for fewer requests: its quotas are per minute."""


def back_off(attempts: int) -> timedelta:
    """How long a run waits after all its candidates were tried that many times, counted from 1."""
    doublings = min(max(attempts, 1) - 1, 10)
    return min(WAIT_FIRST * (1 << doublings), WAIT_MOST)


def short_pause(run_id: str, now: datetime) -> timedelta:
    """A pause that varies by run and time, so that not all runs return at once."""
    drawn = hashlib.sha256(f"{run_id} {now.isoformat()}".encode()).digest()[0] / 255
    return timedelta(seconds=PAUSE_LEAST_S + drawn * (PAUSE_MOST_S - PAUSE_LEAST_S))


def reason_to_give_up(record: RunRecord, now: datetime, missing: str = "there was no capacity") -> str | None:
    """Why the run must stop looking for room; None: it may continue. `missing` names what it waited for in vain."""
    since = record.admission.refused_since
    if since is not None and now - since > WAIT_IN_ALL:
        return f"{missing} in the {WAIT_IN_ALL.days} days since {since:%Y-%m-%d %H:%M} UTC"
    since = record.admission.rate_limited_since
    if since is not None and now - since > WAIT_IN_ALL:
        return f"the service kept asking for fewer requests during the {WAIT_IN_ALL.days} days since {since:%Y-%m-%d %H:%M} UTC"
    if record.round >= ROUNDS_MAX:
        return f"{record.round} jobs of the run ended for lack of capacity"
    return None


def may_wait(record: RunRecord, now: datetime) -> bool:
    """Whether the run may keep looking for room: it was not cancelled, and has not looked for too long."""
    return record.cancel_requested_at is None and reason_to_give_up(record, now) is None


def is_resting(record: RunRecord, now: datetime) -> bool:
    """Whether the run waits before a retry, outside the queue."""
    waiting = record.admission.waiting
    return waiting is not None and waiting.rests and waiting.not_before > now


def with_refused_candidate(record: RunRecord, candidate: Candidate, outcome: str, now: datetime) -> RunRecord:
    """The record with a candidate that the service refused. `WAIT_IN_ALL` counts from the first refusal."""
    record = _with_answer(with_try(record, candidate, outcome, now))
    since = record.admission.refused_since or now
    return replace(record, admission=replace(record.admission, refused_since=since))


def with_rate_limit(record: RunRecord, now: datetime) -> RunRecord:
    """The record of a run that was asked to send fewer requests. `WAIT_IN_ALL` counts until another answer arrives."""
    since = record.admission.rate_limited_since or now
    return replace(_with_answer(record), admission=replace(record.admission, rate_limited_since=since))


def with_unanswered_submission(
    record: RunRecord, candidate: Candidate, outcome: str, now: datetime
) -> RunRecord:
    """The record with one more submission that may or may not have created a job."""
    submission = with_try(record, candidate, outcome, now).submission
    return replace(record, submission=replace(submission, unanswered=submission.unanswered + 1))


def _with_answer(record: RunRecord) -> RunRecord:
    return replace(record, submission=replace(record.submission, unanswered=0))


def with_try(record: RunRecord, candidate: Candidate, outcome: str, now: datetime) -> RunRecord:
    """The record with a candidate that had no room for the run; only the last TRIES_KEPT are kept."""
    one = RefusedCandidate(
        candidate=candidate.number, text=candidate.text, at=now, outcome=short_reason(outcome)
    )
    tries = (*record.submission.tries, one)[-TRIES_KEPT:]
    return replace(record, submission=replace(record.submission, tries=tries))


def waits(record: RunRecord, waiting: Waiting, *, candidate: int, now: datetime, attempt: str) -> RunRecord:
    """The record of a run that starts or continues to wait. It holds no lease and no slots meanwhile."""
    if record.state is not RunState.WAITING:
        record = with_state(record, RunState.WAITING, entered_at=now, now=now, attempt=attempt)
    admission = replace(record.admission, waiting=waiting, slots=())
    if not waiting.rate_limited:
        admission = replace(admission, rate_limited_since=None)
    submission = replace(record.submission, lease=None, candidate=candidate)
    return replace(record, admission=admission, submission=submission, updated_at=now, attempt=attempt)


def attempts_of(record: RunRecord) -> int:
    """How often all candidates were tried: as counted while the run waits, before that by stockouts of the last one."""
    if record.admission.waiting is not None:
        return record.admission.waiting.attempts
    return _stockouts_of_last(record.submission.abandoned_jobs, candidates_of(record))


def _stockouts_of_last(abandoned: Sequence[AbandonedJob], candidates: Sequence[Candidate]) -> int:
    return sum(job.candidate == len(candidates) - 1 and not job.was_lost for job in abandoned)


def stocked_out(
    record: RunRecord,
    job: RecordedJob,
    reason: str,
    *,
    now: datetime,
    attempt: str,
    why: str = NO_CAPACITY,
    cost: Decimal | None = None,
) -> RunRecord:
    """The record of a run whose job ended for lack of capacity: the job is abandoned, the next candidate due at once.

    After the last candidate the first is due again, after a pause. The lease stays: the attempt that holds it may be
    about to record the same job. `why` and `cost` are the abandoned job's.

    Raises:
        ValueError: the run has ended.
    """
    known = with_job(record, job, now=now, attempt=attempt)
    candidates, candidate = candidates_of(record), current_candidate(record)
    what = "ended for lack of capacity" if why == NO_CAPACITY else "was given up"
    known = with_refused_candidate(known, candidate, f"the job {what}: {reason}", now)
    name = known.job.name if known.job is not None else job.name
    gone = AbandonedJob(
        job=name, candidate=candidate.number, reason=short_reason(reason), at=now, why=why, cost=cost
    )
    abandoned = (*record.submission.abandoned_jobs, gone)
    last, attempts = candidate.number + 1 >= len(candidates), _stockouts_of_last(abandoned, candidates)
    waiting = Waiting(
        reason=f"there was no capacity for the job: {short_reason(reason)}",
        attempts=attempts,
        not_before=now + back_off(attempts) if last else now,
    )
    back = with_state(known, RunState.WAITING, entered_at=now, now=now, attempt=attempt)
    submission = replace(
        back.submission,
        lease=record.submission.lease,
        candidate=0 if last else candidate.number + 1,
        abandoned_jobs=abandoned,
        giving_up=None,
        not_started_logged_at=None,
    )
    admission = replace(back.admission, slots=(), waiting=waiting)
    return replace(back, job=None, progress=None, admission=admission, submission=submission)
