"""Takes rules out of force whose turns keep failing, so that they cost the others nothing."""

from collections.abc import Iterator
from dataclasses import replace

from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.retraining.rule import Quarantine, Rule
from trainmaster.orchestrator.core.retraining.state import RuleStanding, RuleStatus
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.turns import ATTEMPTS_MAX, Turns
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.attempts import Item, Kind
from trainmaster.orchestrator.stores.rules import HeldBook


def rule_item(rule: Rule) -> Item:
    return Item(kind=Kind.RULE, name=rule.rule_id, generation=rule.generation, order=rule.rule_id)


def quarantine_rules(services: Services, turns: Turns, held: HeldBook) -> Iterator[FlowResult]:
    """Put each rule that failed too often into quarantine: first its status says so, then the book.

    A crash in between, or a rule that is accepted meanwhile, leaves the rest to the next tick.
    """
    rules = {rule_item(rule): rule for rule in held.book.rules}
    found = turns.quarantined(rules)
    if not found:
        return
    book, now = held.book, services.clock.now()
    try:
        for item, why in found:
            rule = rules[item]
            reason = f"its turn failed {ATTEMPTS_MAX} times in a row: {why}; drop its file again to try again"
            _show(services, rule, reason)
            book = book.with_quarantined(replace(rule, quarantine=Quarantine(reason=reason, at=now)))
        if book != held.book:
            services.rule_book.replace(held, book)
        for item, why in found:
            turns.release(item)
            yield quarantined(f"rule {item.name}", why)
    except TrainmasterError as error:
        yield FlowResult(message=f"rules could not be put into quarantine yet: {error}", severity="WARNING")


def quarantined(what: str, why: str) -> FlowResult:
    message = f"{what} is in quarantine until its file is dropped again: {why}"
    return FlowResult(message=message, severity="ERROR", event=LogEvent.QUARANTINED)


def _show(services: Services, rule: Rule, reason: str) -> None:
    """The firings so far stay in the status; the rule's state is not read, because that may be what fails."""
    present = services.rule_statuses.find(rule.dropped_name)
    if present is None or present.generation != rule.generation:
        present = RuleStatus(
            dropped_name=rule.dropped_name,
            generation=rule.generation,
            state=RuleStanding.QUARANTINED,
            updated_at=services.clock.now(),
            rule_id=rule.rule_id,
        )
    services.rule_statuses.write(
        replace(
            present,
            state=RuleStanding.QUARANTINED,
            updated_at=services.clock.now(),
            in_force=None,
            reason=reason,
        )
    )
