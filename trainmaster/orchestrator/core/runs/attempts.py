"""What a run went through before it had a job that ran: what was tried, what was given up, why it waits."""

from dataclasses import dataclass
from datetime import datetime

TRIES_KEPT = 50
REASON_MAX_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Why there is no job yet, how often the whole ladder was tried, and when the next attempt is due.

    `too_fast`: the service asked for fewer requests, so until then no run is submitted to that region.
    `aside`: the run waits for a place under this limit of its own, and keeps nobody else from going.
    """

    reason: str
    attempts: int
    not_before: datetime
    too_fast: bool = False
    aside: str | None = None


@dataclass(frozen=True, kw_only=True)
class GivenUp:
    """A job that ended for want of capacity before it ran: it is the run's no more, and no second one either."""

    job: str
    rung: int
    reason: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Try:
    """A rung of the ladder on which the run found no place, and why."""

    rung: int
    text: str
    at: datetime
    outcome: str


@dataclass(frozen=True, kw_only=True)
class Estimated:
    """What the run was estimated to cost, as decimals in text, by a table whose oldest price is of `as_of`.

    Of the dearest step of the ladder whose prices are known; None where no step's are. `unknown` says whose are not.
    """

    currency: str
    as_of: str | None = None
    per_hour: str | None = None
    at_most: str | None = None
    unknown: tuple[str, ...] = ()


def shortened(reason: str) -> str:
    """The reason as records keep it: the service's words come with long links."""
    return reason if len(reason) <= REASON_MAX_CHARS else f"{reason[: REASON_MAX_CHARS - 1]}…"
