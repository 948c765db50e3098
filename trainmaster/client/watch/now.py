"""A run as it is now, or was before it ended early: a tuning as the training service reports it, others as their logs do.

Vertex AI logs nothing about a tuning job itself when it starts or a trial ends, so the record follows with the next tick.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice

from trainmaster.client.clients import Clients
from trainmaster.client.errors import service_errors
from trainmaster.client.find import Run
from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress
from trainmaster.client.logs.read import JobLogReader
from trainmaster.client.runs.facts import EARLY_ENDS, is_active_tuning, is_tuning, log_says_more
from trainmaster.client.study.read import study_of
from trainmaster.client.study.study import Study
from trainmaster.client.times import moment_of
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.job import BestTrial, Job, JobState, Progress, TrialState
from trainmaster.orchestrator.core.runs.moves import with_job
from trainmaster.orchestrator.core.runs.record import metrics_of
from trainmaster.orchestrator.core.runs.states import RunState

LINES_READ = 500
"""Of the end of a log, in one request."""
LOGS_READ = 50
"""Of the newest runs in a list, in one request."""


def run_now(clients: Clients, run: Run, now: datetime) -> Run:
    """The run with its present progress, or if it ended early and has no metrics on record, with the last of its log.

    Costs at most one read of its job or its log, and nothing for any other run.
    """
    record = run.record
    is_settled = record.state not in EARLY_ENDS or is_tuning(record) or bool(metrics_of(record))
    if record.job is None or (record.ended and is_settled):
        return run
    if is_active_tuning(record):
        return tuning_now(clients, run, now) or run
    job = job_id(record.job.name)
    return with_progress(run, _logged_progress(clients, [job], record.history[0].at)[job])


def _logged_progress(
    clients: Clients, jobs: Sequence[str], since: datetime
) -> defaultdict[str, TrainingProgress]:
    """What the end of the jobs' logs reports, by job id; nothing where it cannot be read: `logs` says why."""
    found = defaultdict[str, TrainingProgress](TrainingProgress)
    with suppress(*service_errors()):
        for line in JobLogReader(clients.logs, since).last(jobs, LINES_READ)[0]:
            found[line.job_id] = found[line.job_id].after(line)
    return found


def with_progress(run: Run, training: TrainingProgress) -> Run:
    """The run with the progress of its furthest replica, in the record and in the document. `metrics.json` counts more."""
    furthest, record = training.furthest, run.record
    if furthest is None or is_tuning(record) or (record.ended and record.state not in EARLY_ENDS):
        return run
    at, share = furthest.last[0] if furthest.last else None, furthest.share
    left_s = (furthest.end - at).total_seconds() if furthest.end and at else None
    known = record.progress or Progress()
    progress = replace(known, metrics={**furthest.metrics, **(known.metrics or {})})
    if not record.ended:
        progress = replace(
            progress,
            progress_percentage=None if share is None else int(100 * share),
            estimated_remaining_seconds=None if left_s is None else max(round(left_s), 0),
            last_updated_time=at,
        )
    document = run.document | {"progress": encoded(progress)}
    return replace(run, document=document, record=replace(record, progress=progress))


def read_progress(clients: Clients, rows: Sequence[IndexRow]) -> Mapping[str, Progress]:
    """What the end of their logs reports of the runs of which `log_says_more`, by run id.

    Costs one read of at most LINES_READ lines together, and nothing if there are no such runs.
    """
    jobs = {row.job_id or "": row for row in islice(filter(log_says_more, rows), LOGS_READ)}
    if not jobs:
        return {}
    trainings = _logged_progress(clients, [*jobs], min(row.created_at for row in jobs.values()))
    found = ((jobs[job], training.furthest) for job, training in trainings.items())
    return {row.run_id: _progress_at(each, row.state) for row, each in found if each is not None}


def _progress_at(furthest: ReplicaProgress, state: RunState) -> Progress:
    share = furthest.share if state is RunState.RUNNING else None
    done = None if share is None else int(100 * share)
    return Progress(progress_percentage=done, metrics=furthest.metrics)


def tuning_now(clients: Clients, run: Run, now: datetime) -> Run | None:
    """The run with the state and the trials that its tuning job has now; its document stays the record that was read.

    None if it is not an active tuning, or its job cannot be read. Costs one read of the job, and for any other run nothing.
    """
    record = run.record
    if record.job is None or not is_active_tuning(record):
        return None
    try:
        found = clients.read_job(record.job.name)
    except service_errors():
        return None  # what is on record is shown; `study` says why
    job = Job(
        name=record.job.name,
        state=_state(found.state.name),
        create_time=moment_of(found.create_time),
        start_time=moment_of(found.start_time),
        end_time=moment_of(found.end_time),
    )
    known = with_job(record, job, now=now, attempt=record.attempt)
    return replace(run, record=replace(known, progress=_progress(study_of(found)) or record.progress))


def _state(name: str) -> JobState:
    try:
        return JobState(name)
    except ValueError:  # younger than this package
        return JobState.UNSPECIFIED


def _progress(study: Study) -> Progress | None:
    if not study.trials:
        return None
    best, reached = study.best, None
    if best is not None and best.result is not None:
        reached = BestTrial(
            id=best.id, metric=study.metric, goal=study.goal, value=best.result, parameters=best.parameters
        )
    counts = Counter(trial.state.value for trial in study.trials)
    return Progress(
        trials={state.value: counts[state.value] for state in TrialState if counts[state.value]},
        best_trial=reached,
    )
