"""The plan of a request with what the ledger shows: what would decide over its run."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from trainmaster.client.errors import NotFound
from trainmaster.client.find import read_document, read_run
from trainmaster.client.plan.outlook import limits_now, outlook
from trainmaster.client.plan.plan import Plan, SeenEvent, plan_of
from trainmaster.client.runs.admission_objects import read_admission_objects
from trainmaster.client.submission.examination import Examination
from trainmaster.orchestrator.core.names import is_run_id, message_status_object, status_object
from trainmaster.orchestrator.core.requests.matrix import run_documents
from trainmaster.orchestrator.core.requests.request import Request

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


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
    return replace(
        plan,
        outlook=outlook(request, policy, listings, now),
        limits=limits_now(request, policy, listings.slots),
        seen=tuple(_seen_events(clients, request, examination.object_name, key)),
        not_checked=("what Vertex AI would answer: its quotas and free machines",),
    )


def _seen_events(
    clients: "Clients", request: Request, object_name: str, key: str | None
) -> Iterator[SeenEvent]:
    """Earlier events with the same file name or key."""
    of_key = message_status_object(message_id="", idempotency_key=key) if key is not None else ""
    status = read_document(clients, of_key or status_object(object_name))
    if status is None:
        return
    run_id = status.get("run_id")
    record = None
    with suppress(NotFound):  # a damaged record says nothing about this request
        record = read_run(clients, str(run_id)).record if is_run_id(str(run_id)) else None
    document = record.request.document if record is not None and record.request is not None else None
    yield SeenEvent(
        name=key or object_name,
        state=str(status.get("state")),
        run_id=run_id if record is not None else None,
        same_request=document == run_documents(request.document)[0],
        starts_again=key is None,
    )
