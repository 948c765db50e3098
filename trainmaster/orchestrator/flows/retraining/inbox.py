"""Files come to the inbox and go from it: the book is brought up to them, whether or not an event told.

Events may be lost, and a deletion raises none.
"""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import datetime

from trainmaster.orchestrator.core.errors import GenerationMoved, TrainmasterError
from trainmaster.orchestrator.core.retraining.rules.book import Book
from trainmaster.orchestrator.core.retraining.rules.names import rule_id_of
from trainmaster.orchestrator.core.retraining.rules.rule import Rule
from trainmaster.orchestrator.core.retraining.status import RuleStanding, RuleStatus
from trainmaster.orchestrator.flows.retraining.accept import RuleDrop, accept
from trainmaster.orchestrator.flows.retraining.turn import decide_nothing, take_turn
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.ports.objects import Listed
from trainmaster.orchestrator.stores.rules import HeldBook


def follow_inbox(services: Services) -> Iterator[Happened]:
    """Answer drops that nobody has answered, and retire rules whose file is gone. Safe to repeat and at once."""
    # The book before the inbox: a rule that the book has and the inbox has not was deleted, not just dropped.
    held = services.rule_book.read()
    dropped = services.inbox.rules()
    for drop in dropped:
        if not _answered(services, held.book, drop):
            yield _accepted(services, drop)
    present = {drop.name for drop in dropped}
    gone = [rule for rule in held.book.rules if rule.dropped_name not in present]
    if gone:
        yield from _retired(services, held, gone)


def _answered(services: Services, book: Book, drop: Listed) -> bool:
    rule_id = rule_id_of(drop.name)
    rule = book.find(rule_id) if rule_id is not None else None
    if rule is not None and rule.generation >= drop.generation:
        return True
    told = services.rule_statuses.find(drop.name)
    return told is not None and told.generation >= drop.generation and told.state is RuleStanding.REFUSED


def _accepted(services: Services, drop: Listed) -> Happened:
    now = services.clock.now()
    found = RuleDrop(
        name=drop.name,
        generation=drop.generation,
        size_bytes=drop.size_bytes,
        event_id=f"tick/{drop.generation}",
        event_time=now,
    )
    try:
        return accept(services, found)
    except TrainmasterError as error:
        return Happened(message=f"{drop.name} was not looked at: {error}", severity="WARNING")


def _retired(services: Services, held: HeldBook, gone: Sequence[Rule]) -> Iterator[Happened]:
    """What the rules had decided is launched, then they are told of, then taken from the book; their states stay.

    A drop that was accepted meanwhile changed the book: then the next tick does this again.
    """
    book = held.book
    for rule in gone:
        try:
            turn = take_turn(services, rule, decide_nothing)
            yield from turn.happened
            if turn.undecided is not None:
                continue
            services.rule_statuses.tell(_retirement(rule, services.clock.now()))
        except TrainmasterError as error:
            yield Happened(message=f"{rule.rule_id} is not retired yet: {error}", severity="WARNING")
            continue
        book = book.without(rule.rule_id)
        yield Happened(message=f"rule {rule.rule_id} is retired: {rule.dropped_name} was deleted")
    with contextlib.suppress(GenerationMoved):
        services.rule_book.replace(held, book)


def _retirement(rule: Rule, now: datetime) -> RuleStatus:
    return RuleStatus(
        dropped_name=rule.dropped_name,
        generation=rule.generation,
        state=RuleStanding.RETIRED,
        updated_at=now,
        rule_id=rule.rule_id,
        reason="its file was deleted",
    )
