"""Reads what was sent to the policy's receivers of notices, and publishes a notice that tests one of them."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.deployment import read_deployment
from trainmaster.client.errors import ClientRefused
from trainmaster.client.nearest import nearest_names
from trainmaster.client.records import read_bytes
from trainmaster.client.runs.admission_objects import ledger_objects
from trainmaster.client.wait import poll
from trainmaster.orchestrator.core.documents.codec import encoded, json_line
from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.names import exact_time
from trainmaster.orchestrator.core.notices.deliveries import (
    DELIVERIES_PREFIX,
    Delivery,
    NoticeDeliveries,
    deliveries_object,
    parse_deliveries,
)
from trainmaster.orchestrator.core.notices.notice import Notice, cloud_event, notice_source, receiver_test
from trainmaster.orchestrator.core.sizes import MAX_MARK_BYTES

NOTICES_SCHEMA = "notice_list.v1"
SHOWN, SHOWN_MAX = 20, 200
_READS_AT_ONCE = 8
_PUBLISH_WITHIN_S = 30.0


def list_notices(clients: Clients, limit: int = SHOWN) -> list[NoticeDeliveries]:
    """The newest notices that a receiver gets, at most `limit`. Costs a listing, and a read of each.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    names = [blob.name for blob in islice(ledger_objects(clients, DELIVERIES_PREFIX), limit)]
    with ThreadPoolExecutor(_READS_AT_ONCE) as pool:
        found = pool.map(lambda name: _read(clients, name), names)
        return [each for each in found if each is not None]


def notices_document(found: Sequence[NoticeDeliveries]) -> dict[str, Any]:
    """The list for programs: schemas/notice_list.v1.schema.json."""
    return {"schema": NOTICES_SCHEMA, "notices": [encoded(each) for each in found]}


def _read(clients: Clients, name: str) -> NoticeDeliveries | None:
    content = read_bytes(clients.storage, clients.context.ledger_bucket, name, MAX_MARK_BYTES)
    return None if content is None else parse_deliveries(content)


def publish_test(clients: Clients, receiver: str) -> Notice:
    """Publish a notice that only this receiver gets.

    Raises:
        NotFound: the ledger does not say what the deployment is.
        ClientRefused: the deployed policy has no receiver of this name.
        google.api_core.exceptions.GoogleAPICallError: the topic did not take it.
    """
    from google.pubsub_v1.types import PubsubMessage

    deployment, context = read_deployment(clients), clients.context
    rows = deployment.policy.get("notify") or ()
    names = [str(row["name"]) for row in rows if isinstance(row, Mapping) and "name" in row]
    if receiver not in names:
        has = f"it has: {listed(names) or 'none'}. {nearest_names(receiver, names)}".rstrip()
        raise ClientRefused(f"The deployed policy's notify has no receiver {receiver!r}; {has}")
    now = datetime.now(UTC)
    notice = receiver_test(receiver, exact_time(now), now)
    source = notice_source(context.project, context.region, context.deployment)
    message = PubsubMessage(
        data=json_line(cloud_event(notice, source)).encode(),
        attributes={"content-type": "application/cloudevents+json; charset=utf-8", "type": notice.type},
    )
    topic = f"projects/{context.project}/topics/{deployment.topics['notices']}"
    clients.pubsub[1].publish(topic=topic, messages=[message], timeout=_PUBLISH_WITHIN_S)
    return notice


def wait_for_delivery(clients: Clients, notice: Notice, receiver: str, wait_s: float) -> Delivery | None:
    """The delivery, once it is over; after `wait_s` seconds what is known of it, or None.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    found = poll(
        clients.context,
        lambda: _read(clients, deliveries_object(notice.id, notice.time)),
        lambda each: each is not None and each.is_over(receiver),
        timeout_s=wait_s,
    )
    return found.receivers.get(receiver) if found else None
