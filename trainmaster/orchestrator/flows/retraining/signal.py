"""An image, an alert, a notice or an order fires the rules that wait for it, each once."""

from collections.abc import Iterator
from functools import partial

from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.retraining.decision import Decision, decide_on_signal
from trainmaster.orchestrator.core.retraining.rules.rule import Rule, WhileRunning
from trainmaster.orchestrator.core.retraining.signals.notice import Heard
from trainmaster.orchestrator.core.retraining.signals.signal import Signal, heeds
from trainmaster.orchestrator.core.retraining.state import RuleState
from trainmaster.orchestrator.flows.retraining.tick import decide_due
from trainmaster.orchestrator.flows.retraining.turn import Facts, take_turn
from trainmaster.orchestrator.flows.services import Happened, Services


def take_signal(services: Services, signal: Signal) -> Iterator[Happened]:
    """What the rules did about it. Safe to repeat: a rule knows the signals that it has decided on.

    Raises:
        TrainmasterError: a rule did not decide; the others did, and the signal must come again.
    """
    failure: TrainmasterError | None = None
    for rule in services.rule_book.read().book.rules:
        if not heeds(rule, signal):
            continue
        try:
            turn = take_turn(services, rule, partial(_decide, rule, signal))
        except TrainmasterError as error:
            failure = error
        else:
            failure = turn.undecided or failure
            yield from turn.happened
    if failure is not None:
        raise failure


def _decide(rule: Rule, signal: Signal, state: RuleState, facts: Facts) -> Decision:
    return decide_on_signal(
        rule, state, signal, now=facts.now, champion=facts.champion, current_ended=facts.current_ended
    )


def take_notice(services: Services, heard: Heard) -> Iterator[Happened]:
    """What the rules did about one of our own notices: what waited for the end of a run may go on.

    Raises:
        TrainmasterError: as `take_signal` does.
    """
    if heard.signal is not None:
        yield from take_signal(services, heard.signal)
    if heard.ended_run_id is not None:
        yield from _after(services, heard.ended_run_id)


def _after(services: Services, run_id: str) -> Iterator[Happened]:
    held = services.ledger.find(run_id)
    rule_id = held.record.source.rule_id if held is not None else None
    rule = services.rule_book.read().book.find(rule_id) if rule_id is not None else None
    if rule is None or rule.while_running is not WhileRunning.QUEUE_ONE:
        return
    turn = take_turn(services, rule, partial(decide_due, rule))
    yield from turn.happened
