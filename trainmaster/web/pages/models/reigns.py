"""The reigns of champions, with the bars that show how long each lasted."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from trainmaster.client.rules.champions import Reigned, after_roll_back, reigns_of
from trainmaster.client.times import minute
from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.web.pages.models.asked_model import address_of, name_of

REIGNS_SHOWN = 50
BAR_UNITS = 1000
"""The width of the time from the first reign to now, in the units of the drawing."""
_STEPS = 32


@dataclass(frozen=True, kw_only=True)
class ReignRow:
    """A reign with its bar: where it begins and how long it is, in BAR_UNITS."""

    reigned: Reigned
    since: str
    until: str
    start: int
    length: int
    restore: str
    """The address of the order that restores it; empty if it cannot be restored."""


def reign_rows(champion: Champion, now: datetime) -> Iterator[ReignRow]:
    """The reigns, latest first, at most REIGNS_SHOWN."""
    reigns = reigns_of(champion)[:REIGNS_SHOWN]
    if not reigns:
        return
    first = reigns[-1].reign.since
    whole = _rounded_up((now - first).total_seconds())
    current = champion.current.run_id if champion.current else None
    for each in reigns:
        start = (each.reign.since - first).total_seconds()
        end = (each.until - first).total_seconds() if each.until else whole
        run_id = each.reign.run_id
        query = urlencode({"to_run": run_id})
        may_return = run_id != current and not refusal(champion, run_id)
        yield ReignRow(
            reigned=each,
            since=minute(each.reign.since),
            until=minute(each.until) if each.until else "",
            start=min(max(int(BAR_UNITS * start / whole), 0), BAR_UNITS),
            length=min(max(int(BAR_UNITS * (end - start) / whole), 4), BAR_UNITS),
            restore=f"{address_of(name_of(champion))}/-/rollback?{query}" if may_return else "",
        )


def _rounded_up(seconds: float) -> int:
    """Rounded up to a few of its leading bits, so that a page does not change with every second."""
    whole = max(int(seconds) + 1, 1)
    step = max(1, 1 << max(whole.bit_length() - _STEPS.bit_length(), 0))
    return -(-whole // step) * step


def refusal(champion: Champion, to_run: str | None) -> str:
    """Why that run cannot be restored; empty if it can."""
    restored = after_roll_back(champion, to_run)
    return restored if isinstance(restored, str) else ""
