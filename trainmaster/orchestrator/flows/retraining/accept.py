"""Adds a dropped rule to the rule book, or reports everything that is wrong with it."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from trainmaster.orchestrator.core import errors
from trainmaster.orchestrator.core.documents.faults import Refused, plain, refusal_of
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.policy.teams import team_of_drop
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument, StoredObject
from trainmaster.orchestrator.core.requests.request import oversized_refusal
from trainmaster.orchestrator.core.retraining import reading
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.request_check import RuleRequirements
from trainmaster.orchestrator.core.retraining.rule import Rule, Template
from trainmaster.orchestrator.core.retraining.state import (
    RuleStanding,
    RuleState,
    RuleStatus,
    state_for,
    status_of,
    with_launch,
)
from trainmaster.orchestrator.core.runs.drop_status import failure_text, first_faults, first_problems
from trainmaster.orchestrator.core.runs.same_request import names_before
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES, MAX_RULE_BYTES
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission.launch import report

RACES_MAX = 10


def accept(services: Services, incoming: IncomingDocument, dropped: StoredObject) -> FlowResult:
    """Add the rule to the book, or report every fault. Safe to repeat, in any order with other drops.

    `dropped` is the document's content.

    Raises:
        GenerationMoved: the book kept changing.
    """
    name, generation = dropped.name, dropped.generation
    try:
        rule = _in_book(services, dropped)
    except errors.ObjectGone:
        gone = f"{name}, generation {generation}, no longer exists"
        return FlowResult(message=f"{gone}; a newer generation has its own event")
    if isinstance(rule, Refused):
        return _refuse(services, dropped, rule, report(services, incoming, rule))
    if rule.generation != generation:
        return FlowResult(message=f"{name}: a newer generation of {rule.rule_id} is in force")
    state = _with_launch(services, _begin(services, rule))
    services.rule_statuses.write(status_of(rule, state, services.clock.now()))
    return FlowResult(message=f"rule {rule.rule_id} was accepted, generation {generation}")


def _in_book(services: Services, dropped: StoredObject) -> Rule | Refused:
    """The rule with this id that the book now holds: the dropped one, or a newer one."""
    every = services.request_rules()
    requests = every.of_team(team_of_drop(every.policy, dropped.name), dropped.name)
    if isinstance(requests, Refused):
        return requests
    try:
        version = dropped.bucket, dropped.name, dropped.generation
        content = services.inbox.read(*version, max_bytes=MAX_RULE_BYTES).content
    except errors.ObjectTooLarge:
        return reading.rule_too_large(dropped.size_bytes) or reading.oversized_rule()
    requirements = RuleRequirements(requests=requests, buckets=services.buckets, prices=services.prices)
    template, generation = _template(services, reading.template_uri(content, dropped.name, requirements))
    for _ in range(RACES_MAX):
        held = services.rule_book.read()
        rule = reading.parse_rule(
            content,
            dropped_name=dropped.name,
            generation=dropped.generation,
            requirements=requirements,
            book=held.document,
            template=template,
        )
        rule = rule if isinstance(rule, Refused) else _unless_put_away(rule, held.document)
        if isinstance(rule, Refused):
            return rule
        if isinstance(template, bytes):
            # The bytes that were checked: the object may be another one by now.
            sha256 = services.rule_book.keep_template(template)
            rule = replace(rule, template=Template(generation=generation, sha256=sha256))
        book = held.document.with_rule(rule)
        try:
            if book != held.document:
                services.rule_book.replace(held, book)
        except errors.GenerationMoved:
            continue  # check the rule again with what was written first: together they may form a loop
        return book.find(rule.rule_id) or rule
    raise errors.GenerationMoved("the rule book", 0)


def _unless_put_away(rule: Rule, book: Book) -> Rule | Refused:
    """The rule, unless it is a copy of one in the book, and its place or its name says that it was put away."""
    for name in names_before(rule.dropped_name):
        before = book.find(reading.rule_id_of(name) or "")
        if before is not None and before.document == rule.document:
            return refusal_of(
                problem=f"this file is a copy of {plain(name)}, and is put away, so it is not a separate rule",
                repair="to make it a rule, give it another name",
            )
    return rule


def _template(services: Services, uri: str | None) -> tuple[bytes | Refused | None, int]:
    """The template's content and generation, or why it is not read, which `parse_rule` reports with other faults."""
    if uri is None:
        return None, 0
    try:
        stored = services.inbox.read(*split_object_uri(uri), max_bytes=MAX_REQUEST_BYTES)
    except errors.ObjectGone:
        return None, 0
    except errors.ObjectTooLarge:
        return oversized_refusal(), 0
    return stored.content, stored.generation


def _begin(services: Services, rule: Rule) -> RuleState:
    """The state of the new rule: its schedules count from now."""
    for _ in range(RACES_MAX):
        held = services.rule_states.read(rule.rule_id)
        state = state_for(rule, held.document, services.clock.now())
        with contextlib.suppress(errors.GenerationMoved):
            if state != held.document:
                services.rule_states.replace(held, state)
            return state
    raise errors.GenerationMoved(f"the state of {rule.rule_id}", 0)


def _with_launch(services: Services, state: RuleState) -> RuleState:
    """The state with its firing as the last one if that has a run: a turn records the launch of the turn before.

    A paused rule has no next turn. Without this, its status would lose the last firing.
    """
    try:
        has_run = state.firing is not None and services.ledger.find(state.firing.run_id) is not None
    except errors.RecordUnsupported:  # another release wrote the run's record
        has_run = True
    return with_launch(state) if has_run else state


def _refuse(services: Services, dropped: StoredObject, refused: Refused, report_uri: str) -> FlowResult:
    """Write the report, then the status. An older accepted generation stays in force."""
    answer = replace(
        answer_without_rule(services, dropped.name, dropped.generation, RuleStanding.REFUSED),
        report_uri=report_uri,
        reason=str(refused.faults[0]),
        problems=first_problems([str(fault) for fault in refused.faults]),
        faults=first_faults(refused.faults),
    )
    services.rule_statuses.write(answer)
    message = f"{dropped.name} was refused; faults: {len(refused.faults)}; report: {report_uri}"
    return FlowResult(message=message, severity="WARNING")


def answer_without_rule(services: Services, name: str, generation: int, state: RuleStanding) -> RuleStatus:
    """The status of a drop that adds no rule to the book, with the generation that stays in force, if any."""
    rule_id = reading.rule_id_of(name)
    present = services.rule_book.read().document.find(rule_id) if rule_id is not None else None
    return RuleStatus(
        dropped_name=name,
        generation=generation,
        state=state,
        updated_at=services.clock.now(),
        rule_id=rule_id,
        in_force=present.generation if present is not None and present.enabled else None,
    )


@contextlib.contextmanager
def rule_failures_in_status(services: Services, dropped: StoredObject) -> Iterator[None]:
    """If the body fails, the rule's status says so; the decisions of an older generation are not affected."""
    try:
        yield
    except errors.GenerationMoved:  # another attempt was faster
        raise
    except Exception as error:
        with contextlib.suppress(errors.TrainmasterError):
            present = services.rule_statuses.find(dropped.name)
            status = RuleStatus(
                dropped_name=dropped.name,
                generation=dropped.generation,
                state=RuleStanding.RETRYING,
                updated_at=services.clock.now(),
                rule_id=reading.rule_id_of(dropped.name),
                in_force=present.in_force if present is not None else None,
                reason=f"the delivery failed and will be retried: {failure_text(error)}",
            )
            services.rule_statuses.write(status)
        raise
