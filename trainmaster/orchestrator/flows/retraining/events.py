"""An event acts at once, between two ticks: a signal fires rules, and a notice lets queued firings proceed.

A rule that watches new data counts what has arrived before it decides. Otherwise the next tick would count the same
objects for another firing. The batches stay for the other rules; a tick deletes them.
"""

from collections.abc import Iterator
from functools import partial

from trainmaster.orchestrator.core.errors import GenerationMoved
from trainmaster.orchestrator.core.retraining.arrivals import Batch
from trainmaster.orchestrator.core.retraining.decision import decide_on_signal, decide_on_tick
from trainmaster.orchestrator.core.retraining.rule import Rule, WhileRunning
from trainmaster.orchestrator.core.retraining.signals import ParsedNotice, Signal, matches
from trainmaster.orchestrator.flows.retraining.turn import (
    MOST_BATCHES,
    RACES_MAX,
    Decide,
    Turn,
    decide_nothing,
    take_turn,
)
from trainmaster.orchestrator.flows.services import FlowResult, Services


def take_signal(services: Services, signal: Signal) -> Iterator[FlowResult]:
    """Fire the rules that wait for it, each once. Safe to repeat: a rule remembers the signals that it has decided on.

    No attempt is counted here: Pub/Sub counts the deliveries of an event, and ticks put a rule into quarantine.

    Raises:
        Exception: a rule did not decide; the others did, and the signal must be redelivered.
    """
    if signal.warning:
        yield FlowResult(message=signal.warning, severity="WARNING")
    failure: Exception | None = None
    known: dict[str, Batch] = {}
    for rule in services.rule_book.read().document.rules:
        if rule.quarantine is not None or not matches(rule, signal):
            continue
        decide: Decide = partial(decide_on_signal, rule, signal)
        try:
            turn = _take_turn_at_once(services, rule, decide, decide, known)
        except Exception as error:  # raised below, when the other rules have decided
            failure = error
        else:
            failure = turn.undecided or failure
            yield from turn.results
    if failure is not None:
        raise failure


def take_notice(services: Services, parsed: ParsedNotice) -> Iterator[FlowResult]:
    """What the rules did about one of this service's notices: firings that waited for the end of a run may proceed.

    Raises:
        TrainmasterError: as `take_signal` does.
    """
    if parsed.signal is not None:
        yield from take_signal(services, parsed.signal)
    if parsed.ended_run_id is not None:
        yield from _fire_queued(services, parsed.ended_run_id)


def _fire_queued(services: Services, run_id: str) -> Iterator[FlowResult]:
    held = services.ledger.find(run_id)
    rule_id = held.record.source.rule_id if held is not None else None
    rule = services.rule_book.read().document.find(rule_id) if rule_id is not None else None
    if rule is None or rule.quarantine is not None or rule.while_running is not WhileRunning.QUEUE_ONE:
        return
    # With more to count, the tick decides: data may be newer than its oldest part suggests.
    yield from _take_turn_at_once(services, rule, partial(decide_on_tick, rule), decide_nothing, {}).results


def _take_turn_at_once(
    services: Services, rule: Rule, decide: Decide, decide_early: Decide, known: dict[str, Batch]
) -> Turn:
    """The rule's turn with the arrivals so far; `decide_early` decides if there are more than can be counted together.

    `known` has the batches that were read before, by name, and gets the others: their bytes never change.

    Raises:
        GenerationMoved, ServiceFailed, DocumentDamaged: as `take_turn`.
    """
    if not (rule.new_data and rule.enabled):
        return take_turn(services, rule, decide)
    for _ in range(RACES_MAX):
        # The state before the batches: see `take_turn`.
        held = services.rule_states.read(rule.rule_id)
        names = services.arrivals.names(MOST_BATCHES)
        fresh = services.arrivals.read([name for name in names if name not in known])
        known.update((batch.name, batch) for batch in fresh)
        batches = [known[name] for name in names if name in known]
        try:
            now_decide = decide_early if len(names) == MOST_BATCHES else decide
            return take_turn(services, rule, now_decide, batches=batches, held=held)
        except GenerationMoved as moved:  # a tick has counted meanwhile
            lost = moved
    raise lost
