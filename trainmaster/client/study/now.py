"""A tuning that has not ended, as the training service reports it now.

Vertex AI logs nothing about a tuning job itself when it starts or a trial ends, so the record follows with the next tick.
"""

from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from trainmaster.client.errors import service_errors
from trainmaster.client.find import Run
from trainmaster.client.runs.facts import is_active_tuning
from trainmaster.client.study.read import study_of
from trainmaster.client.study.study import Study
from trainmaster.client.times import moment_of
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.runs.job import BestTrial, Job, JobState, Progress, TrialState
from trainmaster.orchestrator.core.runs.moves import with_job

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


def tuning_now(clients: "Clients", run: Run, now: datetime) -> Run | None:
    """The run with the state and the trials that its tuning job has now; its document stays the record that was read.

    None if it is no active tuning, or its job cannot be read. Costs one read of the job, and for any other run nothing.
    """
    record = run.record
    if record.job is None or not is_active_tuning(record):
        return None
    jobs = clients.jobs_of_region(job_region(record.job.name))
    try:
        found = jobs.get_hyperparameter_tuning_job(name=record.job.name)
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
