"""A notice is sent to the policy's receivers, at once to all that are left.

At least once: after a crash between a receiver's answer and its record it is sent again, under the same id. A notice
that no receiver gets costs no call at all.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

from trainmaster.orchestrator.core.errors import ReceiversLeft, RecordDamaged
from trainmaster.orchestrator.core.events.envelope import PubsubMessage
from trainmaster.orchestrator.core.names import is_run_id
from trainmaster.orchestrator.core.notices.deliveries import (
    Delivery,
    DeliveryState,
    NoticeDeliveries,
    delivery_of,
)
from trainmaster.orchestrator.core.notices.message import message_of, other_run
from trainmaster.orchestrator.core.notices.payloads import Parcel, post_of
from trainmaster.orchestrator.core.notices.routing import parse_published, receivers_of
from trainmaster.orchestrator.core.policy.receivers import Receiver
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.ports.services import Receivers


def send_notice(services: Services, receivers: Receivers, published: PubsubMessage) -> Iterator[FlowResult]:
    """Send the notice to each of its receivers that is left, and record the outcome.

    Raises:
        EventMalformed: the message is not a notice of this service.
        ReceiversLeft: the notice must be sent again to some of them.
    """
    notice, event = parse_published(published)
    wanted = receivers_of(notice, services.policy().notify)
    before = services.deliveries.find(notice) if wanted else None
    left = [each for each in wanted if not (before and before.is_over(each.name))]
    if not left:
        return
    record = _record(services, notice.data.get("run_id"))
    message = message_of(notice, record, _record(services, other_run(notice)))
    parcel = Parcel(event=event, message=message, record=record, at=services.clock.now())
    made = _send(receivers, left, parcel)
    for receiver in left:
        if receiver.email is not None:  # before the record: a lost line would be a lost e-mail
            yield FlowResult(message=message.line, receiver=receiver.name, event=LogEvent.NOTICE_EMAIL)
    about = {"id": notice.id, "type": notice.type, "subject": notice.subject}
    services.deliveries.record(
        NoticeDeliveries(**about, time=notice.time, message=message.line, receivers=made)
    )
    for name, delivery in made.items():
        why = f": {delivery.reason}" if delivery.reason else ""
        text = f"notice {notice.id!r} is {delivery.state} for {name}{why}"
        yield FlowResult(message=text, receiver=name, severity="WARNING" if delivery.reason else "INFO")
    undone = {name: each.reason or "" for name, each in made.items() if each.state is DeliveryState.RETRYING}
    if undone:
        raise ReceiversLeft(notice.id, undone)


def _record(services: Services, run_id: object) -> RunRecord | None:
    """The run's record, where there is one that can be read."""
    with suppress(RecordDamaged):
        held = services.ledger.find(run_id) if isinstance(run_id, str) and is_run_id(run_id) else None
        return held.record if held else None
    return None


def _send(receivers: Receivers, left: Sequence[Receiver], parcel: Parcel) -> dict[str, Delivery]:
    """The delivery at each receiver. A slow one holds up no other."""
    with ThreadPoolExecutor(len(left)) as pool:
        made = pool.map(partial(_deliver, receivers, parcel), left)
        return dict(zip([each.name for each in left], made, strict=True))


def _deliver(receivers: Receivers, parcel: Parcel, receiver: Receiver) -> Delivery:
    secret = receivers.secret(receiver.secret) if receiver.secret else ""
    if secret is None:
        reason = (
            f"the secret {receiver.secret} is missing, or not one line of text: `gcloud secrets versions add "
            f"{receiver.secret} --data-file=-`, or on a stack the file secrets/{receiver.secret} in its folder"
        )
        return Delivery(state=DeliveryState.RETRYING, at=parcel.at, reason=reason)
    post = post_of(parcel, receiver, secret)
    if post is not None:
        return delivery_of(receivers.post(post), parcel.at)
    if receiver.email is not None:
        return Delivery(state=DeliveryState.DELIVERED, at=parcel.at)
    return Delivery(state=DeliveryState.SKIPPED, at=parcel.at, reason="there is no run with a commit")
