"""Orders: documents that start no job by themselves. They come where requests come.

schemas/order.v1.schema.json
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.orchestrator.core.documents.document import document_in
from trainmaster.orchestrator.core.documents.faults import Fault, listed, nearest, shown
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.requests.request import Refused, too_large

ORDER_SCHEMA = "order.v1"
_KEYS = ("fire", "rollback", "cancel")


@dataclass(frozen=True, kw_only=True)
class FireOrder:
    """Fire this rule now."""

    rule_id: str


@dataclass(frozen=True, kw_only=True)
class RollbackOrder:
    """Make an earlier champion the champion again: that of `to_run`, or the one before."""

    model_name: str
    to_run: str | None = None


@dataclass(frozen=True, kw_only=True)
class CancelOrder:
    """End this run: whether it waits or has a job."""

    run_id: str


Order = FireOrder | RollbackOrder | CancelOrder


def order_in(content: bytes, *, as_json: bool, schema: Mapping[str, Any]) -> Order | Refused | None:
    """The order in these bytes, or every fault of it; None when they hold no order but, perhaps, a request.

    A document is an order when one of its keys is `fire`, `rollback` or `cancel`; no request has such a key.
    """
    # Almost everything that comes is a request, which must not be parsed twice for this.
    if not any(key.encode() in content for key in _KEYS) or too_large(len(content)) is not None:
        return None
    read = document_in(content, as_json=as_json)
    if not isinstance(read.value, dict) or not set(_KEYS) & set(read.value):
        return None
    reported = {fault.path for fault in read.faults}
    faults = [
        *read.faults,
        *(each for each in schema_faults(schema, read.value, read.spelled) if each.path not in reported),
    ]
    if faults:
        return Refused(faults=tuple(sorted(set(faults))))
    if "fire" in read.value:
        return FireOrder(rule_id=read.value["fire"]["rule"])
    if "cancel" in read.value:
        return CancelOrder(run_id=read.value["cancel"]["run"])
    rollback = read.value["rollback"]
    return RollbackOrder(model_name=rollback["model_name"], to_run=rollback.get("to_run"))


def unknown_rule(rule_id: str, known: Sequence[str]) -> Refused:
    """The refusal of an order for a rule that is not in the book."""
    fault = Fault(
        path="$.fire.rule",
        problem="there is no such rule",
        found=shown(rule_id),
        allowed=listed(known) or "none: no rule was accepted",
        repair=nearest(rule_id, known),
    )
    return Refused(faults=(fault,))


def unknown_run(run_id: str) -> Refused:
    """The refusal of an order about a run that is not on record."""
    fault = Fault(
        path="$.cancel.run",
        problem="there is no such run",
        found=shown(run_id),
        repair="a run's id is in the status object of its drop and the name of its record",
    )
    return Refused(faults=(fault,))
