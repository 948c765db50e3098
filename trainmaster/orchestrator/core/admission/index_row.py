"""A run's row in the index: it shows the candidate that was submitted last, or that is submitted next."""

from dataclasses import replace

from trainmaster.orchestrator.core.admission.candidates import current_candidate
from trainmaster.orchestrator.core.admission.start_deadline import queued_job
from trainmaster.orchestrator.core.job_names import job_id, job_kind, job_region
from trainmaster.orchestrator.core.runs import index
from trainmaster.orchestrator.core.runs.drop_status import reason_of
from trainmaster.orchestrator.core.runs.record import RunRecord, metrics_of
from trainmaster.orchestrator.core.runs.states import RunState


def index_row_of(record: RunRecord, generation: int) -> index.IndexRow:
    """The row of this generation of the record."""
    source, job_end = record.source, record.job.end_time if record.job else None
    waiting = record.admission.waiting
    row = index.IndexRow(
        run_id=record.run_id,
        created_at=record.history[0].at,
        state=record.state,
        source=source.kind,
        generation=generation,
        updated_at=record.updated_at,
        ended_at=(job_end or record.history[-1].at) if record.ended else None,
        team=source.team,
        model_name=record.model_name,
        retry_at=waiting.not_before if waiting is not None and waiting.rests else None,
        reason=_reason(record),
        sent_by=source.sent_by.name[: index.VALUE_MAX_CHARS] if source.sent_by else None,
        commit=source.commit.id if source.commit else None,
        dirty=bool(source.commit and source.commit.dirty),
        group=source.group.id if source.group else None,
        metrics=index.bounded_metrics(metrics_of(record)),
    )
    return _with_job(_with_request(row, record), record)


def _reason(record: RunRecord) -> str | None:
    reason = reason_of(record)
    if record.state is RunState.REJECTED and record.problems:
        reason = record.problems[0]
    elif record.state is RunState.SUCCEEDED and record.model is None and record.tuning is None:
        only = ", only metrics" if record.progress and record.progress.metrics else ""
        reason = f"{index.NO_MODEL}{only}"
    elif record.state is RunState.SUCCEEDED:
        # Without those of the steps after the end, which come last: the row is written before such a step is given up.
        failed = (record.completion.steps_failed or {}) if record.completion is not None else {}
        given_up = sum(step.next_at is None for step in failed.values())
        reason = next(reversed(record.problems[: len(record.problems) - given_up]), reason)
    return index.bounded_text(reason) if reason is not None else None


def _with_request(row: index.IndexRow, record: RunRecord) -> index.IndexRow:
    """With the candidate that runs or runs next, and what it was estimated to cost."""
    if record.request is None:
        return row
    candidate, estimate = current_candidate(record), record.request.estimate
    spec = candidate.spec
    labels = index.bounded_labels(spec.labels)
    return replace(
        row,
        job_kind=spec.kind,
        region=candidate.region,
        machines=index.bounded_text(candidate.machines),
        priority=spec.priority,
        labels=labels,
        labels_left_out=len(spec.labels) - len(labels),
        args=index.bounded_args(spec.cluster.chief.program.args),
        currency=(estimate.currency or None) if estimate else None,
        per_hour=estimate.per_hour if estimate else None,
        at_most=estimate.at_most if estimate else None,
        prices_unknown=bool(estimate and estimate.unknown),
    )


def _with_job(row: index.IndexRow, record: RunRecord) -> index.IndexRow:
    if record.job is not None:
        name = record.job.name
        row = replace(row, job_kind=job_kind(name), job_id=job_id(name), region=job_region(name))
    if record.state is RunState.SUBMITTED:
        row = replace(row, queued=queued_job(record))
    cost = record.completion.cost if record.completion else None
    return replace(row, cost=cost.total) if cost is not None else row
