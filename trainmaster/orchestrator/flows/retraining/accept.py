"""A dropped rule becomes one of the book, or a report of everything that is wrong with it."""

from dataclasses import dataclass
from datetime import datetime

from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.errors import GenerationMoved, ObjectGone
from trainmaster.orchestrator.core.events.envelope import Envelope
from trainmaster.orchestrator.core.names import object_uri, run_id_of_key, split_object_uri, stem
from trainmaster.orchestrator.core.requests.request import Refused
from trainmaster.orchestrator.core.retraining.rules.names import rule_id_of
from trainmaster.orchestrator.core.retraining.rules.reading import MAX_RULE_BYTES, rule_in, template_uri
from trainmaster.orchestrator.core.retraining.rules.rule import Rule
from trainmaster.orchestrator.core.retraining.signals.arrival import arrived_in
from trainmaster.orchestrator.core.retraining.state import state_for
from trainmaster.orchestrator.core.retraining.status import RuleStanding, RuleStatus, status_of
from trainmaster.orchestrator.core.runs.record import Source
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.stores.rules import HeldState

RACES_MAX = 10


@dataclass(frozen=True, kw_only=True)
class RuleDrop:
    """One generation of a rule's file, and how it came to be known."""

    name: str
    generation: int
    size_bytes: int
    event_id: str
    event_time: datetime


def rule_drop_in(envelope: Envelope) -> RuleDrop:
    """The rule's file that was finalized.

    Raises:
        EventMalformed: the event does not say which generation.
    """
    found = arrived_in(envelope)
    return RuleDrop(
        name=found.name,
        generation=found.generation,
        size_bytes=found.size_bytes,
        event_id=envelope.id,
        event_time=found.created_at,
    )


def accept(services: Services, drop: RuleDrop) -> Happened:
    """Take the rule into the book, or tell every reason why not. Safe to repeat, in any order with other drops.

    Raises:
        GenerationMoved: the book kept changing.
    """
    try:
        rule = _in_book(services, drop)
    except ObjectGone:
        return Happened(
            message=f"{drop.name}, generation {drop.generation}, is gone: a newer one has its own event"
        )
    if isinstance(rule, Refused):
        return _refuse(services, drop, rule)
    if rule.generation != drop.generation:
        return Happened(message=f"{drop.name}: a newer generation of {rule.rule_id} is in force")
    state = _begun(services, rule)
    services.rule_statuses.tell(status_of(rule, state.state, services.clock.now()))
    return Happened(message=f"rule {rule.rule_id} was accepted, generation {rule.generation}")


def _in_book(services: Services, drop: RuleDrop) -> Rule | Refused:
    """The rule of this id that the book now holds: the dropped one, or a newer."""
    if drop.size_bytes > MAX_RULE_BYTES:
        return Refused(faults=(_too_large(drop.size_bytes),))
    content = services.inbox.read(services.buckets.inbox, drop.name, drop.generation)
    as_json = drop.name.lower().endswith(".json")
    template = _template(services, template_uri(content, as_json=as_json, buckets=services.buckets))
    for _ in range(RACES_MAX):
        held = services.rule_book.read()
        rule = rule_in(
            content,
            dropped_name=drop.name,
            generation=drop.generation,
            as_json=as_json,
            standards=services.standards(),
            buckets=services.buckets,
            book=held.book,
            template=template,
            prices=services.prices,
        )
        if isinstance(rule, Refused):
            return rule
        book = held.book.with_rule(rule)
        try:
            if book != held.book:
                services.rule_book.replace(held, book)
        except GenerationMoved:
            continue  # the rule must stand beside whatever came first, too: together they may make a loop
        return book.find(rule.rule_id) or rule
    raise GenerationMoved("the rule book", 0)


def _template(services: Services, uri: str | None) -> bytes | None:
    if uri is None:
        return None
    try:
        return services.inbox.latest(*split_object_uri(uri))[0]
    except ObjectGone:
        return None  # which `rule_in` reports with the rest


def _begun(services: Services, rule: Rule) -> HeldState:
    """The state of the new rule: its schedules count from now, and a breaker that had tripped is closed."""
    for _ in range(RACES_MAX):
        held = services.rule_states.read(rule.rule_id)
        state = state_for(rule, held.state, services.clock.now())
        try:
            return held if state == held.state else services.rule_states.replace(held, state)
        except GenerationMoved:
            continue
    raise GenerationMoved(f"the state of {rule.rule_id}", 0)


def _refuse(services: Services, drop: RuleDrop, refused: Refused) -> Happened:
    """The report, then the status. An older generation that was accepted goes on deciding."""
    report_uri = _report(services, drop, refused)
    rule_id = rule_id_of(drop.name)
    present = services.rule_book.read().book.find(rule_id) if rule_id is not None else None
    services.rule_statuses.tell(
        RuleStatus(
            dropped_name=drop.name,
            generation=drop.generation,
            state=RuleStanding.REFUSED,
            updated_at=services.clock.now(),
            rule_id=rule_id,
            report_uri=report_uri,
            in_force=present.generation if present is not None and present.enabled else None,
            reason=str(refused.faults[0]),
        )
    )
    message = f"{drop.name} was refused with {len(refused.faults)} faults: {report_uri}"
    return Happened(message=message, severity="WARNING")


def _report(services: Services, drop: RuleDrop, refused: Refused) -> str:
    """Its URI. A rule's drop has no run; its report is kept under an id of the same form."""
    uri = object_uri(services.buckets.inbox, drop.name)
    source = Source(
        kind="rule_drop",
        event_id=drop.event_id,
        event_time=drop.event_time,
        received_at=services.clock.now(),
        uri=uri,
        object_name=drop.name,
        generation=drop.generation,
    )
    report_id = run_id_of_key(stem(drop.name), f"{uri}#{drop.generation}")
    report = {
        "schema": "rejection_report.v1",
        "run_id": report_id,
        "source": encoded(source),
        "faults": [fault.document for fault in refused.faults],
    }
    return services.ledger.report(report_id, report)


def _too_large(size_bytes: int) -> Fault:
    return Fault(
        path="$",
        problem="the file is too large for a rule",
        found=f"{size_bytes} bytes",
        allowed=f"at most {MAX_RULE_BYTES} bytes",
        repair="put the request into the inbox and name it in request_uri",
    )
