"""Orders: documents that start no job by themselves. They come where requests come.

schemas/order.v1.schema.json
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.core.launch.request import Refused

ORDER_SCHEMA = "order.v1"


@dataclass(frozen=True, kw_only=True)
class FireOrder:
    """Fire this rule now."""

    rule_id: str


@dataclass(frozen=True, kw_only=True)
class RollbackOrder:
    """Make an earlier champion the champion again: that of `to_run`, or the one before."""

    model_name: str
    to_run: str | None = None


Order = FireOrder | RollbackOrder


def order_in(content: bytes, *, as_json: bool, schema: Mapping[str, Any]) -> Order | Refused | None:
    """The order in these bytes, or every fault of it; None when they hold no order but, perhaps, a request.

    A document is an order when it has one of the keys `fire` and `rollback` and none of a request's.
    """
    raise NotImplementedError
