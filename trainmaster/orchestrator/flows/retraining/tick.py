"""A tick gives every rule its turn: arrivals are counted, and due rules fire.

Its cost grows with the batches since the last tick and the number of rules, never with the length of the history.
"""

from collections.abc import Generator, Iterator
from functools import partial

from trainmaster.orchestrator.core.errors import DocumentDamaged, GenerationMoved, TrainmasterError
from trainmaster.orchestrator.core.retraining.decision import decide_on_tick
from trainmaster.orchestrator.core.retraining.state import KEPT_BATCHES
from trainmaster.orchestrator.flows.retraining.accept import follow_inbox
from trainmaster.orchestrator.flows.retraining.turn import Decide, decide_nothing, take_turn
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.stores.rules import HeldState

MOST_BATCHES = KEPT_BATCHES
"""Batches that are counted together: a state remembers all of them until they are deleted."""
ROUNDS_MAX = 20
"""How often a tick counts that many; the rest is left to the next tick."""


def tick(services: Services) -> Iterator[FlowResult]:
    """Give every rule its turn. Safe to repeat and to run concurrently: a tick that loses a race stops quietly.

    One rule's failure is reported, and delays no other rule.

    Raises:
        ServiceFailed, DocumentDamaged: the rules cannot be read; the next tick tries again.
    """
    yield from follow_inbox(services)
    for _ in range(ROUNDS_MAX):
        more = yield from _round(services)
        if not more:
            return
    yield FlowResult(
        message="the arrivals that this tick could not count are left for the next", severity="WARNING"
    )


def _round(services: Services) -> Generator[FlowResult, None, bool]:
    """Count some batches and give every rule its turn. Returns whether there are more batches to count.

    The order of reads matters. The names are read before the book, so objects that arrive after a rule was accepted are
    counted for it. The states are read before the batches: if another tick counts and deletes a batch meanwhile, the
    batch is gone or the state has changed.
    """
    names = services.arrivals.names(MOST_BATCHES)
    more = len(names) == MOST_BATCHES
    rules = services.rule_book.read().book.rules
    states: dict[str, HeldState] = {}
    for rule in rules:
        try:
            states[rule.rule_id] = services.rule_states.read(rule.rule_id)
        except DocumentDamaged as error:  # it must not block the batches forever
            yield FlowResult(message=f"{rule.rule_id} was not evaluated: {error}", severity="ERROR")
    batches = services.arrivals.read(names) if names and any(rule.new_data for rule in rules) else ()
    counted = True
    for rule in (rule for rule in rules if rule.rule_id in states):
        held, counts = states.pop(rule.rule_id), bool(rule.new_data) and rule.enabled
        # What is still to count may be newer: then the data has not settled, whatever its oldest part suggests.
        decide: Decide = decide_nothing if more and counts else partial(decide_on_tick, rule)
        try:
            turn = take_turn(services, rule, decide, batches=batches if counts else (), held=held)
        except TrainmasterError as error:
            severity = "DEBUG" if isinstance(error, GenerationMoved) else "WARNING"
            yield FlowResult(message=f"{rule.rule_id} was not evaluated: {error}", severity=severity)
            counted = counted and not counts
        else:
            yield from turn.results
    if counted and names:
        services.arrivals.delete(names)
    return counted and more
