"""The plan of a request with what the ledger shows: what would decide over its run."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from trainmaster.client.find import read_document
from trainmaster.client.plan.outlook import limits_now, outlook
from trainmaster.client.plan.plan import Plan, PlannedJob, SeenEvent, plan_of
from trainmaster.client.runs.admission_objects import read_admission_objects
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.client.submission.examination import Examination
from trainmaster.orchestrator.core.admission.candidates import candidates_of, quota_class
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.names import is_run_id, message_status_object, record_object, status_object
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.runs.record import RECORD_SCHEMA, RefusedCandidate, RunRecord

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

RECORDS_MAX = 20
"""Records that are read for earlier refusals: of runs that wait for the same machines, then of the newest runs."""
REFUSALS_WITHIN = timedelta(days=1)
REFUSALS_SHOWN = 3
"""Of a job, the latest."""
READS_AT_ONCE = 8


def plan_with_ledger(
    clients: "Clients", examination: Examination, *, key: str | None = None, now: datetime
) -> Plan | None:
    """The plan with what the deployment's ledger shows now; None without a sound request. Submits and writes nothing.

    Args:
        clients: of the context that would run the request.
        examination: of the request, against the terms of the deployment there.
        key: the idempotency key with which it would be published, instead of dropped.
        now: when it would arrive.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    plan, request, policy = plan_of(examination), examination.request, examination.terms.policy
    if plan is None or request is None:
        return None
    listings = read_admission_objects(clients, now)
    names = {job.quota_class for job in plan.jobs}
    waiting = [each.run_id for each in listings.places if names & set(each.classes)]
    return replace(
        plan,
        jobs=_with_refusals(clients, plan.jobs, waiting, since=now - REFUSALS_WITHIN),
        outlook=outlook(request, policy, listings, now),
        limits=limits_now(request, policy, listings.slots),
        seen=tuple(_seen_events(clients, request, examination.object_name, key)),
        not_checked=("what Vertex AI would answer: its quotas and free machines",),
    )


def _with_refusals(
    clients: "Clients", jobs: tuple[PlannedJob, ...], waiting: Iterable[str], *, since: datetime
) -> tuple[PlannedJob, ...]:
    newest = (row.run_id for row in list_runs(clients, Filters(), limit=RECORDS_MAX).rows)
    run_ids = list(dict.fromkeys([*waiting, *newest]))[:RECORDS_MAX]
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        records = list(pool.map(partial(_record, clients), run_ids))
    refusals: dict[str, dict[tuple[datetime, str], RefusedCandidate]] = {}
    for record in records:
        for name, attempt in _refusals(record) if record is not None else ():
            if attempt.at >= since:
                refusals.setdefault(name, {})[attempt.at, attempt.outcome] = attempt
    latest = {
        name: tuple(attempts[key] for key in sorted(attempts, reverse=True)[:REFUSALS_SHOWN])
        for name, attempts in refusals.items()
    }
    return tuple(replace(job, refusals=latest.get(job.quota_class, ())) for job in jobs)


def _refusals(record: RunRecord) -> Iterator[tuple[str, RefusedCandidate]]:
    """What found no room, each with its quota class."""
    if record.request is None:
        return
    classes = [quota_class(each) for each in candidates_of(record)]
    for attempt in record.submission.tries:
        if attempt.candidate < len(classes):
            yield classes[attempt.candidate], attempt


def _record(clients: "Clients", run_id: str) -> RunRecord | None:
    document = read_document(clients, record_object(run_id))
    if document is None or document.get("schema") != RECORD_SCHEMA:
        return None
    try:
        return decoded(RunRecord, document)
    except (KeyError, TypeError, ValueError):
        return None  # a damaged record says nothing about this request


def _seen_events(
    clients: "Clients", request: Request, object_name: str, key: str | None
) -> Iterator[SeenEvent]:
    """Earlier events with the same file name or key."""
    of_key = message_status_object(message_id="", idempotency_key=key) if key is not None else ""
    status = read_document(clients, of_key or status_object(object_name))
    if status is None:
        return
    run_id = status.get("run_id")
    record = _record(clients, run_id) if isinstance(run_id, str) and is_run_id(run_id) else None
    document = record.request.document if record is not None and record.request is not None else None
    yield SeenEvent(
        name=key or object_name,
        state=str(status.get("state")),
        run_id=run_id if record is not None else None,
        same_request=document == request.document,
        starts_again=key is None,
    )
