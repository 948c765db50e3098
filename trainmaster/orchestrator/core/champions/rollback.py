"""An order brings an earlier champion back."""

from dataclasses import replace
from datetime import datetime

from trainmaster.orchestrator.core.champions.champion import Cause, Champion, Reign, crowned
from trainmaster.orchestrator.core.documents.faults import listed


def after_rollback(champion: Champion, to_run: str | None, *, order_id: str, now: datetime) -> Champion | str:
    """The document with an earlier champion again, or why there can be none. The same order changes it once."""
    if any(reign.order_id == order_id for reign in champion.history):
        return champion
    current = champion.current
    if current is None:
        return "there is no champion"
    if to_run is None:
        earlier = _before(champion, current)
    elif to_run == current.run_id:
        return f"{to_run} is the champion already"
    else:
        earlier = [reign for reign in champion.history if reign.run_id == to_run]
    if not earlier:
        return f"{to_run} was never champion" if to_run else "there was no other champion before"
    again = replace(
        earlier[-1],
        number=current.number + 1,
        cause=Cause.ROLLBACK,
        since=now,
        order_id=order_id,
    )
    return crowned(replace(champion, updated_at=now), again)


def reign_by_order(champion: Champion, order_id: str) -> Reign:
    """The reign that a rollback began.

    Raises:
        StopIteration: none did; `after_rollback` was not asked.
    """
    return next(reign for reign in champion.history if reign.order_id == order_id)


def earlier_runs(champion: Champion) -> str:
    """Whose champions may come back, the latest first."""
    current = champion.current.run_id if champion.current else ""
    runs = dict.fromkeys(reign.run_id for reign in reversed(champion.history) if reign.run_id != current)
    return listed(runs) or "none"


def _before(champion: Champion, current: Reign) -> list[Reign]:
    """The reigns before the present champion's first, oldest first.

    Not simply the reigns before the present one: after a rollback the last of those is the one that was left,
    and a second order would lead forward to it again.
    """
    runs = [reign.run_id for reign in champion.history]
    return list(champion.history[: runs.index(current.run_id)])
