"""Follows the files under rules/ at each tick: events may be lost, and a deletion causes none."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from trainmaster.orchestrator.core.errors import GenerationMoved, TrainmasterError
from trainmaster.orchestrator.core.requests.incoming import StoredObject, drop_of
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.reading import rule_id_of
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.state import RuleStanding, status_of
from trainmaster.orchestrator.flows.retraining.accept import accept, answer_without_rule
from trainmaster.orchestrator.flows.retraining.quarantine import quarantine_result, rule_item
from trainmaster.orchestrator.flows.retraining.turn import Turn, decide_nothing, take_turn
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.turns import ATTEMPTS_MAX, Turns, error_text, severity_of
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.ports.objects import Listed
from trainmaster.orchestrator.stores.attempts import Item, ItemKind
from trainmaster.orchestrator.stores.store import Read

ANSWERS = (RuleStanding.REFUSED, RuleStanding.QUARANTINED)
"""What a drop has that is not in the book, and needs no check."""


def check_drops(
    services: Services, turns: Turns, book: Book, files: Sequence[Listed], until: datetime
) -> Iterator[FlowResult]:
    """Answer drops without an answer. Safe to repeat and to run concurrently."""
    accepted = {rule.rule_id: rule.generation for rule in book.rules}
    unknown = {
        Item(kind=ItemKind.DROP, name=file.name, generation=file.generation, order=file.name): file
        for file in files
        if accepted.get(rule_id_of(file.name) or "", 0) < file.generation
    }
    items = turns.order(ItemKind.DROP, unknown)
    for item, why in turns.items_in_quarantine(unknown):
        yield from _quarantine(services, item, why)
    checked = 0
    for done in turns.give_turns(items, lambda item: _check(services, unknown[item]), until=until):
        checked += 1
        if done.error is not None:
            message = f"{done.item.name} could not be checked: {error_text(done.error)}"
            yield FlowResult(message=message, severity=severity_of(done.error))
        elif done.result is not None:
            yield done.result
    if left := len(items) - checked:
        message = f"out of time with {left} files of rules left; the next tick begins with them"
        yield FlowResult(message=message, severity="WARNING", event=LogEvent.RECONCILE_BEHIND)


def _check(services: Services, file: Listed) -> FlowResult | None:
    status = services.rule_statuses.find(file.name)
    if status is not None and status.generation >= file.generation and status.state in ANSWERS:
        return None
    dropped = StoredObject(
        bucket=services.buckets.inbox,
        name=file.name,
        generation=file.generation,
        size_bytes=file.size_bytes,
    )
    now = services.clock.now()
    return accept(services, drop_of(dropped, f"tick/{dropped.generation}", now, now, {}), dropped)


def _quarantine(services: Services, item: Item, why: str) -> Iterator[FlowResult]:
    """Write the answer to a drop whose check keeps failing. An older accepted generation stays in force."""
    reason = f"its check failed {ATTEMPTS_MAX} times in a row: {why}; repair the file, and drop it again"
    try:
        answer = answer_without_rule(services, item.name, item.generation, RuleStanding.QUARANTINED)
        services.rule_statuses.write(replace(answer, reason=reason))
        services.attempts.forget(item)
    except TrainmasterError as error:
        message = f"{item.name} could not be put into quarantine yet: {error}"
        yield FlowResult(message=message, severity="WARNING")
    else:
        yield quarantine_result(item.name, why)


def retire_deleted(
    services: Services,
    turns: Turns,
    held: Read[Book],
    files: Sequence[Listed],
    listed_to: str | None,
    *,
    until: datetime,
) -> Iterator[FlowResult]:
    """Retire the rules whose file is gone: launch what they had decided, report them, then remove them from the book.

    Their states stay. If a drop was accepted meanwhile, the book has changed, and the next tick repeats this.
    """
    present = {file.name for file in files}
    # If the listing was cut short, nothing is known about later names.
    gone = {
        rule_item(rule): rule
        for rule in held.document.rules
        if rule.dropped_name not in present and (listed_to is None or rule.dropped_name < listed_to)
    }
    due = [item for item in gone if turns.may_take(item)]
    book = held.document
    for done in turns.give_turns(due, lambda item: _retire(services, gone[item]), until=until):
        rule = gone[done.item]
        if done.result is None:
            message = f"{rule.rule_id} could not be retired yet: {error_text(done.error)}"
            yield FlowResult(message=message, severity=severity_of(done.error))
            continue
        yield from done.result.results
        if done.result.undecided is None:
            book = book.without(rule.rule_id)
            yield FlowResult(message=f"rule {rule.rule_id} is retired: {rule.dropped_name} was deleted")
    if book != held.document:
        with contextlib.suppress(GenerationMoved):
            services.rule_book.replace(held, book)


def _retire(services: Services, rule: Rule) -> Turn:
    turn = Turn() if rule.quarantine is not None else take_turn(services, rule, decide_nothing)
    if turn.undecided is None:
        last, reason = status_of(rule, None, services.clock.now()), "its file was deleted"
        retired = replace(last, state=RuleStanding.RETIRED, in_force=None, firings=None, reason=reason)
        services.rule_statuses.write(retired)
    return turn
