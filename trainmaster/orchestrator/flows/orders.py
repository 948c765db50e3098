"""Orders are carried out. They start no run of their own, so a sound one leaves no run record."""

from typing import assert_never

from trainmaster.orchestrator.core.documents.faults import Fault, shown
from trainmaster.orchestrator.core.names import object_uri, status_object
from trainmaster.orchestrator.core.requests.arrival import Arrival
from trainmaster.orchestrator.core.requests.orders import (
    CancelOrder,
    FireOrder,
    Order,
    RollbackOrder,
    unknown_rule,
    unknown_run,
)
from trainmaster.orchestrator.core.requests.request import Refused
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.signals import heeds, manual_call
from trainmaster.orchestrator.flows.completion.champion import roll_back
from trainmaster.orchestrator.flows.completion.telling import tell_order
from trainmaster.orchestrator.flows.retraining.triggers import take_signal
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.flows.submission.cancel import cancel


def take_order(services: Services, arrival: Arrival, order: Order) -> Happened | Refused:
    """What the order did, or why it cannot be carried out. Safe to repeat: its identity is the arrival's.

    Raises:
        TrainmasterError: it must come again.
    """
    match order:
        case FireOrder(rule_id=rule_id):
            return _fire(services, arrival, rule_id)
        case RollbackOrder():
            return _roll_back(services, arrival, order)
        case CancelOrder(run_id=run_id):
            return _cancel(services, arrival, run_id)
        case _:
            assert_never(order)


def _fire(services: Services, arrival: Arrival, rule_id: str) -> Happened | Refused:
    book = services.rule_book.read().book
    rule = book.find(rule_id)
    if rule is None:
        return unknown_rule(rule_id, [each.rule_id for each in book.rules])
    call = manual_call(arrival.run_id, rule_id, arrival.source.event_time)
    if not heeds(rule, call):
        return _refused(rule)
    done = list(take_signal(services, call))
    status_uri = object_uri(services.buckets.ledger, status_object(rule.dropped_name))
    tell_order(services, arrival, about_uri=status_uri)
    message = (
        "; ".join(each.message for each in done) or f"the order to fire {rule_id} was carried out before"
    )
    return Happened(message=message, is_due=any(each.is_due for each in done))


def _roll_back(services: Services, arrival: Arrival, order: RollbackOrder) -> Happened | Refused:
    reign = roll_back(services, order, arrival.run_id)
    if isinstance(reign, Refused):
        return reign
    champion_uri = services.champions.uri(order.model_name)
    tell_order(services, arrival, about_uri=champion_uri, model_uri=reign.model_uri)
    return Happened(message=f"the champion of {order.model_name} is {reign.run_id}: {reign.model_uri}")


def _cancel(services: Services, arrival: Arrival, run_id: str) -> Happened | Refused:
    held = services.ledger.find(run_id)
    if held is None:
        return unknown_run(run_id)
    happened = cancel(services, held)
    tell_order(services, arrival, about_uri=services.ledger.record_uri(run_id))
    return happened


def _refused(rule: Rule) -> Refused:
    fault = Fault(
        path="$.fire.rule",
        problem="the rule does not wait for orders",
        found=shown(rule.rule_id),
        repair="add `manual: {}` to its `when`, and see that it is enabled",
    )
    return Refused(faults=(fault,))
