"""An event becomes a run on record: reserved, and submitted at once where there is room; or rejected.

The order of writes, and what a crash between two of them leaves:

    mark      of the caps, where the policy has some: `caps.py`
    marker    the sweep will look; without a record it finds nothing and the event comes again
    record    reserved, with a lease: until it expires nobody else submits; what follows is in `submit.py`
"""

from collections.abc import Callable
from datetime import datetime

from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.document import is_json
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.errors import ObjectGone, RecordExists
from trainmaster.orchestrator.core.names import model_name_from, stem
from trainmaster.orchestrator.core.requests.arrival import Arrival
from trainmaster.orchestrator.core.requests.orders import ORDER_SCHEMA, Order, order_in
from trainmaster.orchestrator.core.requests.request import Refused, Request, request_in, too_large
from trainmaster.orchestrator.core.requests.submission import output_uri_of
from trainmaster.orchestrator.core.runs.attempts import Lease, SubmissionState
from trainmaster.orchestrator.core.runs.outcome import Rejection
from trainmaster.orchestrator.core.runs.record import AcceptedRequest, Estimated, RunRecord, Step
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.caps import OverCap, over_caps
from trainmaster.orchestrator.flows.ladder import ladder_for
from trainmaster.orchestrator.flows.outcome import present
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.flows.submit import resume, submit
from trainmaster.orchestrator.flows.telling import tell_status, warned

TakeOrder = Callable[[Services, Arrival, Order], Happened | Refused]


def launch(services: Services, arrival: Arrival, take_order: TakeOrder | None = None) -> Happened:
    """The run that the arrival asks for, submitted, waiting, or rejected. Safe to repeat and to run at once.

    With `take_order`, what arrived may be an order instead; one that is refused is rejected like a request.

    Raises:
        LeaseHeld, LeaseTooShort, RecordMoved, SubmissionUnknown: a later delivery must look again.
    """
    # Looking first costs a new event one read, and lets a duplicate go after two, without its request.
    held = services.ledger.find(arrival.run_id)
    if held is not None:
        return resume(services, held)
    content = _content(services, arrival)
    as_json = isinstance(content, bytes) and _as_json(arrival, content)
    order = _order_in(services, content, as_json=as_json) if take_order is not None else None
    if take_order is not None and isinstance(order, Order):
        done = take_order(services, arrival, order)
        if isinstance(done, Happened):
            return done
        order = done
    request = order if isinstance(order, Refused) else _request(services, arrival, content, as_json=as_json)
    over = None
    if isinstance(request, Request):
        over = over_caps(services, arrival.run_id, request.estimate.at_most if request.estimate else None)
        request = request if over is None else Refused(faults=(over.reached.fault,))
    services.ledger.mark_active(arrival.run_id)
    if isinstance(request, Refused):
        return _reject(services, arrival, request, over)
    now = services.clock.now()
    try:
        held = services.ledger.create(_reserved(services, arrival, request, now))
    except RecordExists:
        return resume(services, present(services, arrival.run_id))
    return warned(submit(services, held, ladder_for(services, held.record)), held.record.problems)


def _content(services: Services, arrival: Arrival) -> bytes | Refused:
    content = arrival.content
    if isinstance(content, bytes):
        return too_large(len(content)) or content
    refusal = too_large(content.size_bytes)
    if refusal is not None:
        return refusal
    try:
        return services.inbox.read(content.bucket, content.name, content.generation)
    except ObjectGone as gone:
        fault = Fault(
            path="$",
            problem=f"{gone}: it was deleted or written over before it was read",
            repair="a newer upload of the name is a request of its own; otherwise drop the file again",
        )
        return Refused(faults=(fault,))


def _as_json(arrival: Arrival, content: bytes) -> bool:
    if isinstance(arrival.content, bytes):
        return is_json(content)
    return arrival.content.name.lower().endswith(".json")


def _order_in(services: Services, content: bytes | Refused, *, as_json: bool) -> Order | Refused | None:
    if isinstance(content, Refused):
        return None
    schema = services.standards().schemas[ORDER_SCHEMA]
    return order_in(content, as_json=as_json, schema=schema)


def _request(
    services: Services, arrival: Arrival, content: bytes | Refused, *, as_json: bool
) -> Request | Refused:
    if isinstance(content, Refused):
        return content
    dropped = arrival.source.object_name
    return request_in(
        content,
        as_json=as_json,
        standards=services.standards(),
        name=None if dropped is None else model_name_from(stem(dropped)),
    )


def _reserved(services: Services, arrival: Arrival, request: Request, now: datetime) -> RunRecord:
    return RunRecord(
        run_id=arrival.run_id,
        state=RunState.RESERVED,
        source=arrival.source,
        attempt=services.attempt,
        updated_at=now,
        history=(Step(state=RunState.RESERVED, at=now),),
        request=AcceptedRequest(
            document=request.document,
            model_name=request.spec.model_name,
            output_uri=output_uri_of(arrival.run_id, request.spec, services.target),
            estimate=_estimated(request),
        ),
        submission=SubmissionState(lease=Lease(attempt=services.attempt, expires_at=now + services.lease)),
        problems=tuple(str(warning) for warning in request.warnings),
    )


def _estimated(request: Request) -> Estimated | None:
    found = request.estimate
    if found is None:
        return None
    return Estimated(
        currency=found.currency,
        as_of=found.as_of,
        per_hour=None if found.per_hour is None else f"{found.per_hour:f}",
        at_most=None if found.at_most is None else f"{found.at_most:f}",
        unknown=found.unknown,
    )


def _reject(services: Services, arrival: Arrival, refused: Refused, over: OverCap | None) -> Happened:
    """The report, then the record, then the status; where a cap refused it, its mark goes after the record.

    The sweep tells the notice: the Pub/Sub client takes longer to import than all of this takes to do.
    """
    now = services.clock.now()
    report_uri = services.ledger.report(
        arrival.run_id,
        {
            "schema": "rejection_report.v1",
            "run_id": arrival.run_id,
            "source": encoded(arrival.source),
            "faults": [fault.document for fault in refused.faults],
        },
    )
    record = RunRecord(
        run_id=arrival.run_id,
        state=RunState.REJECTED,
        source=arrival.source,
        attempt=services.attempt,
        updated_at=now,
        history=(Step(state=RunState.REJECTED, at=now),),
        problems=tuple(str(fault) for fault in refused.faults),
        rejection=Rejection(report_uri=report_uri, cap=over.reached.window if over is not None else None),
    )
    try:
        held = services.ledger.create(record)
    except RecordExists:
        there = present(services, arrival.run_id)
        if there.record.state is not RunState.REJECTED:
            # Another attempt found it sound, under another policy perhaps: a report beside it would mislead.
            services.ledger.unreport(arrival.run_id)
        return resume(services, there)
    if over is not None and over.mark is not None:
        services.starts.unmark(over.mark)
    tell_status(services, held)
    why = f"with {len(refused.faults)} faults" if over is None else f"by a cap: {over.reached.text}"
    return Happened(
        message=f"the request was rejected {why}",
        run_id=arrival.run_id,
        severity="WARNING",
    )
