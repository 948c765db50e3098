"""What an event asks for: a run by a request, a rule for later runs, or an order."""

from collections.abc import Mapping
from enum import StrEnum

from trainmaster.orchestrator.core.events.envelope import Envelope
from trainmaster.orchestrator.core.names import is_rule_object

ORDER_KEYS = ("fire", "rollback", "cancel")
"""A document is an order when it has one of these keys; no request has such a key."""


class Kind(StrEnum):
    REQUEST = "request"
    RULE = "rule"
    ORDER = "order"


def kind_of_drop(envelope: Envelope, inbox_bucket: str) -> Kind:
    """RULE, or REQUEST for every other object: its document may yet be an order."""
    fields = envelope.data if isinstance(envelope.data, Mapping) else {}
    is_rule = fields.get("bucket") == inbox_bucket and is_rule_object(str(fields.get("name")))
    return Kind.RULE if is_rule else Kind.REQUEST


def kind_of_document(value: object) -> Kind:
    """ORDER or REQUEST."""
    return Kind.ORDER if isinstance(value, dict) and set(ORDER_KEYS) & set(value) else Kind.REQUEST
