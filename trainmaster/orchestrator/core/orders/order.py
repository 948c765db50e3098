"""Orders: documents that start no job by themselves. They come where requests come.

schemas/order.v1.schema.json
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.faults import (
    Refused,
    first_of_each_place,
    listed,
    nearest,
    refusal_of,
)
from trainmaster.orchestrator.core.documents.validation import schema_faults

ORDER_SCHEMA = "order.v1"


@dataclass(frozen=True, kw_only=True)
class FireOrder:
    """Fire this rule now."""

    order_id: str
    given_at: datetime
    rule_id: str


@dataclass(frozen=True, kw_only=True)
class RollbackOrder:
    """Make an earlier champion the champion again: that of `to_run`, or the one before."""

    order_id: str
    model_name: str
    to_run: str | None = None


@dataclass(frozen=True, kw_only=True)
class CancelOrder:
    """End this run: whether it waits or has a job."""

    run_id: str


@dataclass(frozen=True, kw_only=True)
class ApproveOrder:
    """Promote the challenger of this model that waits for it, that of `run_id` if it is given; or reject it."""

    order_id: str
    model_name: str
    run_id: str | None = None
    is_rejected: bool = False


@dataclass(frozen=True, kw_only=True)
class CleanOrder:
    """Apply the policy's retention now."""


Order = FireOrder | RollbackOrder | CancelOrder | ApproveOrder | CleanOrder


def parse_order(
    read: Document, schema: Mapping[str, Any], order_id: str, given_at: datetime
) -> Order | Refused:
    """The order in a document that `is_order`, or every fault of it.

    Every delivery of an order has the same `order_id`, and carries it out at most once.
    """
    faults = first_of_each_place((read.faults, schema_faults(schema, read.value, read.spelled)))
    if faults:
        return Refused(faults=tuple(sorted(set(faults))))
    order: Any = read.value  # as the schema says
    if "fire" in order:
        return FireOrder(order_id=order_id, given_at=given_at, rule_id=order["fire"]["rule"])
    if "cancel" in order:
        return CancelOrder(run_id=order["cancel"]["run"])
    if "approve" in order:
        approve = order["approve"]
        return ApproveOrder(
            order_id=order_id,
            model_name=approve["model_name"],
            run_id=approve.get("run"),
            is_rejected=approve.get("reject", False),
        )
    if "clean" in order:
        return CleanOrder()
    rollback = order["rollback"]
    return RollbackOrder(order_id=order_id, model_name=rollback["model_name"], to_run=rollback.get("to_run"))


def unknown_rule(rule_id: str, known: Sequence[str]) -> Refused:
    """The refusal of an order for a rule that is not in the book."""
    return refusal_of(
        path="$.fire.rule",
        problem="no rule has this id",
        value=rule_id,
        allowed=listed(known) or "none: no rule has been accepted",
        repair=nearest(rule_id, known),
    )


def removed_rule(rule_id: str) -> Refused:
    """The refusal of an order for a rule whose file is deleted, and which no tick has retired yet."""
    return refusal_of(
        path="$.fire.rule",
        problem=f"the rule {rule_id} is removed",
        repair="drop its file again to bring it back",
    )


def unknown_run(run_id: str) -> Refused:
    """The refusal of an order about a run that is not on record."""
    return refusal_of(
        path="$.cancel.run",
        problem="no run has this id",
        value=run_id,
        repair="a run's id is in the status object of its drop and the name of its record",
    )
