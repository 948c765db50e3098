"""Takes rules out of force whose turns keep failing or that fire too often, so that they cost the others nothing."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.rule import Quarantine, Rule, rule_quarantined
from trainmaster.orchestrator.core.retraining.state import RuleStanding, status_of
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.turns import ATTEMPTS_MAX, Turns
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.attempts import Item, ItemKind
from trainmaster.orchestrator.stores.store import Read


def rule_item(rule: Rule) -> Item:
    return Item(kind=ItemKind.RULE, name=rule.rule_id, generation=rule.generation, order=rule.rule_id)


def quarantine_rules(services: Services, turns: Turns, held: Read[Book]) -> Iterator[FlowResult]:
    """Put each rule whose turn failed too often into quarantine."""
    rules = {rule_item(rule): rule for rule in held.document.rules}
    failing = turns.items_in_quarantine(rules)
    failed, again = f"its turn failed {ATTEMPTS_MAX} times in a row", "drop its file again to try again"
    reasons = [(rules[item], f"{failed}: {why}; {again}") for item, why in failing]
    try:
        quarantine(services, held, reasons)
        for item, why in failing:
            services.attempts.forget(item)
            yield quarantine_result(f"rule {item.name}", why)
    except TrainmasterError as error:
        yield FlowResult(message=f"rules could not be put into quarantine yet: {error}", severity="WARNING")


def quarantine_result(what: str, why: str) -> FlowResult:
    """The log line about a rule or a file in quarantine."""
    message = f"{what} is in quarantine until its file is dropped again: {why}"
    return FlowResult(message=message, severity="ERROR", event=LogEvent.QUARANTINED)


def quarantine(services: Services, held: Read[Book], reasons: Sequence[tuple[Rule, str]]) -> None:
    """Put the rules into quarantine, each for its reason: first their notices and statuses, then the book.

    A crash in between leaves the rest to the next attempt. A rule that was dropped again meanwhile stays in force.

    Raises:
        GenerationMoved: the book changed meanwhile.
    """
    book, now = held.document, services.clock.now()
    for rule, reason in reasons:
        # With the firings so far from the last status; the rule's state is not read, because that may be what fails.
        present = services.rule_statuses.find(rule.dropped_name)
        if present is None or present.generation != rule.generation:
            present = status_of(rule, None, now)
        standing = RuleStanding.QUARANTINED
        status = replace(present, state=standing, updated_at=now, in_force=None, reason=reason)
        quarantine = Quarantine(reason=reason, at=now)
        services.notices.publish(rule_quarantined(rule, status.firings or 0, quarantine))
        services.rule_statuses.write(status)
        book = book.with_quarantined(replace(rule, quarantine=quarantine))
    if book != held.document:
        services.rule_book.replace(held, book)
