"""Orders are carried out: cancel a run, fire a rule, roll a champion back, approve a challenger, apply the retention."""

from dataclasses import replace
from typing import assert_never

from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.faults import Refused, refusal_of
from trainmaster.orchestrator.core.documents.placing import faults_with_places
from trainmaster.orchestrator.core.names import object_uri, run_id_in_group, status_object
from trainmaster.orchestrator.core.orders.order import (
    ORDER_SCHEMA,
    ApproveOrder,
    CancelOrder,
    CleanOrder,
    FireOrder,
    Order,
    RollbackOrder,
    parse_order,
    removed_rule,
    unknown_rule,
    unknown_run,
)
from trainmaster.orchestrator.core.policy.registry import RegistryMode
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.signals import Signal, manual_call, matches
from trainmaster.orchestrator.core.retraining.state import has_seen, why_held
from trainmaster.orchestrator.flows.completion.champion import decide, roll_back
from trainmaster.orchestrator.flows.completion.registry import align_alias
from trainmaster.orchestrator.flows.lifecycle.status import write_order_status
from trainmaster.orchestrator.flows.retention import ask_for_round
from trainmaster.orchestrator.flows.retraining.events import take_signal
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission.launch import reject
from trainmaster.orchestrator.flows.submission.resume import cancel


def take_order(services: Services, incoming: IncomingDocument, read: Document) -> FlowResult:
    """Carry out the order in the document, or reject it like a request. Safe to repeat: its identity is the document's.

    An order starts no run, so a valid one leaves no run record.
    """
    schema, given_at = services.request_rules().schemas[ORDER_SCHEMA], incoming.source.event_time
    order = parse_order(read, schema, incoming.run_id, given_at)
    done = order if isinstance(order, Refused) else _carry_out(services, incoming, order)
    if not isinstance(done, Refused):
        return done
    marked = faults_with_places(done.faults, read, secret_lines(read, ()))
    return reject(services, incoming, Refused(faults=marked), of_order=True)


def _carry_out(services: Services, incoming: IncomingDocument, order: Order) -> FlowResult | Refused:
    match order:
        case FireOrder():
            return _fire(services, incoming, order)
        case RollbackOrder():
            after = roll_back(services, order, incoming.source.team)
            ended = _change_champion(services, incoming, order.model_name, after)
            if isinstance(after, Champion) and services.policy().registry.mode is not RegistryMode.OFF:
                align_alias(services, order.model_name, after.team)  # a failure has the order delivered again
            return ended
        case ApproveOrder():
            after = decide(services, order, incoming.source.sent_by, incoming.source.team)
            return _change_champion(services, incoming, order.model_name, after)
        case CancelOrder(run_id=run_id):
            return _cancel(services, incoming, run_id)
        case CleanOrder():
            return _clean(services, incoming)
        case _:
            assert_never(order)


def _fire(services: Services, incoming: IncomingDocument, order: FireOrder) -> FlowResult | Refused:
    rule_id, team = order.rule_id, incoming.source.team
    rules = [rule for rule in services.rule_book.read().document.rules if rule.team == team]
    rule = next((rule for rule in rules if rule.rule_id == rule_id), None)
    if rule is None:
        return unknown_rule(rule_id, [rule.rule_id for rule in rules])
    signal = manual_call(order)
    if _is_removed(services, rule, signal):
        return removed_rule(rule_id)
    if rule.quarantine is not None:
        return refusal_of(
            path="$.fire.rule",
            problem=f"the rule is in quarantine: {rule.quarantine.reason}",
            value=rule_id,
            repair="drop its file again",
        )
    if not matches(rule, signal):
        return refusal_of(
            path="$.fire.rule",
            problem="the rule does not accept orders to fire",
            value=rule_id,
            repair="add `manual: {}` to its `when`, and make sure it is enabled",
        )
    results = list(take_signal(services, signal))
    status_uri = object_uri(services.buckets.ledger, status_object(rule.dropped_name))
    held = why_held(services.rule_states.read(rule_id).document)
    write_order_status(services, incoming, about_uri=status_uri, held=held)
    message = (
        "; ".join(result.message for result in results)
        or f"the order to fire {rule_id} was already carried out"
    )
    return FlowResult(message=message, is_due=any(result.is_due for result in results))


def _is_removed(services: Services, rule: Rule, signal: Signal) -> bool:
    """Whether the rule's file is deleted, and the rule has not decided on this order before that: it may be redelivered."""
    if services.inbox.has(rule.dropped_name):
        return False
    state = services.rule_states.read(rule.rule_id).document
    return state is None or not has_seen(state, signal.id)


def _change_champion(
    services: Services, incoming: IncomingDocument, model_name: str, after: Champion | Refused
) -> FlowResult | Refused:
    """Report the champion after an order to roll back, or to approve or reject a challenger."""
    if isinstance(after, Refused):
        return after
    current, champion_uri = after.current, services.champions.uri(model_name, after.team)
    model_uri = current.model_uri if current else None
    write_order_status(services, incoming, about_uri=champion_uri, model_uri=model_uri)
    said = f"{current.run_id}: {model_uri}" if current else "still none"
    return FlowResult(message=f"the champion of {model_name} is {said}")


def _cancel(services: Services, incoming: IncomingDocument, run_id: str) -> FlowResult | Refused:
    held = services.ledger.find(run_id) or services.ledger.find(run_id_in_group(run_id, 1))
    if held is None or held.record.source.team != incoming.source.team:
        return unknown_run(run_id)  # no team learns which runs another one has
    group = held.record.source.group
    others = group.run_ids[1:] if group is not None and group.id == run_id else ()
    runs = [held, *(services.ledger.present(other) for other in others)]
    results = [cancel(services, run, incoming.source.sent_by) for run in runs]
    write_order_status(services, incoming, about_uri=services.ledger.record_uri(held.record.run_id))
    return replace(results[0], message="; ".join(dict.fromkeys(each.message for each in results)))


def _clean(services: Services, incoming: IncomingDocument) -> FlowResult | Refused:
    if not services.policy().retention:
        return refusal_of(
            path="$.clean",
            problem="the policy has no retention, so everything is kept",
            repair="set `retention` in the deployment's policy.yaml",
        )
    ask_for_round(services)
    write_order_status(services, incoming, about_uri=services.retained.uri())
    return FlowResult(message="the retention begins with the next tick")
