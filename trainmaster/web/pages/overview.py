"""The first page: what runs, what waits and why, and what failed today; the rest is loaded after its first paint."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from trainmaster.client.errors import NotFound
from trainmaster.client.find import read_run
from trainmaster.client.rules.champions import changed_champions
from trainmaster.client.rules.found_rule import Awaited, FoundRule
from trainmaster.client.rules.listing import list_rules
from trainmaster.client.runs.admission_objects import active_runs
from trainmaster.client.runs.listing import Filters, RunList, list_runs
from trainmaster.client.runs.queue_listing import QueueListing, Waits
from trainmaster.client.shown.cost_lines import total_cost
from trainmaster.client.shown.queue_lines import cap_texts, waits_text
from trainmaster.client.study.study import number
from trainmaster.orchestrator.core.admission.index_row import index_row_of
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import ENDS, RunState
from trainmaster.web.pages.dead_letters import read_letters
from trainmaster.web.pages.queue_page import queue_now
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import Ask, ConsolePage, ConsoleSubject, PageRoute

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

NEWEST_READ, NEWEST_SHOWN = 100, 8
TODAY_MAX = 500
"""Runs of today that are looked through, in one listing."""
ROWS_MAX = 10
"""Of each section; its heading links to all."""
FAILED_SHOWN = RULES_SHOWN = CHAMPIONS_SHOWN = 5
METRICS_SHOWN = 3
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
FAILED = frozenset({RunState.FAILED, RunState.REJECTED, RunState.EXPIRED, RunState.PARTIALLY_SUCCEEDED})


@dataclass(frozen=True, kw_only=True)
class Today:
    """The runs of today (UTC), newest first; `complete` False: there are more than are looked through."""

    rows: Sequence[IndexRow]
    complete: bool

    @property
    def spent(self) -> str:
        """What those cost that have ended. Empty without a known price."""
        return total_cost([row for row in self.rows if row.cost is not None], is_complete=self.complete)

    @property
    def may_follow(self) -> str:
        """The most that the others may cost. Empty where none has a known price."""
        return total_cost([row for row in self.rows if row.state not in ENDS], is_complete=self.complete)

    @property
    def cost(self) -> str:
        """What they cost; of those that have not ended, the most that they may cost. Empty without a known price."""
        return total_cost(self.rows, is_complete=self.complete)


def overview(ask: Ask) -> ConsolePage:
    """What runs, what waits, what failed today, and the newest runs."""
    midnight = ask.now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with ThreadPoolExecutor(4) as pool:  # each waits for its own listings
        reads = (
            pool.submit(_read_newest, ask),
            pool.submit(_read_since, ask, midnight),
            pool.submit(ask.source.read, "active", AnswerAge.LIVE, active_runs),
            pool.submit(queue_now, ask),
        )
        newest, since, marked, queue = (
            reads[0].result(), reads[1].result(), reads[2].result(), reads[3].result(),
        )  # fmt: skip
    today = _runs_of_today(newest, since, midnight)
    running, active = _running_rows(ask, newest.rows, queue, marked)
    failed = list(_failed_rows([*today.rows, *newest.rows], midnight))
    return ConsolePage(
        title="Overview",
        template="overview.html",
        values={
            "newest": newest.rows[:NEWEST_SHOWN],
            "running": running,
            "active": active,
            "waiting": list(_waiting_rows(newest.rows, queue))[:ROWS_MAX],
            "queued": len(queue.waiting),
            "failed": failed[:FAILED_SHOWN],
            "failures": len(failed),
            "today": today,
            "midnight": midnight.date().isoformat(),
            "caps_now": queue.caps,
            "may_cost": queue.started.may_cost_today or Decimal(0),
            "caps": cap_texts(queue),
        },
        command="trainmaster ls",
    )


def _read_newest(ask: Ask) -> RunList:
    return ask.source.read(
        ("runs-newest", NEWEST_READ),
        AnswerAge.LIVE,
        lambda clients: list_runs(clients, Filters(), limit=NEWEST_READ),
    )


def _read_since(ask: Ask, midnight: datetime) -> RunList:
    return ask.source.read(
        ("runs-since", midnight),
        AnswerAge.SLOW,
        lambda clients: list_runs(clients, Filters(since=midnight), limit=TODAY_MAX),
    )


def _runs_of_today(newest: RunList, since: RunList, midnight: datetime) -> Today:
    """The runs of today, those among the newest as they are now."""
    by_id = {row.run_id: row for row in (*since.rows, *newest.rows) if row.created_at >= midnight}
    rows = sorted(by_id.values(), key=lambda row: row.created_at, reverse=True)
    return Today(rows=rows, complete=since.next_before is None)


def _failed_rows(rows: Sequence[IndexRow], midnight: datetime) -> Iterator[IndexRow]:
    """The runs that failed since midnight, each once, those that ended last first."""
    by_id = {
        row.run_id: row
        for row in rows
        if row.state in FAILED and (row.ended_at or row.updated_at) >= midnight
    }
    yield from sorted(by_id.values(), key=lambda row: row.ended_at or row.updated_at, reverse=True)


def _waiting_rows(rows: Sequence[IndexRow], queue: QueueListing) -> Iterator[tuple[Waits, str]]:
    """The first runs in the queue, each with why it waits."""
    reasons = {row.run_id: row.reason for row in rows if row.state is RunState.WAITING}
    for each in queue.waiting[:ROWS_MAX]:
        yield each, reasons.get(each.run_id) or f"waits for {waits_text(each)}"


def _running_rows(
    ask: Ask, rows: Sequence[IndexRow], queue: QueueListing, marked: Sequence[str]
) -> tuple[list[tuple[IndexRow, str]], int]:
    """The newest runs that have not ended and do not wait, each with how far it is, and how many there are."""
    known = {row.run_id: row for row in rows}
    waiting = {each.run_id for each in queue.waiting}
    ids = [
        each
        for each in marked
        if each not in waiting and (each not in known or known[each].state not in ENDS)
    ]
    ids.sort(key=lambda each: known[each].created_at if each in known else _LONG_AGO, reverse=True)
    return [found for each in ids[:ROWS_MAX] if (found := _running_row(ask, each, known.get(each)))], len(ids)


def _running_row(ask: Ask, run_id: str, row: IndexRow | None) -> tuple[IndexRow, str] | None:
    record = ask.source.read(("record-of", run_id), AnswerAge.SLOW, lambda clients: _record(clients, run_id))
    if row is None:  # older than the newest runs
        row = index_row_of(record, 0) if record is not None else None
    if row is None or row.state in ENDS:
        return None
    return row, _progress(record) if record is not None else ""


def _record(clients: "Clients", run_id: str) -> RunRecord | None:
    try:
        return read_run(clients, run_id).record
    except NotFound:
        return None


def _progress(record: RunRecord) -> str:
    """`3 trials succeeded, 2 active; best accuracy 0.81`, or the latest metrics."""
    progress = record.progress
    if progress is None:
        return ""
    trials = [f"{count} {state.lower()}" for state, count in (progress.trials or {}).items()]
    best = progress.best_trial
    metrics = [f"{name} {number(value)}" for name, value in sorted((progress.metrics or {}).items())]
    said = (
        f"trials: {', '.join(trials)}" if trials else "",
        f"best {best.metric} {number(best.value)}" if best else "",
        ", ".join(metrics[:METRICS_SHOWN]),
    )
    return "; ".join(filter(None, said))


def lately(ask: Ask) -> ConsolePage:
    """The page from which the first one takes next firings and changed champions."""
    rules = ask.source.read("rules", AnswerAge.RARE, list_rules)
    champions = ask.source.read(
        "champions-changed", AnswerAge.RARE, lambda clients: changed_champions(clients, CHAMPIONS_SHOWN)
    )
    return ConsolePage(
        title="Lately",
        template="lately.html",
        values={
            "rules": _next_rules(rules, ask.now)[:RULES_SHOWN],
            "any_rule": bool(rules),
            "champions": champions,
        },
        command="trainmaster rules ls",
    )


def dead_letters(ask: Ask) -> ConsolePage:
    """How many there are. Reading them takes seconds and hides them from other readers, so it is done once a page load."""
    found = read_letters(ask, AnswerAge.RARE)
    return ConsolePage(
        title="Dead letters",
        template="dead_letters_count.html",
        values={"count": len(found.letters), "may_be_more": found.may_be_more},
        command="trainmaster dead-letters ls",
        is_final=True,
    )


def _next_rules(rules: Sequence[FoundRule], now: datetime) -> list[tuple[FoundRule, list[Awaited]]]:
    """The rules that may fire, those with a known time first, each with its conditions."""
    last = datetime.max.replace(tzinfo=now.tzinfo)
    deciding = sorted(
        (rule for rule in rules if rule.decides), key=lambda rule: (rule.next_at(now) or last, rule.name)
    )
    return [(rule, list(rule.awaited(now))) for rule in deciding]


SUBJECT = ConsoleSubject(
    pages=[
        PageRoute(path="/", show=overview),
        PageRoute(path="/overview/lately", show=lately),
        PageRoute(path="/overview/dead-letters", show=dead_letters),
    ]
)
