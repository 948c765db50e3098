"""The part of the Overview that is loaded after its first paint: next firings, and changed champions."""

from collections.abc import Sequence
from datetime import datetime

from trainmaster.client.dead_letters.opened import list_letters
from trainmaster.client.rules.champions import changed_champions
from trainmaster.client.rules.found_rule import Awaited, FoundRule
from trainmaster.client.rules.listing import list_rules
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import Ask, ConsolePage, ConsoleSubject, PageRoute

RULES_SHOWN = CHAMPIONS_SHOWN = 5


def lately(ask: Ask) -> ConsolePage:
    """The page that the Overview takes its part from."""
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
    found = ask.source.read("dead-letters", AnswerAge.RARE, list_letters)
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
        PageRoute(path="/overview/lately", show=lately),
        PageRoute(path="/overview/dead-letters", show=dead_letters),
    ]
)
