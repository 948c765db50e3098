"""The status of a drop, as its user reads it: schemas/drop_status.v1.schema.json.

Several processes write a status, late and out of order. It never returns to an older generation of the drop or of its
record. A failed delivery stays in it until a later delivery has more to report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.documents.codec import decoded, encoded, parse_json, with_unknown
from trainmaster.orchestrator.core.documents.faults import Fault, plain
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.names import is_run_id, message_status_object, status_object
from trainmaster.orchestrator.core.runs.end import Model
from trainmaster.orchestrator.core.runs.job import BestTrial, Progress, trials_by_state
from trainmaster.orchestrator.core.runs.record import RunRecord, Source, short_reason
from trainmaster.orchestrator.core.runs.states import ENDS, RunState

RETRYING, DEAD_LETTER, HELD, IGNORED = "retrying", "dead_letter", "held", "ignored"
"""States of a drop that are not states of a run."""
PROBLEMS_MAX = 20
DELIVERIES_MAX = 50
"""After this many deliveries an event becomes a dead letter: trainmaster/deploy/topology.yaml."""


@dataclass(frozen=True, kw_only=True)
class Logs:
    """Where everything is that the job and its trials wrote: `gcloud logging read FILTER --project PROJECT`."""

    project: str
    filter: str


@dataclass(frozen=True, kw_only=True)
class DropStatus:
    """The status of a message, or of the latest drop under one name.

    `state` is the run's, or one of those above. `record_generation` is that of the record it was made from, or 0
    without one. `previous_run_id` is the run of the previous drop under the same name.
    """

    schema: str = "drop_status.v1"
    dropped_name: str | None = None
    generation: int | None = None
    repeated_by: int | None = None
    """The newest generation of the file that asked for the same again."""
    created_at: datetime | None = None
    """When the file was created or the message published."""
    message_id: str | None = None
    idempotency_key: str | None = None
    content_id: str | None = None
    """As in the record's source."""
    team: str | None = None
    state: str
    reason: str | None = None
    failed_deliveries: int | None = None
    """Deliveries of the event that failed since the last other change of the status."""
    run_id: str | None = None
    run_ids: tuple[str, ...] | None = None
    """All runs of a request with a matrix. What the status says besides is that of the first."""
    previous_run_id: str | None = None
    updated_at: datetime
    record_uri: str | None = None
    record_generation: int = 0
    job_name: str | None = None
    logs: Logs | None = None
    model_uri: str | None = None
    model_format: str | None = None
    metrics: Mapping[str, float] | None = None
    best_trial: BestTrial | None = None
    trials: Mapping[str, int] | None = None
    report_uri: str | None = None
    problems: tuple[str, ...] = ()
    faults: tuple[Mapping[str, object], ...] | None = None
    """Of a refused request the first PROBLEMS_MAX, as in its report."""

    @property
    def object_name(self) -> str:
        """The name of the status object in the ledger bucket."""
        return _status_object(self.dropped_name, self.message_id, self.idempotency_key, self.team)


def status_object_of(source: Source) -> str:
    """The name of the status object of a drop or message."""
    return _status_object(source.object_name, source.message_id, source.idempotency_key, source.team)


def _status_object(dropped: str | None, message_id: str | None, key: str | None, team: str | None) -> str:
    of_message = message_status_object(message_id or "", key, team)
    return of_message if dropped is None else status_object(dropped)


def status_of_source(source: Source, state: str, updated_at: datetime) -> DropStatus | None:
    """The status of a drop or message. None for a rule's firing, which the rule's status covers."""
    if source.object_name is None and source.message_id is None:
        return None
    return DropStatus(
        dropped_name=source.object_name,
        generation=source.generation,
        created_at=source.event_time,
        message_id=source.message_id,
        idempotency_key=source.idempotency_key,
        content_id=source.content_id,
        team=source.team,
        state=state,
        updated_at=updated_at,
    )


def status_of_run(record: RunRecord, version: int, record_uri: str, project: str) -> DropStatus | None:
    """The status of the drop that started the run; None if another run of its group shows it."""
    group = record.source.group
    status = status_of_source(record.source, record.state, record.updated_at)
    if status is None or (group is not None and group.number > 1):
        return None
    job, model, tuning, rejection = record.job, record.model, record.tuning, record.rejection
    reached = record.progress or Progress()
    if tuning is not None:  # how far the job was at its end
        reached = Progress(trials=trials_by_state(tuning.trials), best_trial=tuning.best_trial)
    if job is not None:
        job_filter = f'resource.type="ml_job" AND resource.labels.job_id="{job_id(job.name)}"'
        status = replace(status, job_name=job.name, logs=Logs(project=project, filter=job_filter))
    return replace(
        status,
        reason=reason_of(record),
        run_id=record.run_id,
        run_ids=group.run_ids if group is not None else None,
        record_uri=record_uri,
        record_generation=version,
        model_uri=model.uri if model is not None else None,
        model_format=model.format if model is not None else None,
        metrics=_metrics(reached, model) or None,
        best_trial=reached.best_trial,
        trials=reached.trials or None,
        report_uri=rejection.report_uri if rejection else None,
        problems=first_problems(record.problems),
        faults=rejection.faults if rejection else None,
    )


def _metrics(reached: Progress, model: Model | None) -> Mapping[str, float]:
    """The model's metrics; without a model, those that the job reported last."""
    best = reached.best_trial
    measured = {best.metric: best.value} if best is not None else {}
    return {**measured, **(model.metrics if model is not None else reached.metrics or {})}


def reason_of(record: RunRecord) -> str | None:
    """Why the run waits, was rejected or failed; None if it does none of these."""
    if record.admission.waiting is not None:
        return record.admission.waiting.reason
    if record.state is RunState.REJECTED:
        count = len(record.problems)
        faults = f"{count} faults, the first of them" if count > 1 else "one fault"
        return f"the request was rejected for {faults}: {record.problems[0]}"
    return record.failure.message if record.failure is not None else None


def first_problems(problems: Sequence[str]) -> tuple[str, ...]:
    """The first PROBLEMS_MAX, followed by how many more there are."""
    more = len(problems) - PROBLEMS_MAX
    return (*problems[:PROBLEMS_MAX], f"and {more} more") if more > 0 else tuple(problems)


def first_faults(faults: Sequence[Fault]) -> tuple[Mapping[str, object], ...]:
    """The first PROBLEMS_MAX, as entries of a report."""
    return tuple(fault.document for fault in faults[:PROBLEMS_MAX])


def parse_status(content: bytes) -> Mapping[str, Any]:
    """The status in an object's content; empty if the content is not one."""
    try:
        document = parse_json(content)
    except ValueError:
        return {}
    return document if isinstance(document, Mapping) and document.get("schema") == DropStatus.schema else {}


def shown_generation(present: Mapping[str, Any]) -> int:
    """The generation of the drop that a status is about; 0 for a message or without a status."""
    return _order(present)[0]


def run_shown(present: Mapping[str, Any], generation: int) -> str | None:
    """The id of the run, or the order, of that generation of the drop, if the status is about it."""
    run_id = present.get("run_id") if shown_generation(present) == generation else None
    return run_id if isinstance(run_id, str) and is_run_id(run_id) else None


def status_after(present: Mapping[str, Any], status: DropStatus) -> DropStatus | None:
    """The status to write over `present`; None if `present` is newer or the same."""
    there, new = _order(present), (status.generation or 0, status.record_generation)
    if present and (there > new or (there == new and not present.get("failed_deliveries"))):
        return None
    is_same_drop = there[0] == new[0]
    previous = present.get("previous_run_id" if is_same_drop else "run_id")
    return replace(
        status,
        previous_run_id=previous if isinstance(previous, str) else None,
        repeated_by=present.get("repeated_by") if is_same_drop else None,
    )


def status_after_repetition(
    present: Mapping[str, Any], source: Source, now: datetime
) -> Mapping[str, Any] | None:
    """`present`, repeated by this generation; None if it says so, or is of a newer one."""
    if (source.generation or 0) <= max(shown_generation(present), present.get("repeated_by", 0)):
        return None
    return {**present, "repeated_by": source.generation, "updated_at": encoded(now)}


def with_unknown_fields(present: Mapping[str, Any], after: DropStatus) -> object:
    """`after` as a document, with what a newer release wrote about the same run."""
    document = encoded(after)
    if present.get("run_id") != after.run_id:
        return document
    try:
        return with_unknown(document, encoded(decoded(DropStatus, present)), dict(present))
    except ValueError:
        return document


def status_after_failure(
    present: Mapping[str, Any], drop: DropStatus, error: Exception, *, is_repetition: bool
) -> Mapping[str, Any] | None:
    """`present`, or the drop's first status, with the reason why a delivery failed. None if there is nothing to report.

    `is_repetition`: the drop asks for the same as the one that `present` is about. A recorded run keeps its state: the reconciler continues it whatever happens to the event.
    """
    generation = shown_generation(present)
    if generation > (drop.generation or 0) or present.get("state") in {*ENDS, HELD}:
        return None
    status = dict(present)
    if (generation < (drop.generation or 0) and not is_repetition) or not present:
        new = replace(drop, previous_run_id=present.get("run_id"))
        status = dict(mapping_at(encoded(new)))
    elif status["state"] == DEAD_LETTER:  # the event was replayed
        status |= {"state": RETRYING, "failed_deliveries": 0}
    failed = status.get("failed_deliveries", 0) + 1
    follows = f"the event will be delivered again, up to {DELIVERIES_MAX} times"
    if isinstance(error, TrainmasterError) and not error.retryable:
        follows = "the event will not be delivered again"
    elif failed >= DELIVERIES_MAX:
        follows = "the event is now a dead letter: `trainmaster dead-letters` shows and replays it"
        status["state"] = DEAD_LETTER if status["state"] == RETRYING else status["state"]
    reason = f"delivery failed {'once' if failed == 1 else f'{failed} times, most recently'} because {failure_text(error)}; {follows}"
    return status | {"reason": reason, "failed_deliveries": failed, "updated_at": encoded(drop.updated_at)}


def failure_text(error: Exception) -> str:
    """The error as the user reads it; for a bug in this program, only its type."""
    what = str(error) if isinstance(error, TrainmasterError) else f"{type(error).__name__}, see the log"
    return short_reason(plain(what))


def _order(document: Mapping[str, Any]) -> tuple[int, int]:
    """The generations of the drop and of its record in a status. A document that is not a status sorts first."""
    try:
        return int(document.get("generation", 0)), int(document.get("record_generation", 0))
    except (ValueError, TypeError):
        return -1, -1
