"""What arrives is classified once, and given to the flow of its kind: a rule, a self-test, an order or a request."""

from collections.abc import Iterator

from trainmaster.orchestrator.core.documents.document import is_json
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.errors import ObjectGone
from trainmaster.orchestrator.core.events.envelope import Envelope, pubsub_message
from trainmaster.orchestrator.core.events.self_test import dry_run_in
from trainmaster.orchestrator.core.names import is_rule_object
from trainmaster.orchestrator.core.requests.arrival import (
    Arrival,
    Ignored,
    StoredObject,
    message_in,
    upload_in,
)
from trainmaster.orchestrator.core.requests.orders import ORDER_SCHEMA, is_order, order_in
from trainmaster.orchestrator.core.requests.reading import Text, text_in
from trainmaster.orchestrator.core.requests.request import Refused, too_large
from trainmaster.orchestrator.flows.orders import take_order
from trainmaster.orchestrator.flows.retraining.accept import accept
from trainmaster.orchestrator.flows.self_test import try_request
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.flows.submission.launch import reject, take_request
from trainmaster.orchestrator.flows.submission.queue_pass import admit
from trainmaster.orchestrator.flows.submission.resume import resume

ADMITTED_PER_ARRIVAL_MAX = 2
"""How many queued runs a new run that has to wait admits: so the queue does not grow by what it holds up."""


def take_upload(services: Services, envelope: Envelope) -> Iterator[Happened]:
    """Take what was dropped into the inbox."""
    arrival = upload_in(envelope, services.buckets.inbox)
    if isinstance(arrival, Ignored):
        yield Happened(message=f"ignored: {arrival.reason}")
    elif isinstance(arrival.content, StoredObject) and is_rule_object(arrival.content.name):
        yield accept(services, arrival, arrival.content)
    else:
        yield from take_and_admit(services, arrival)


def take_message(services: Services, envelope: Envelope) -> Iterator[Happened]:
    """Take what was published to the requests topic."""
    dry_run = dry_run_in(pubsub_message(envelope))
    if dry_run is not None:
        yield try_request(services, dry_run)
        return
    yield from take_and_admit(services, message_in(envelope))


def take_and_admit(services: Services, arrival: Arrival) -> Iterator[Happened]:
    """See `take`; where only its turn keeps the run, or where it ended and others may go, the queue goes on."""
    happened = take(services, arrival)
    yield happened
    if happened.is_due:
        yield from admit(services, room_freed=False, most=ADMITTED_PER_ARRIVAL_MAX)


def take(services: Services, arrival: Arrival) -> Happened:
    """Carry out the order, or launch the run, that the arrival asks for. Safe to repeat and to run at once.

    An order that is refused is rejected like a request.

    Raises:
        LeaseHeld, LeaseTooShort, RecordMoved, SubmissionUnknown: a later delivery must look again.
    """
    # Looking first costs a new event one read, and lets a duplicate go after two, without its request.
    held = services.ledger.find(arrival.run_id)
    if held is not None:
        return resume(services, held)
    text = _text(services, arrival)
    if isinstance(text, Refused):
        return reject(services, arrival, text)
    if is_order(text.read.value):
        return _take_order(services, arrival, text)
    return take_request(services, arrival, text)


def _text(services: Services, arrival: Arrival) -> Text | Refused:
    content = arrival.content
    if isinstance(content, bytes):
        return too_large(len(content)) or text_in(content, as_json=is_json(content))
    refusal = too_large(content.size_bytes)
    if refusal is not None:
        return refusal
    try:
        found = services.inbox.read(content.bucket, content.name, content.generation)
    except ObjectGone as gone:
        fault = Fault(
            path="$",
            problem=f"{gone}: it was deleted or written over before it was read",
            repair="a newer upload of the name is a request of its own; otherwise drop the file again",
        )
        return Refused(faults=(fault,))
    return text_in(found, as_json=content.name.lower().endswith(".json"))


def _take_order(services: Services, arrival: Arrival, text: Text) -> Happened:
    order = order_in(text.read, services.standards().schemas[ORDER_SCHEMA])
    done = order if isinstance(order, Refused) else take_order(services, arrival, order)
    return reject(services, arrival, done) if isinstance(done, Refused) else done
