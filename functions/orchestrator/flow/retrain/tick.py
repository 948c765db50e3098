"""What no event told of rules: arrivals are counted, what is due fires, lost drops are answered, gone rules retired.

The cost follows the batches that came since the last tick and the number of rules, never the length of history.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial

from orchestrator.core.errors import DocumentDamaged, GenerationMoved, TrainmasterError
from orchestrator.core.retrain.book import Book
from orchestrator.core.retrain.decision import Decision, Nothing, decide_on_tick
from orchestrator.core.retrain.names import rule_id_of
from orchestrator.core.retrain.rule import Rule
from orchestrator.core.retrain.state import KEPT_BATCHES, RuleState
from orchestrator.core.retrain.status import RuleStanding, RuleStatus
from orchestrator.flow.retrain.accept import RuleDrop, accept
from orchestrator.flow.retrain.turn import Facts, take_turn
from orchestrator.flow.services import Happened, Services
from orchestrator.ports import DroppedRule, HeldBook

MOST_BATCHES = KEPT_BATCHES
"""Batches that one tick counts; the next one goes on. A state remembers all of them until they are deleted."""


def tick(services: Services) -> Iterator[Happened]:
    """Give every rule its turn. Safe to repeat and at once: whoever loses a race finds nothing left to do.

    One rule's failure is told and keeps no other waiting.

    Raises:
        ServiceFailed, DocumentDamaged: the rules cannot be read; the next tick tries again.
    """
    # The batches before the book: an object that came after its rule was accepted is then counted by it.
    names = services.arrivals.names(MOST_BATCHES)
    # The book before the inbox: a rule that the book has and the inbox has not was deleted, not just dropped.
    held = services.rule_book.read()
    changes = list(_with_inbox(services, held))
    yield from changes
    book = services.rule_book.read().book if changes else held.book
    yield from _turns(services, book, names)


def _turns(services: Services, book: Book, names: Sequence[str]) -> Iterator[Happened]:
    waited_for = any(rule.new_data for rule in book.rules)
    batches = services.arrivals.read(names) if names and waited_for else ()
    counted = True
    for rule in book.rules:
        counted_in = batches if rule.enabled else ()
        try:
            yield from take_turn(services, rule, partial(decide_due, rule), counted_in).happened
        except TrainmasterError as error:
            yield Happened(message=f"{rule.rule_id} had no turn: {error}", severity="WARNING")
            # What cannot be read will not be read next time: it must not keep the batches for ever.
            counted = counted and (isinstance(error, DocumentDamaged) or not rule.new_data)
    if counted and names:
        services.arrivals.delete(names)


def decide_due(rule: Rule, state: RuleState, facts: Facts) -> Decision:
    """What is due by itself: data, schedules, age, and what is queued."""
    return decide_on_tick(
        rule, state, now=facts.now, champion=facts.champion, current_ended=facts.current_ended
    )


def _with_inbox(services: Services, held: HeldBook) -> Iterator[Happened]:
    """Bring the book up to the files in the inbox: events are lost, and deletions raise none."""
    dropped = services.inbox.rules()
    for drop in dropped:
        if not _answered(services, held.book, drop):
            yield from _accepted(services, drop)
    present = {drop.name for drop in dropped}
    gone = [rule for rule in held.book.rules if rule.dropped_name not in present]
    if gone:
        yield from _retired(services, held, gone)


def _answered(services: Services, book: Book, drop: DroppedRule) -> bool:
    rule_id = rule_id_of(drop.name)
    rule = book.find(rule_id) if rule_id is not None else None
    if rule is not None and rule.generation >= drop.generation:
        return True
    told = services.rule_statuses.find(drop.name)
    return told is not None and told.generation >= drop.generation and told.state is RuleStanding.REFUSED


def _accepted(services: Services, drop: DroppedRule) -> Iterator[Happened]:
    now = services.clock.now()
    found = RuleDrop(
        name=drop.name,
        generation=drop.generation,
        size_bytes=drop.size_bytes,
        event_id=f"tick/{drop.generation}",
        event_time=now,
    )
    try:
        yield accept(services, found)
    except TrainmasterError as error:
        yield Happened(message=f"{drop.name} was not looked at: {error}", severity="WARNING")


def _retired(services: Services, held: HeldBook, gone: Sequence[Rule]) -> Iterator[Happened]:
    """Take the rules from the book, then tell. What they had decided is launched first."""
    book, retired = held.book, []
    for rule in gone:
        try:
            turn = take_turn(services, rule, _decide_nothing)
        except TrainmasterError as error:
            yield Happened(message=f"{rule.rule_id} is not retired yet: {error}", severity="WARNING")
            continue
        yield from turn.happened
        if turn.undecided is None:
            book = book.without(rule.rule_id)
            retired.append(rule)
    try:
        services.rule_book.replace(held, book)
    except GenerationMoved:
        return  # another tick does it, or the next one
    for rule in retired:
        services.rule_statuses.tell(_retirement(rule, services.clock.now()))
        yield Happened(message=f"rule {rule.rule_id} was retired: {rule.dropped_name} was deleted")


def _decide_nothing(_: RuleState, __: Facts) -> Decision:
    return Nothing()


def _retirement(rule: Rule, now: datetime) -> RuleStatus:
    return RuleStatus(
        dropped_name=rule.dropped_name,
        generation=rule.generation,
        state=RuleStanding.RETIRED,
        updated_at=now,
        rule_id=rule.rule_id,
        reason="its file was deleted",
    )
