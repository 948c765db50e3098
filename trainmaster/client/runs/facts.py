"""Facts about a run, computed from its record alone."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from trainmaster.client.terminal import plural
from trainmaster.orchestrator.core.admission.candidates import Candidate, current_candidate
from trainmaster.orchestrator.core.job_names import JobKind, job_kind
from trainmaster.orchestrator.core.requests.script import INSTALLED
from trainmaster.orchestrator.core.requests.spec import Script
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.job import OVERRAN, TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

TIMED_OUT = "timed_out"
"""What a run is called whose timeout cancelled its job: Vertex AI has no state for that."""
EARLY_ENDS = frozenset({RunState.CANCELLED, RunState.FAILED})
"""The service may not have seen the last metrics of such a run."""
SHOWN_STATES = (*(state.value for state in RunState), TIMED_OUT)


def candidate_of(record: RunRecord) -> Candidate | None:
    """The candidate that runs, or is submitted next; None for a rejected run."""
    return None if record.request is None else current_candidate(record)


def installed_uri(record: RunRecord) -> str | None:
    """The list of the packages with which the script runs; of a tuning that of its first trial. None before the start."""
    candidate, job = candidate_of(record), record.job
    if candidate is None or job is None or job.start_time is None:
        return None
    is_script = isinstance(candidate.spec.cluster.chief.program, Script)
    return f"{record.output_uri}{'/1' if is_tuning(record) else ''}/{INSTALLED}" if is_script else None


def cost_so_far(record: RunRecord, now: datetime) -> Decimal | None:
    """About what a running run has cost: its jobs before, and its estimated price per hour since its job's start.

    None if unknown.
    """
    estimate = record.request.estimate if record.request else None
    started = record.job.start_time if record.job else None
    if record.ended or estimate is None or estimate.per_hour is None or started is None:
        return None
    earlier = sum((job.cost or Decimal(0) for job in record.submission.abandoned_jobs), Decimal(0))
    return earlier + estimate.per_hour * Decimal(max((now - started).total_seconds(), 0)) / 3600


def lacks_model(record: RunRecord) -> bool:
    """Whether the run succeeded and left no model: it is an evaluation, or saved its model where nothing looks."""
    return record.state is RunState.SUCCEEDED and record.model is None and not record.cleaned


def log_says_more(row: IndexRow) -> bool:
    """Whether a list reads the run's log too: it trains, or it ended early and has no metrics on record."""
    is_early = row.state in EARLY_ENDS and not row.metrics
    is_training = row.job_kind is JobKind.CUSTOM and row.job_id is not None
    return is_training and (is_early or row.state is RunState.RUNNING)


def has_timed_out(record: RunRecord) -> bool:
    """Whether its timeout cancelled the run's job."""
    if record.job is None or record.state is not RunState.CANCELLED:
        return False
    # Imported late: it reads models too, and few runs are cancelled.
    from trainmaster.orchestrator.core.completion.outcome import overrun_timeout_s

    return overrun_timeout_s(record, record.job) is not None


def state_of(run: RunRecord | IndexRow) -> str:
    """The run's state for people and filters; one that ran out of time is `timed_out`, though its state is `cancelled`."""
    if isinstance(run, RunRecord):
        timed_out = has_timed_out(run)
    else:
        timed_out = run.state is RunState.CANCELLED and (run.reason or "").startswith(OVERRAN)
    return TIMED_OUT if timed_out else run.state.value


def is_tuning(record: RunRecord) -> bool:
    """Whether the run has, or had, a tuning job."""
    return record.job is not None and job_kind(record.job.name) is JobKind.TUNING


def is_active_tuning(record: RunRecord) -> bool:
    """Whether the run has a tuning job and has not ended."""
    return not record.ended and is_tuning(record)


def trials_text(record: RunRecord) -> str:
    """How far an active tuning is: `3 of 6 trials ended`; empty before its first trial, and for any other run."""
    trials = record.progress.trials if record.progress and not record.ended else None
    tuning = record.request.document.get("tuning") if record.request else None
    planned = tuning.get("max_trials") if isinstance(tuning, Mapping) else None
    if not trials or not isinstance(planned, int):
        return ""
    ended = sum(trials.get(state.value, 0) for state in TrialState if state.ended)
    return f"{ended} of {plural(planned, 'trial')} ended"
