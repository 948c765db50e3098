"""One rule's turn: read its state, count arrivals, decide, write the decision, and carry it out.

The order of writes, and what a crash between two of them leaves:

    data      what the firing takes, where the rule or its request needs the names: see `data`
    state     with arrivals counted and the firing, in one write: a crash before it changes nothing
    run       launched under the firing's run id: after a crash the firing remains, and the next turn repeats it
    status    visible to the user; the next turn writes it again

The launch of a firing is recorded with the next turn's state. That keeps it to one write a turn: Cloud Storage
allows one write a second per object name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trainmaster.orchestrator.core import errors
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Refused, refusal_of
from trainmaster.orchestrator.core.names import object_uri
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.retraining.arrivals import Batch
from trainmaster.orchestrator.core.retraining.condition import Age
from trainmaster.orchestrator.core.retraining.decision import Decision, Facts, Hold, NothingDue
from trainmaster.orchestrator.core.retraining.firing import request_of_firing
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.state import (
    KEPT_BATCHES,
    Firing,
    RuleState,
    given_up,
    state_for,
    status_of,
    with_launch,
)
from trainmaster.orchestrator.core.runs.record import Source
from trainmaster.orchestrator.core.runs.sender import Sender, Surety
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.completion.champion import champion_facts
from trainmaster.orchestrator.flows.retraining.data import Waiting, decide_on_data
from trainmaster.orchestrator.flows.retraining.quarantine import quarantine, quarantine_result
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission.launch import is_launchable, take_request
from trainmaster.orchestrator.flows.submission.resume import cancel
from trainmaster.orchestrator.stores.rules import HeldState

MOST_BATCHES = KEPT_BATCHES
"""Batches that are counted together: a state remembers all of them until a tick deletes them."""
RACES_MAX = 5

Decide = Callable[[RuleState, Facts], Decision]


def decide_nothing(_: RuleState, __: Facts) -> Decision:
    """Decide nothing; only carry out what was decided before."""
    return NothingDue()


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What a rule did.

    `undecided`: why nothing was decided although the counted arrivals are recorded: an earlier firing has not been
    launched yet. A signal must be redelivered then; a tick follows anyway.
    """

    results: tuple[FlowResult, ...] = ()
    undecided: errors.TrainmasterError | None = None


def take_turn(
    services: Services,
    rule: Rule,
    decide: Decide,
    *,
    batches: Sequence[Batch] = (),
    held: HeldState | None = None,
) -> Turn:
    """When this returns, the batches are counted and the decision is recorded. Safe to repeat and to run concurrently.

    With batches, `held` must be the state as read before the batches: a state remembers the batches that
    were counted last, so a state read later may have counted these and forgotten them.

    Raises:
        GenerationMoved: another tick has counted batches since, or the state kept changing.
        ServiceFailed, DocumentDamaged: possibly nothing was decided; the next turn finds what was.
    """
    held = held or services.rule_states.read(rule.rule_id)
    for _ in range(RACES_MAX):
        try:
            return _try_turn(services, rule, held, decide, batches)
        except errors.GenerationMoved as moved:
            lost, counted = moved, held.document.batches if held.document is not None else ""
        held = services.rule_states.read(rule.rule_id)
        if batches and held.document is not None and held.document.batches != counted:
            break
    raise lost


def _try_turn(
    services: Services, rule: Rule, held: HeldState, decide: Decide, batches: Sequence[Batch]
) -> Turn:
    base = state_for(rule, held.document, services.clock.now())
    waiting = Waiting(services=services, rule=rule, state=base)
    counted = waiting.count(batches)
    state, earlier, failure = _launch_firing(services, rule, counted)
    if failure is not None:
        _write(services, held, state, waiting)
        return Turn(results=earlier, undecided=failure)
    decision, looks = _decide(waiting, state, decide)
    if not isinstance(decision, NothingDue):
        state = decision.state
    results = (*looks, *_report_decision(services, rule, decision))
    written = _write(services, held, state, waiting)
    if isinstance(decision, Hold) and decision.is_storm:
        return Turn(results=(*earlier, *results))  # its status says so
    # The status's time is the state's: a launch takes seconds, and another turn may record something meanwhile.
    now = services.clock.now()
    after, launch, _ = _launch_firing(services, rule, state)
    if after.firing is None and state.firing is not None and after.last == state.last:
        _write(services, written, after, waiting)  # abandoned: a later turn must not find and launch it
    status = status_of(rule, after, now)
    if status != status_of(rule, held.document, now):
        services.rule_statuses.write(status)
    return Turn(results=(*earlier, *results, *launch))


def _write(services: Services, held: HeldState, state: RuleState, waiting: Waiting) -> HeldState:
    before = held.document.chunks if held.document is not None else ()
    state = replace(state, chunks=waiting.save(held.version))
    if state == held.document:
        return held
    written = services.rule_states.replace(held, state)
    services.rule_data.delete([name for name in before if name not in state.chunks])
    return written


def _decide(waiting: Waiting, state: RuleState, decide: Decide) -> tuple[Decision, list[FlowResult]]:
    """The decision, and log lines. The champion, the last run and the data are read only if they can change it."""
    services, rule = waiting.services, waiting.rule
    by_age = any(isinstance(condition, Age) for condition in rule.members)
    by_champion = by_age or any(placeholder.name.startswith("champion.") for placeholder in rule.placeholders)
    champion = champion_facts(services, rule.model_name, rule.team) if by_age else None
    now, looks = services.clock.now(), list[FlowResult]()
    decision = decide(state, Facts(now=now, champion=champion, current_ended=True))
    if isinstance(decision, NothingDue):
        return decision, looks
    if by_champion and not by_age:
        champion = champion_facts(services, rule.model_name, rule.team)
    facts = Facts(now=now, champion=champion, current_ended=_has_ended(services, state.current_run))
    decision = decide_on_data(
        waiting, state, lambda counted, batch: decide(counted, replace(facts, batch=batch)), looks
    )
    return decision, looks


def _has_ended(services: Services, run_id: str | None) -> bool:
    """Whether the run is no longer active; a run without a record is not active, one of another release is."""
    try:
        held = services.ledger.find(run_id) if run_id is not None else None
    except errors.RecordUnsupported:
        return False
    return held is None or held.record.ended


def _launch_firing(
    services: Services, rule: Rule, state: RuleState
) -> tuple[RuleState, tuple[FlowResult, ...], errors.TrainmasterError | None]:
    """The state after its firing, if any, was launched or abandoned; and the error that kept a firing in it."""
    firing = state.firing
    if firing is None:
        return state, (), None
    try:
        outcome = _launch(services, rule, firing)
    except errors.TrainmasterError as error:
        message = f"firing {firing.number} of {rule.rule_id} is recorded but not launched yet: {error}"
        return state, (FlowResult(message=message, run_id=firing.run_id, severity="WARNING"),), error
    if isinstance(outcome, FlowResult):
        return _with_launch(services, state, firing), (outcome,), None
    reason = "; ".join(str(fault) for fault in outcome.faults)
    result = FlowResult(message=f"{rule.rule_id} cannot fire: {reason}", severity="ERROR")
    return given_up(state, reason, services.clock.now()), (result,), None


def _with_launch(services: Services, state: RuleState, firing: Firing) -> RuleState:
    """The state after the launch. A run that was rejected replaced none: the rule's current run is still the one before."""
    held = services.ledger.find(firing.run_id) if firing.replaces is not None else None
    is_rejected = held is not None and held.record.state is RunState.REJECTED
    return replace(with_launch(state), current_run=firing.replaces if is_rejected else firing.run_id)


def _report_decision(services: Services, rule: Rule, decision: Decision) -> tuple[FlowResult, ...]:
    """The log lines about the decision; a rule that fired too often is put into quarantine.

    Before the decision is recorded: afterwards no process would know that it still has to be done.
    """
    if not isinstance(decision, Hold):
        return ()
    if not decision.is_storm:
        return (FlowResult(message=f"{rule.rule_id} is held: {decision.reason}", severity="NOTICE"),)
    quarantine(services, services.rule_book.read(), [(rule, decision.reason)])
    return (quarantine_result(f"rule {rule.rule_id}", decision.reason),)


def _template(services: Services, rule: Rule) -> bytes | Refused | None:
    """The rule's template as it was accepted: whatever its object holds by now, nothing unchecked is launched."""
    if rule.request_uri is None:
        return None
    content = services.rule_book.template(rule.template.sha256) if rule.template is not None else None
    if content is not None:
        return content
    return refusal_of(
        path="$.request_uri",
        problem="the ledger has no copy of the template that was accepted",
        value=rule.request_uri,
        repair="drop the rule again",
    )


def _launch(services: Services, rule: Rule, firing: Firing) -> FlowResult | Refused:
    """Launch the run of the firing, once however often this is repeated; or say why it cannot be launched.

    Raises:
        LeaseHeld: the run to be replaced is being submitted now.
        ServiceFailed, RecordMoved: the firing stays; a later tick repeats it.
    """
    if services.ledger.find(firing.run_id) is not None:
        message = f"firing {firing.number} of {rule.rule_id} is recorded"
        return FlowResult(message=message, run_id=firing.run_id)
    content = request_of_firing(rule, firing, _template(services, rule), services.request_rules().names)
    if isinstance(content, Refused):
        return content
    what = f"{rule.rule_id} fired ({firing.condition}, number {firing.number})"
    by = Sender(name=rule.rule_id, by=Surety.EVENT)
    source = Source(
        kind="rule",
        event_id=firing.event_id,
        event_time=firing.at,
        received_at=services.clock.now(),
        uri=object_uri(services.buckets.inbox, rule.dropped_name),
        generation=firing.generation,
        team=rule.team,
        rule_id=rule.rule_id,
        firing=firing.number,
        condition=firing.condition.value,
        template_uri=rule.request_uri,
        template_generation=rule.template.generation if rule.template is not None else None,
        firing_values=firing.values,
        sent_by=by,
    )
    incoming = IncomingDocument(run_id=firing.run_id, source=source, content=content)
    read = parse_document(content, as_json=True)
    replaced = services.ledger.find(firing.replaces) if firing.replaces is not None else None
    # A firing that is rejected must not end a run.
    is_replaced = replaced is not None and is_launchable(services, incoming, read)
    leaves_place = replaced is not None and is_replaced and cancel(services, replaced, by).is_due
    try:
        results = take_request(services, incoming, read)
    except (errors.LeaseHeld, errors.SubmissionUnknown) as error:
        # The run is reserved: from here on the reconciler handles it, like every other.
        severity = "DEBUG" if isinstance(error, errors.LeaseHeld) else "WARNING"
        return FlowResult(message=f"{what}: {error}", run_id=firing.run_id, severity=severity)
    return replace(results, message=f"{what}: {results.message}", is_due=results.is_due or leaves_place)
