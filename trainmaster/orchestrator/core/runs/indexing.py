"""What the index shows of a run: its record, and the candidate that runs or runs next."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.orchestrator.core.job_names import JobKind, job_id, job_kind, job_region
from trainmaster.orchestrator.core.runs.drop_status import reason_of
from trainmaster.orchestrator.core.runs.index_row import IndexRow, bounded_labels, bounded_text
from trainmaster.orchestrator.core.runs.record import Estimate, RunRecord
from trainmaster.orchestrator.core.runs.states import RunState


@dataclass(frozen=True, kw_only=True)
class IndexedJob:
    """The job of the candidate that runs or runs next. `machines`: which, and on which terms, for people."""

    kind: JobKind
    region: str
    machines: str
    priority: int
    labels: Mapping[str, str]


def index_row_of(record: RunRecord, generation: int, job: IndexedJob | None) -> IndexRow:
    """The row of this generation of the record; `job` is None for a run without a request."""
    row = IndexRow(
        run_id=record.run_id,
        created_at=record.history[0].at,
        state=record.state,
        source=record.source.kind,
        generation=generation,
        updated_at=record.updated_at,
        ended_at=_ended_at(record),
        team=record.source.team,
        model_name=record.model_name,
        reason=_reason(record),
    )
    return _with_job(_with_request(row, record, job), record)


def _ended_at(record: RunRecord) -> datetime | None:
    if not record.ended:
        return None
    return (record.job.end_time if record.job is not None else None) or record.history[-1].at


def _reason(record: RunRecord) -> str | None:
    reason = reason_of(record)
    if record.state is RunState.REJECTED and record.problems:
        reason = record.problems[0]
    elif record.state is RunState.SUCCEEDED and (problems := _problems_at_end(record)):
        reason = problems[-1]
    return bounded_text(reason) if reason is not None else None


def _problems_at_end(record: RunRecord) -> tuple[str, ...]:
    """Without those of the steps after the end, which come last: the row is written before such a step is given up."""
    failed = (record.completion.steps_failed or {}) if record.completion is not None else {}
    given_up = sum(each.next_at is None for each in failed.values())
    return record.problems[: len(record.problems) - given_up]


def _with_request(row: IndexRow, record: RunRecord, job: IndexedJob | None) -> IndexRow:
    if record.request is None or job is None:
        return row
    labels = bounded_labels(job.labels)
    estimate = record.request.estimate or Estimate(currency="")
    return replace(
        row,
        job_kind=job.kind,
        region=job.region,
        machines=bounded_text(job.machines),
        priority=job.priority,
        labels=labels,
        labels_left_out=len(job.labels) - len(labels),
        currency=estimate.currency or None,
        per_hour=estimate.per_hour,
        at_most=estimate.at_most,
        prices_unknown=bool(estimate.unknown),
    )


def _with_job(row: IndexRow, record: RunRecord) -> IndexRow:
    if record.job is None:
        return row
    name = record.job.name
    cost = record.completion.cost if record.completion is not None else None
    return replace(
        row,
        job_kind=job_kind(name),
        job_id=job_id(name),
        region=job_region(name),
        cost=cost.total if cost is not None else None,
    )
