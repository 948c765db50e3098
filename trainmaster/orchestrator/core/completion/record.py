"""The record with the run's end written in."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from trainmaster.orchestrator.core.completion.outcome import Outcome
from trainmaster.orchestrator.core.runs.job import Failure, Job
from trainmaster.orchestrator.core.runs.moves import moved, with_job
from trainmaster.orchestrator.core.runs.outcome import Completion, EndReport
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState


def settled(
    record: RunRecord, job: Job, outcome: Outcome, *, report: EndReport, now: datetime, attempt: str
) -> RunRecord:
    """The ended record.

    Raises:
        ValueError: the record had ended before.
    """
    known = with_job(record, job, now=now, attempt=attempt)
    ended = moved(known, outcome.state, entered_at=now, now=now, attempt=attempt)
    return replace(
        ended,
        model=outcome.model,
        tuning=outcome.tuning,
        failure=outcome.failure,
        problems=(*record.problems, *outcome.problems),
        completion=Completion(reported_by=report, durations_s=durations_s(record.source.event_time, job)),
    )


def seen_going_on(record: RunRecord, job: Job, *, now: datetime, attempt: str) -> RunRecord | None:
    """The record with what the job's times newly prove; None when they prove nothing new."""
    known = with_job(record, job, now=now, attempt=attempt)
    return known if known.state is not record.state else None


def durations_s(asked_at: datetime, job: Job) -> Mapping[str, float]:
    """Seconds from the request to the job, in the queue, at work, and over all; only those that are known."""
    marks = (
        ("until_job", asked_at, job.create_time),
        ("queued", job.create_time, job.start_time),
        ("running", job.start_time, job.end_time),
        ("total", asked_at, job.end_time),
    )
    return {
        name: round((end - start).total_seconds(), 3)
        for name, start, end in marks
        if start is not None and end is not None
    }


def job_vanished(
    record: RunRecord, failure: Failure, *, report: EndReport, now: datetime, attempt: str
) -> RunRecord:
    """The record of a run whose job is no longer there to be asked."""
    ended = moved(record, RunState.FAILED, entered_at=now, now=now, attempt=attempt)
    return replace(ended, failure=failure, completion=Completion(reported_by=report))
