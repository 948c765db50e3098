"""The record of one notice's deliveries to receivers: schemas/notice_deliveries.v1.schema.json"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus

from trainmaster.orchestrator.core.documents.codec import decoded, parse_json
from trainmaster.orchestrator.core.names import KEY_HASH_CHARS
from trainmaster.orchestrator.core.runs.index import newest_first

DELIVERIES_SCHEMA, DELIVERIES_PREFIX = "notice_deliveries.v1", "notices/"


class DeliveryState(StrEnum):
    """What became of a notice at one receiver; it is sent again only while it is `retrying`."""

    DELIVERED = "delivered"
    REFUSED = "refused"
    SKIPPED = "skipped"
    RETRYING = "retrying"


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The last attempt at one receiver. `reason` never has a secret, a URL, or words of the receiver's answer."""

    state: DeliveryState
    at: datetime
    attempts: int = 1
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class NoticeDeliveries:
    """A notice, what was or would have been sent, and its delivery to each receiver by name."""

    schema: str = DELIVERIES_SCHEMA
    id: str
    type: str
    subject: str
    time: datetime
    message: str
    receivers: Mapping[str, Delivery] = field(default_factory=dict)

    def is_over(self, receiver: str) -> bool:
        """Whether nothing more is sent to this receiver."""
        known = self.receivers.get(receiver)
        return known is not None and known.state is not DeliveryState.RETRYING


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer to a POST: its HTTP status, or why it has no status, in our words."""

    status: int = 0
    problem: str = ""


def delivery_of(answer: Answer, at: datetime) -> Delivery:
    """A 2xx is a delivery. A 4xx is final, except 408 and 429; everything else, a redirect too, is tried again."""
    status = answer.status
    reason = answer.problem or f"HTTP {status}"
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return Delivery(state=DeliveryState.DELIVERED, at=at)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        reason += ": redirects are not followed"
    may_pass = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
    is_final = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in may_pass
    return Delivery(state=DeliveryState.REFUSED if is_final else DeliveryState.RETRYING, at=at, reason=reason)


def merged_deliveries(present: NoticeDeliveries | None, made: NoticeDeliveries) -> NoticeDeliveries:
    """Both; what is over in `present` stays, and attempts are added up."""
    known = dict(present.receivers) if present else {}
    for name, delivery in made.receivers.items():
        before = known.get(name)
        if present is None or before is None or not present.is_over(name):
            attempts = delivery.attempts + (before.attempts if before else 0)
            known[name] = replace(delivery, attempts=attempts)
    return replace(made, receivers=known)


def parse_deliveries(content: bytes) -> NoticeDeliveries | None:
    """The document; None for anything else, which is replaced."""
    try:
        found = decoded(NoticeDeliveries, parse_json(content))
    except (ValueError, TypeError, KeyError):
        return None
    return found if found.schema == DELIVERIES_SCHEMA else None


def deliveries_object(notice_id: str, at: datetime) -> str:
    """`notices/<microseconds until the year 10000>-<hash of the id>.json`: a listing shows the newest notices first."""
    hashed = hashlib.sha256(notice_id.encode()).hexdigest()[:KEY_HASH_CHARS]
    return f"{DELIVERIES_PREFIX}{newest_first(at)}-{hashed}.json"
