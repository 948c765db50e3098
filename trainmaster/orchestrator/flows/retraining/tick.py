"""A tick gives every rule its turn: arrivals are counted, and due rules fire. Then it checks the drops without an answer.

Its cost grows with the batches since the last tick and the number of rules, never with the length of the history.
"""

from collections.abc import Generator, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

from trainmaster.orchestrator.core.errors import DocumentDamaged, GenerationMoved
from trainmaster.orchestrator.core.retraining.decision import decide_on_tick
from trainmaster.orchestrator.flows.retraining import turn
from trainmaster.orchestrator.flows.retraining.inbox import check_drops, retire_deleted
from trainmaster.orchestrator.flows.retraining.quarantine import quarantine_rules, rule_item
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.turns import DROPS_SHARE, Done, Turns, error_text, severity_of
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.attempts import Item, ItemKind
from trainmaster.orchestrator.stores.rules import HeldState

ROUNDS_MAX = 20
"""How often a tick counts that many; the rest is left to the next tick."""


def tick_rules(services: Services, turns: Turns, *, reserved: float = 0.0) -> Iterator[FlowResult]:
    """Give every rule its turn. Safe to repeat and to run concurrently: a tick that loses a race stops quietly.

    One rule's failure is reported, and costs no other rule its turn. `reserved`: the share of the function's time
    that must be left afterwards.

    Raises:
        ServiceFailed, DocumentDamaged: the rules cannot be read; the next tick tries again.
    """
    # The book before the inbox: a rule that is in the book but not in the inbox was deleted, not just dropped.
    held = services.rule_book.read()
    files, listed_to = services.inbox.rules()
    until = turns.until(DROPS_SHARE, reserved)
    yield from retire_deleted(services, turns, held, files, listed_to, until=until)
    yield from quarantine_rules(services, turns, held)
    for _ in range(ROUNDS_MAX):
        more = yield from _give_turns(services, turns, until)
        if not more:
            break
    else:
        message = "the arrivals that this tick could not count are left for the next"
        yield FlowResult(message=message, severity="WARNING")
    yield from check_drops(services, turns, held.document, files, turns.until(reserved))


def _give_turns(services: Services, turns: Turns, until: datetime) -> Generator[FlowResult, None, bool]:
    """Count some batches and give every rule its turn. Returns whether there are more batches to count.

    The order of reads matters. The names are read before the book, so objects that arrive after a rule was accepted are
    counted for it. The states of the rules that count are read before the batches: if another tick counts and deletes a
    batch meanwhile, the batch is gone or the state has changed.
    """
    names = services.arrivals.names(turn.MOST_BATCHES)
    more = len(names) == turn.MOST_BATCHES
    in_force = (rule for rule in services.rule_book.read().document.rules if rule.quarantine is None)
    rules = {rule_item(rule): rule for rule in in_force}
    items = turns.order(ItemKind.RULE, rules)
    counting = {item for item, rule in rules.items() if names and rule.new_data and rule.enabled}
    owed = set(counting)  # the batches stay until these rules have counted them
    states = dict[Item, HeldState]()
    first, at_once = [item for item in items if item in counting], services.turns_at_once

    def read_state(item: Item) -> HeldState:
        return services.rule_states.read(item.name)

    for read in turns.give_turns(first, read_state, until=until, at_once=at_once):
        if read.result is not None:
            states[read.item] = read.result
        else:
            yield from _results_of(read, owed, ())
    batches = services.arrivals.read(names) if states else ()

    def count_and_decide(item: Item) -> turn.Turn:
        rule, counts = rules[item], item in counting
        # What is still to count may be newer: then the data has not settled, whatever its oldest part suggests.
        decide: turn.Decide = turn.decide_nothing if more and counts else partial(decide_on_tick, rule)
        held = states.pop(item, None)
        return turn.take_turn(services, rule, decide, batches=batches if counts else (), held=held)

    left = [item for item in items if item in owed and item not in states]
    ready = [item for item in items if item not in counting or item in states]
    took = 0
    for done in turns.give_turns(ready, count_and_decide, until=until, at_once=at_once):
        took += 1
        yield from _results_of(done, owed, () if done.result is None else done.result.results)
    left += ready[took:]
    if left:
        message = f"out of time with {len(left)} of {len(items)} rules left; the next tick begins with them"
        yield FlowResult(message=message, severity="WARNING", event=LogEvent.RECONCILE_BEHIND)
    elif names and not owed:
        services.arrivals.delete(names)
    return more and not owed and not left


def _results_of(done: Done[Any], owed: set[Item], results: Iterable[FlowResult]) -> Iterator[FlowResult]:
    """The log lines of a rule's turn. A rule that has counted the batches, or never can, does not keep them."""
    rule_id = done.item.name
    match done.error:
        case None:
            owed.discard(done.item)
            yield from results
        case DocumentDamaged() as error:
            owed.discard(done.item)
            yield FlowResult(message=f"{rule_id} was not evaluated: {error}", severity="ERROR")
        case error:  # even a bug in this program must not stop the tick for the other rules
            severity = "DEBUG" if isinstance(error, GenerationMoved) else severity_of(error)
            yield FlowResult(message=f"{rule_id} was not evaluated: {error_text(error)}", severity=severity)
