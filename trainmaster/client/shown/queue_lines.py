"""Lines about the queue: what each run waits for, the limits, and what counts towards the caps."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from trainmaster.client.runs.queue_listing import QueueListing, Waits
from trainmaster.client.shown.run_lines import queued_text
from trainmaster.client.terminal import Fact, plural
from trainmaster.client.times import span
from trainmaster.orchestrator.core.policy.currency import shown_money
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.states import RunState

OUTSIDE_SHOWN = 5


def waits_text(run: Waits, position: int | None = None) -> str:
    """What a run waits for, and behind which place of the queue."""
    if run.limit is not None:
        what = f"a slot of {run.limit}"
    elif run.rate_limited:
        what = f"fewer requests to {run.region}"
    else:
        what = run.quota_class
    return what if position is None else f"{what}, behind #{position}"


def place_text(place: Waits) -> str:
    """Where a run is in the queue, for what it waits, and behind which run."""
    behind = f", behind {place.behind}" if place.behind else ""
    return f"place {place.position}, for {waits_text(place)}{behind}"


def cap_texts(queue: QueueListing) -> list[tuple[str, str]]:
    """The caps that refuse runs now: the name of each, and a sentence about it."""
    caps = (cap.partition("/")[::2] for cap in queue.caps_reached)
    ends = {"cost_per_day": "runs end that cost less than they might, or it is over"}
    return [
        (
            name,
            f"The cap {name} is reached for {period} (UTC): more runs are rejected until {ends.get(name, 'it is over')}.",
        )
        for name, period in caps
    ]


def may_cost_text(queue: QueueListing) -> str:
    """What the starts of today may cost at most; empty where no price is known."""
    cost = queue.started.may_cost_today if queue.started.today else Decimal(0)
    if cost is None:
        return ""
    return shown_money(cost, queue.caps.currency) if queue.caps else f"{cost:.2f}"


def outside_text(row: IndexRow, now: datetime) -> str:
    """What a run outside the queue waits for: since when its job has not started, or when the run is retried, and why."""
    if row.retry_at is None:
        return queued_text(row.queued, now)
    when = f"in {span(row.retry_at - now)}" if row.retry_at > now else "now"
    return ": ".join(filter(None, (f"next try {when}", row.reason)))


def queue_facts(queue: QueueListing) -> Iterator[Fact]:
    """The runs outside the queue, the slots in use, and what counts towards the caps."""
    for label, rows, what, state in (
        ("submitted", queue.submitted_rows, "at the training service, not started yet", RunState.SUBMITTED),
        ("to retry", queue.pausing_rows, "pausing after the loss of a job", RunState.WAITING),
    ):
        more = len(rows) - OUTSIDE_SHOWN
        texts = ((row.run_id, outside_text(row, queue.at)) for row in rows[:OUTSIDE_SHOWN])
        lines = [": ".join(filter(None, text)) for text in texts]
        rest = [f"and {more} more: trainmaster ls --state {state}"] if more > 0 else []
        if lines:
            yield label, [f"{plural(len(rows), 'run')} {what}:", *lines, *rest]
    for limit in queue.limits:
        runs = [slot.run_id for slot in queue.slots if slot.limit == limit.name]
        of = "" if limit.jobs is None else f" of {limit.jobs}"
        by = f", by {', '.join(runs)}" if runs else ""
        yield "limit", [f"{limit.name}: {limit.in_use}{of} in use{by}"]
    yield "started", [_started_text(queue)]
    for _, text in cap_texts(queue):
        yield "cap", [text]


def _started_text(queue: QueueListing) -> str:
    started, caps = queue.started, queue.caps
    an_hour = f" of {caps.runs_per_hour}" if caps and caps.runs_per_hour is not None else ""
    text = f"{started.this_hour}{an_hour} this hour, {started.today} today (UTC)"
    if started.may_cost_today is None:
        return text
    a_day = ""
    if caps and caps.cost_per_day is not None:
        a_day = f" of {shown_money(caps.cost_per_day, caps.currency)}"
    return f"{text}, what they cost, or may cost until they end: {may_cost_text(queue)}{a_day}"
