"""Every notice that the service publishes: schemas/notice.v1.schema.json

A new notice needs a type here, a function that builds it, and the type and its payload in the schema. Of champions and
rules, these functions are in their rooms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from trainmaster.orchestrator.core.documents.codec import encoded, encoded_time
from trainmaster.orchestrator.core.job_names import location_name
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import ENDS, RunState
from trainmaster.orchestrator.core.runs.utilization import WasteFound

PREFIX = "trainmaster."
RUN_PREFIX = "trainmaster.run."
RUN_TYPES: Mapping[RunState, str] = {state: f"{RUN_PREFIX}{state}.v1" for state in RunState}
RUN_RETRIED = f"{RUN_PREFIX}retried.v1"
RUN_WASTEFUL = f"{RUN_PREFIX}wasteful.v1"
CHAMPION_PROMOTED = "trainmaster.champion.promoted.v1"
CHAMPION_ROLLED_BACK = "trainmaster.champion.rolled_back.v1"
APPROVAL_NEEDED = "trainmaster.champion.approval_needed.v1"
RULE_QUARANTINED = "trainmaster.rule.quarantined.v1"
CAP_REACHED = "trainmaster.cap.reached.v1"
TEST = "trainmaster.notice.test.v1"


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A CloudEvent. The same fact has the same `id`."""

    id: str
    type: str
    subject: str
    time: datetime
    data: Mapping[str, object]


def run_entered(record: RunRecord, number: int, record_uri: str) -> Notice:
    """The notice of step `number` of the run's history, counted from 0."""
    step = record.history[number]
    times = sum(earlier.state is step.state for earlier in record.history[: number + 1])
    entered: dict[str, object] = {
        "run_id": record.run_id,
        "state": step.state,
        "record_uri": record_uri,
        "team": record.source.team,
        "model_name": record.model_name,
        "job_name": record.job.name if record.job else None,
    }
    if step.state in ENDS:
        entered |= {
            "model_uri": record.model.uri if record.model else None,
            "metrics": record.model.metrics if record.model else None,
            "error": record.failure,
            "report_uri": record.rejection.report_uri if record.rejection else None,
            "champion": record.completion.champion if record.completion else None,
        }
    notice_id = f"{record.run_id}/{step.state}"
    notice_id = notice_id if times == 1 else f"{notice_id}/{times}"
    return notice_of(notice_id, RUN_TYPES[step.state], record.run_id, step.at, entered)


def run_retried(record: RunRecord, record_uri: str) -> Notice:
    """The notice of the retry that this record, which waits again, has just begun; with how the last job was lost."""
    lost = record.submission.abandoned_jobs[-1]
    entered = run_entered(record, len(record.history) - 1, record_uri)
    data = {**entered.data, "job_name": lost.job, "why": lost.why, "reason": lost.reason}
    return replace(entered, id=f"{record.run_id}/retried/{record.round}", type=RUN_RETRIED, data=data)


def run_wasteful(record: RunRecord, found: WasteFound, record_uri: str) -> Notice:
    """The notice that the run's job wastes its machines; a run has one."""
    entered = run_entered(record, len(record.history) - 1, record_uri)
    data = {**entered.data, "reason": found.reason}
    return replace(entered, id=f"{record.run_id}/wasteful", type=RUN_WASTEFUL, time=found.at, data=data)


def cap_reached(record: RunRecord, window: str) -> Notice:
    """The notice that this cap, in its hour or day, refused a run; the record is that of one of the refused runs."""
    reached = {"window": window, "reason": "; ".join(record.problems), "run_id": record.run_id}
    return notice_of(f"caps/{window}", CAP_REACHED, window, record.updated_at, reached)


def receiver_test(receiver: str, test_id: str, at: datetime) -> Notice:
    """The notice of `trainmaster notices test`, which only the receiver of this name gets."""
    return notice_of(f"tests/{receiver}/{test_id}", TEST, receiver, at, {"receiver": receiver})


def notice_of(
    notice_id: str, notice_type: str, subject: str, at: datetime, payload: Mapping[str, object]
) -> Notice:
    written = cast("dict[str, object]", encoded(payload))
    data = {name: part for name, part in written.items() if part is not None}
    return Notice(id=notice_id, type=notice_type, subject=subject, time=at, data=data)


def notice_source(project: str, region: str, deployment: str) -> str:
    """The source of a deployment's notices: within it, the id of a notice is unique."""
    suffix = f"/deployments/{deployment}" if deployment else ""
    return f"//trainmaster/{location_name(project, region)}{suffix}"


def cloud_event(notice: Notice, source: str) -> dict[str, object]:
    """The notice as a CloudEvents 1.0 document."""
    return {
        "specversion": "1.0",
        "id": notice.id,
        "source": source,
        "type": notice.type,
        "subject": notice.subject,
        "time": encoded_time(notice.time),
        "datacontenttype": "application/json",
        "data": dict(notice.data),
    }
