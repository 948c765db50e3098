"""A run's progress, its outcome and its record, from its job's state and its model directory."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.orchestrator.core.completion.explanation import without_log_link
from trainmaster.orchestrator.core.completion.model import (
    METRICS_NAME,
    FoundModel,
    ModelDirectory,
    find_first_model,
    parse_metrics,
)
from trainmaster.orchestrator.core.completion.trials import (
    best_measurement,
    best_trial,
    recorded_trials,
    why_no_best,
)
from trainmaster.orchestrator.core.names import model_uri
from trainmaster.orchestrator.core.requests.placeholders import MODEL_URI, RUN_ID, find_names
from trainmaster.orchestrator.core.requests.spec import JobSpec, Scheduling, spec_of
from trainmaster.orchestrator.core.runs.end import Completion, EndReport, TuningResult
from trainmaster.orchestrator.core.runs.job import (
    OVERRAN,
    Failure,
    Job,
    JobState,
    Progress,
    RecordedJob,
    trials_by_state,
)
from trainmaster.orchestrator.core.runs.moves import with_job, with_state
from trainmaster.orchestrator.core.runs.record import AcceptedRequest, RunRecord
from trainmaster.orchestrator.core.runs.states import END_OF, RunState

ERROR_DELAY = timedelta(seconds=90)
"""A failed job's `error` appears up to about a minute after its end.

Source: https://cloud.google.com/vertex-ai/docs/training/understanding-training-service
"""

NO_REQUEST = "no model was looked for: the record has no request, which says where the model is"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the run ended: its final state, its model with the problems that a user should know, and its error."""

    state: RunState
    found: FoundModel
    tuning: TuningResult | None = None
    failure: Failure | None = None


def error_still_due(job: Job, now: datetime) -> bool:
    """Whether a failed job's error may still appear."""
    if job.state is not JobState.FAILED or job.error is not None or job.end_time is None:
        return False
    return now - job.end_time < ERROR_DELAY


def outcome_of(
    job: Job,
    directories: Sequence[ModelDirectory],
    export_schema: Mapping[str, Any],
    spec: JobSpec | None,
) -> Outcome | None:
    """The outcome; None while the job runs. `directories` are those at `model_locations`, up to the first model."""
    state = END_OF.get(job.state)
    if state is None:
        return None
    tuning = spec.tuning if spec is not None else None
    best = best_trial(job.trials, tuning) if tuning is not None else None
    found, failure = FoundModel(model=None, problems=(NO_REQUEST,)), _failure(state, job)
    if directories and spec is not None:
        measured = best_measurement(job.trials, best, tuning) if tuning is not None and best else None
        found = find_first_model(directories, export_schema, measured=measured)
    if tuning is not None:
        if best is None:
            found = FoundModel(model=None, problems=(why_no_best(job.trials, tuning),))
        else:
            best = replace(best, model_uri=found.model.uri if found.model else None)
        result = TuningResult(trials=recorded_trials(job.trials, tuning), best_trial=best)
        return Outcome(state=state, found=found, tuning=result, failure=failure)
    if found.model is None and state is not RunState.SUCCEEDED:
        found = replace(found, problems=())  # no model is expected of such a run
    return Outcome(state=state, found=found, failure=failure)


def _failure(state: RunState, job: Job) -> Failure | None:
    if state is RunState.FAILED and job.error is None:
        return Failure(message="Vertex AI gives no reason; the job's log may.")
    if job.error is None:
        return None
    return replace(job.error, message=without_log_link(job.error.message))


EXHAUSTED, UNAVAILABLE = 8, 14
"""google.rpc.Code: https://cloud.google.com/apis/design/errors#handling_errors"""
OF_THE_REQUEST = (3, 5, 6, 7, 11, 12, 16)
"""Codes that blame the request; their messages quote it, including image names.

9, FAILED_PRECONDITION, is not one of them: the service also reports an exhausted quota with it.
"""
_WITHOUT_SUCCESS = (JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED)
_WORDS = re.compile(
    r"Resources are insufficient in region|ZONE_RESOURCE_POOL_EXHAUSTED|quota metrics exceed", re.IGNORECASE
)
"""The service's messages about a stockout, as users quoted them in public threads in 2026; they are undocumented."""


def stockout_of(job: Job, scheduling: Scheduling | None = None) -> str | None:
    """The service's reason why the job got no capacity; None for a job that ran, or that ended in another way.

    The times decide first, then the code, and last the message: a program may print any text, but only once it runs.
    `scheduling` is the job's own. How a flexible start ends that found no machines is not documented, so its state,
    its message and most codes do not matter.
    """
    if job.has_started:
        return None
    code, message = (job.error.code, job.error.message) if job.error is not None else (0, "")
    if code in OF_THE_REQUEST:
        return None
    if job.state in _WITHOUT_SUCCESS and scheduling is not None and _waited_in_vain(job, scheduling):
        return message or "it did not start within its max_wait_s"
    if job.state is not JobState.FAILED or job.error is None:
        return None
    return message if code in (EXHAUSTED, UNAVAILABLE) or _WORDS.search(message) else None


def _waited_in_vain(job: Job, scheduling: Scheduling) -> bool:
    """Whether a flexible start ended after its longest wait; 0 seconds never end."""
    longest_s = scheduling.longest_wait_s
    if not scheduling.flex_start or not longest_s or job.create_time is None or job.end_time is None:
        return False
    return (job.end_time - job.create_time).total_seconds() >= longest_s


def record_of_end(
    record: RunRecord, job: Job, outcome: Outcome, *, report: EndReport, now: datetime, attempt: str
) -> RunRecord:
    """The ended record.

    Raises:
        ValueError: the record had already ended.
    """
    known = with_job(record, job, now=now, attempt=attempt)
    progress = Progress(metrics=outcome.found.metrics) if outcome.found.metrics else record.progress
    ended = with_state(known, outcome.state, entered_at=now, now=now, attempt=attempt)
    return replace(
        ended,
        progress=None if outcome.tuning or outcome.found.model else progress,
        model=outcome.found.model,
        tuning=outcome.tuning,
        failure=_reason(record, job, outcome),
        problems=(*record.problems, *outcome.found.problems),
        completion=Completion(reported_by=report, durations_s=durations_s(record.source.event_time, job)),
    )


def _reason(record: RunRecord, job: Job, outcome: Outcome) -> Failure | None:
    """The failure; of a cancelled run who cancelled it and when, and what the service says."""
    failure, asked_at = outcome.failure, record.cancel_requested_at
    if outcome.state is not RunState.CANCELLED:
        return failure
    timeout_s = overrun_timeout_s(record, job)
    if timeout_s is not None:
        message = f"{OVERRAN} of {timeout_s} s"
    elif asked_at is not None:
        by = f" by {record.cancel_requested_by.name}" if record.cancel_requested_by else ""
        message = f"its cancellation was requested at {asked_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC{by}"
    else:
        message = "its job was cancelled outside Trainmaster"
    said = f". Vertex AI says: {failure.message}" if failure and failure.message else ""
    return replace(failure or Failure(message=""), message=f"{message}{said}")


def overrun_timeout_s(record: RunRecord, job: RecordedJob) -> int | None:
    """The run's timeout if its cancelled job ran that long: Vertex AI cancels such a job, and has no state for it.

    None for a tuning, whose trials have the timeout.
    """
    spec = spec_of(record)
    timeout_s = spec.scheduling.timeout_s if spec is not None and spec.tuning is None else None
    if job.state is not JobState.CANCELLED or timeout_s is None or not (job.start_time and job.end_time):
        return None
    return timeout_s if job.end_time - job.start_time >= timedelta(seconds=timeout_s) else None


def metrics_uri(job: Job, request: AcceptedRequest, spec: JobSpec) -> str | None:
    """Where the running job may have written its metrics; None if there is nothing to read.

    The service reports a tuning's metrics. Directories that runs share are excluded: they may hold an earlier run's
    metrics.
    """
    if spec.tuning is not None or job.start_time is None:
        return None
    named = request.model_uri
    is_own = named is not None and RUN_ID in find_names(str(request.document.get(MODEL_URI, "")))
    directory = named if named is not None and is_own else model_uri(request.output_uri)
    parent, _, last = directory.rstrip("/").rpartition("/")
    is_file = is_own and "." in last
    return f"{parent}/{METRICS_NAME}" if is_file else f"{parent}/{last}/{METRICS_NAME}"


def progress_of(job: Job, spec: JobSpec, written: bytes | None) -> Progress | None:
    """The job's progress; None if it is not known. `written` is the content of metrics.json.

    An invalid metrics.json is ignored here; if it is still invalid when the run ends, the record names the problem.
    """
    if spec.tuning is not None:
        best = best_trial(job.trials, spec.tuning)
        return Progress(trials=trials_by_state(job.trials), best_trial=best) if job.trials else None
    metrics = parse_metrics(written)
    return Progress(metrics=metrics) if metrics else None


def with_progress(
    record: RunRecord, job: Job, *, now: datetime, attempt: str, progress: Progress | None
) -> RunRecord | None:
    """The running job's record with its new state and progress; None if neither changed."""
    known = with_job(record, job, now=now, attempt=attempt)
    known = replace(known, progress=progress or record.progress)
    is_new = known.state is not record.state or known.progress != record.progress
    return known if is_new else None


def durations_s(asked_at: datetime, job: Job) -> Mapping[str, float]:
    """Seconds from the request to the job's creation, in the queue, running, and in total; only those that are known."""
    marks = (
        ("until_job", asked_at, job.create_time),
        ("queued", job.create_time, job.start_time),
        ("running", job.start_time, job.end_time),
        ("total", asked_at, job.end_time),
    )
    return {name: round((end - start).total_seconds(), 3) for name, start, end in marks if start and end}


def job_vanished(
    record: RunRecord, failure: Failure, *, report: EndReport, now: datetime, attempt: str
) -> RunRecord:
    """The record of a run whose job no longer exists."""
    ended = with_state(record, RunState.FAILED, entered_at=now, now=now, attempt=attempt)
    return replace(ended, failure=failure, completion=Completion(reported_by=report))
