"""The stages that a run passes, from its event to its closed record.

Each time is taken from the service that knows it best: the event, the record's history, the job, its log.
Nothing is timed by this program's own clock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from trainmaster.client.study.study import Study, counts
from trainmaster.client.terminal import plural
from trainmaster.client.watch.sighting import Sighting
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.runs.record import RunRecord, Source
from trainmaster.orchestrator.core.runs.states import RunState

ABANDONED, WAITING, SUBMITTED, RUNNING = "Job lost or given up", "Waiting", "Job submitted", "Job running"
LAST_TRIAL_ENDED = "Last trial ended"
ABANDONED_SHOWN = 3
MODEL_EXPORTED, JOB_ENDED = "Model exported", "Job ended"
AFTER_TRAINING = frozenset({LAST_TRIAL_ENDED, MODEL_EXPORTED, JOB_ENDED})
"""Titles of stages that follow the progress of replicas and trials."""
OF_EACH_JOB = frozenset({ABANDONED, WAITING, SUBMITTED, RUNNING})
"""Titles of stages that the run passes again with its next job."""


@dataclass(frozen=True, kw_only=True)
class RunStage:
    """One step of a run; `at` is None until it is passed."""

    title: str
    at: datetime | None = None
    detail: str = ""


def timeline(seen: Sighting) -> Sequence[RunStage]:
    """The stages of the run, in order. Stages that will not be passed any more are left out."""
    stages = [*_before_job(seen), *_job(seen), _end(seen)]
    return [stage for stage in stages if stage.at is not None or not seen.run.record.ended]


def _before_job(seen: Sighting) -> Iterator[RunStage]:
    record = seen.run.record
    yield _event(record.source)
    yield RunStage(title="Run reserved", at=_last_time_of(record, RunState.RESERVED), detail=record.run_id)
    for job in record.submission.abandoned_jobs[-ABANDONED_SHOWN:]:
        yield RunStage(title=ABANDONED, at=job.at, detail=f"{job_id(job.job)}: {job.reason}")
    waited = _last_time_of(record, RunState.WAITING)
    if waited is not None:
        waiting = record.admission.waiting
        yield RunStage(title=WAITING, at=waited, detail=waiting.reason if waiting else "")
    submitted = None if record.job is None else _last_time_of(record, RunState.SUBMITTED)
    yield RunStage(title=SUBMITTED, at=submitted, detail=seen.job_name)


def _event(source: Source) -> RunStage:
    if source.rule_id is not None:
        detail = f"{source.rule_id}, firing {source.firing}"
        return RunStage(title="Rule fired", at=source.event_time, detail=detail)
    if source.message_id is not None:
        return RunStage(title="Message published", at=source.event_time, detail=source.message_id)
    return RunStage(title="Request uploaded", at=source.event_time, detail=source.uri or "")


def _job(seen: Sighting) -> Iterator[RunStage]:
    if seen.study is None:
        training = seen.training
        under = f" under {training.strategy}" if training.strategy else ""
        replicas = ", ".join(sorted(replica.replica for replica in training.replicas.values()))
        yield RunStage(title=RUNNING, at=seen.job_started_at, detail=replicas + under)
        if seen.exported_at is not None:
            yield RunStage(title=MODEL_EXPORTED, at=seen.exported_at, detail=seen.exported_to)
    else:
        yield from _trials(seen, seen.study)
    yield RunStage(title=JOB_ENDED, at=seen.job_ended_at, detail=seen.job_state or "")
    yield RunStage(
        title="Last log line", at=seen.last_line_at, detail=seen.service_line if seen.last_line_at else ""
    )


def _trials(seen: Sighting, study: Study) -> Iterator[RunStage]:
    starts = [trial.start_time for trial in study.trials if trial.start_time]
    ends = [trial.end_time for trial in study.trials if trial.end_time]
    is_over = bool(ends) and len(ends) == len(study.trials)
    is_over = is_over and (len(ends) == study.max_trials or bool(seen.job_ended_at))
    parallel = f"{plural(study.max_trials, 'trial')}, {seen.parallel_trials} at a time"
    yield RunStage(title="First trial started", at=min(starts, default=None), detail=parallel)
    yield RunStage(title=LAST_TRIAL_ENDED, at=max(ends) if is_over else None, detail=counts(study.trials))


def _end(seen: Sighting) -> RunStage:
    record = seen.run.record
    if not record.ended:
        return RunStage(title="Record closed")
    model = f": {record.model.uri}" if record.model else ""
    return RunStage(title="Record closed", at=record.history[-1].at, detail=f"{record.state}{model}")


def _last_time_of(record: RunRecord, state: RunState) -> datetime | None:
    """When the record last entered `state`: the times before are those of earlier jobs."""
    return next((step.at for step in reversed(record.history) if step.state is state), None)
