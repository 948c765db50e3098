"""The part of the Overview that is loaded after its first paint: runs a day, next firings, and changed champions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.client.dead_letters.opened import list_letters
from trainmaster.client.rules.champions import changed_champions
from trainmaster.client.rules.found_rule import Awaited, FoundRule
from trainmaster.client.rules.listing import list_rules
from trainmaster.client.runs.daily import Days, runs_per_day
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import ApiRoute, Ask, ConsolePage, ConsoleSubject, PageRoute

DAYS = 14
RULES_SHOWN = CHAMPIONS_SHOWN = 5
BAR_WIDTH, BAR_GAP, BARS_HEIGHT = 14, 4, 48
"""Of the sparkline, in units of its SVG."""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A day of the sparkline. `x`, `y` and `height` are in units of its SVG."""

    text: str
    x: int
    y: int
    height: int


@dataclass(frozen=True, kw_only=True)
class NextRule:
    """A rule, its conditions, and the share of the nearest one that is met, from 0 to 1."""

    rule: FoundRule
    awaited: Sequence[Awaited]
    share: float
    due_at: datetime | None


def lately(ask: Ask) -> ConsolePage:
    """The page that the Overview takes its part from."""
    days = _days(ask)
    rules = ask.source.read("rules", AnswerAge.RARE, list_rules)
    champions = ask.source.read(
        "champions-changed", AnswerAge.RARE, lambda clients: changed_champions(clients, CHAMPIONS_SHOWN)
    )
    return ConsolePage(
        title="Lately",
        template="lately.html",
        values={
            "days": days,
            "bars": list(_bars(days)),
            "width": DAYS * (BAR_WIDTH + BAR_GAP),
            "height": BARS_HEIGHT,
            "bar_width": BAR_WIDTH,
            "rules": list(_next_rules(rules, ask.now))[:RULES_SHOWN],
            "any_rule": bool(rules),
            "champions": champions,
        },
        command=f"trainmaster ls --since {DAYS}d -o json",
    )


def dead_letters(ask: Ask) -> ConsolePage:
    """How many there are. Reading them takes seconds and hides them from other readers, so it is done once a page load."""
    found = ask.source.read("dead-letters", AnswerAge.RARE, list_letters)
    return ConsolePage(
        title="Dead letters",
        template="dead_letters_count.html",
        values={"count": len(found.letters), "may_be_more": found.may_be_more},
        command="trainmaster dead-letters ls",
        is_final=True,
    )


def _days(ask: Ask) -> Days:
    today = ask.now.astimezone(UTC).date()
    first, yesterday = today - timedelta(days=DAYS - 1), today - timedelta(days=1)
    earlier = ask.source.read(
        ("days", first, yesterday), AnswerAge.KEPT, lambda clients: runs_per_day(clients, first, yesterday)
    )
    now = ask.source.read(
        ("days", today), AnswerAge.RARE, lambda clients: runs_per_day(clients, today, today)
    )
    return earlier.followed_by(now)


def _bars(days: Days) -> Iterator[Bar]:
    for index, day in enumerate(days.days):
        height = -(-BARS_HEIGHT * day.runs // max(days.most, 1))  # rounded up: one run is visible
        text = f"{day.date:%a %d %b}: {day.runs}"
        yield Bar(text=text, x=index * (BAR_WIDTH + BAR_GAP), y=BARS_HEIGHT - height, height=height)


def _next_rules(rules: Sequence[FoundRule], now: datetime) -> Iterator[NextRule]:
    """The rules that may fire, those with a known time first, then those with the most objects of what they need."""
    found = []
    for rule in rules:
        if rule.decides:
            awaited = tuple(rule.awaited(now))
            due_at = min((each.due_at for each in awaited if each.due_at is not None), default=None)
            found.append(
                NextRule(
                    rule=rule, awaited=awaited, share=max(map(_share, awaited), default=0), due_at=due_at
                )
            )
    last = datetime.max.replace(tzinfo=now.tzinfo)
    yield from sorted(found, key=lambda each: (each.due_at or last, -each.share, each.rule.name))


def _share(each: Awaited) -> float:
    return min((each.count or 0) / each.min_objects, 1.0) if each.min_objects else 0.0


def document(ask: Ask) -> dict[str, Any]:
    """The runs of each day, by date."""
    found = _days(ask)
    return {"days": {each.date.isoformat(): each.runs for each in found.days}, "complete": found.complete}


SUBJECT = ConsoleSubject(
    pages=[
        PageRoute(path="/overview/lately", show=lately),
        PageRoute(path="/overview/dead-letters", show=dead_letters),
    ],
    api=[
        ApiRoute(
            path="/overview/days",
            summary=f"How many runs were recorded on each of the last {DAYS} days (UTC).",
            read=document,
        )
    ],
)
