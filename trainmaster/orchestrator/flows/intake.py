"""Classifies what arrives, and passes it to the flow of its kind: a rule, a self-test, an order or a request.

A self-test is answered in the ledger, where its caller looks for the answer; it touches no run, rule or champion.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trainmaster.orchestrator.core.documents.document import Document, is_json, parse_document
from trainmaster.orchestrator.core.documents.faults import Refused, refusal_of
from trainmaster.orchestrator.core.errors import ObjectGone, ObjectTooLarge
from trainmaster.orchestrator.core.events import self_test
from trainmaster.orchestrator.core.events.envelope import Envelope, pubsub_message
from trainmaster.orchestrator.core.names import is_rule_object, run_id_in_group, status_object
from trainmaster.orchestrator.core.policy.teams import team_of_drop, team_of_topic
from trainmaster.orchestrator.core.requests.incoming import (
    Ignored,
    IncomingDocument,
    StoredObject,
    drop_of,
    is_order,
    parse_message,
    parse_upload,
)
from trainmaster.orchestrator.core.requests.request import oversized_refusal, too_large
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainmaster.orchestrator.core.runs import same_request
from trainmaster.orchestrator.core.runs.drop_status import run_shown, shown_generation, status_object_of
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES
from trainmaster.orchestrator.flows.lifecycle.status import failures_in_status, write_ignored_status
from trainmaster.orchestrator.flows.orders import take_order
from trainmaster.orchestrator.flows.queue_pass import admit
from trainmaster.orchestrator.flows.retraining.accept import accept, rule_failures_in_status
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission import launch
from trainmaster.orchestrator.ports.objects import Listed

ADMITTED_PER_ARRIVAL_MAX = 2
"""How many queued runs are admitted when a new run has to wait, so that the queue does not grow by what it delays."""
_TOPIC = "a message on this topic"
DRY_RUN_ID = "dry-run"
"""The run id in the printed job of a dry run. No run has it, because run ids end with a hash."""


def take_upload(services: Services, envelope: Envelope) -> Iterator[FlowResult]:
    """Handle an object that was uploaded to the inbox."""
    incoming = parse_upload(envelope, services.buckets.inbox)
    if isinstance(incoming, Ignored):
        yield _ignore(services, incoming)
    elif isinstance(incoming.content, StoredObject) and is_rule_object(incoming.content.name):
        with rule_failures_in_status(services, incoming.content):
            accepted = accept(services, incoming, incoming.content)
        yield accepted
    else:
        yield from take_and_admit(services, incoming)


def take_message(services: Services, envelope: Envelope) -> Iterator[FlowResult]:
    """Handle a message that was published to the requests topic."""
    if dry_run := self_test.parse_dry_run(pubsub_message(envelope)):
        team = team_of_topic(services.policy(), envelope.source)
        yield try_request(services, dry_run, team)
        return
    with failures_in_status(services, parse_message(envelope)):
        team = team_of_topic(services.policy(), envelope.source)
    yield from take_and_admit(services, parse_message(envelope, team))


def take_and_admit(services: Services, incoming: IncomingDocument) -> Iterator[FlowResult]:
    """Like `take`; then admit queued runs, if this run only waits for its turn or its end made room."""
    with failures_in_status(services, incoming):
        result = take(services, incoming)
    yield result
    if result.is_due:
        yield from admit(services, room_freed=False, most=ADMITTED_PER_ARRIVAL_MAX)


def take(services: Services, incoming: IncomingDocument) -> FlowResult:
    """Carry out the order, or launch the run, that the document asks for. Safe to repeat and to run concurrently.

    An order that is refused is rejected like a request.

    Raises:
        LeaseHeld, LeaseTooShort, RecordMoved, SubmissionUnknown: a later delivery must try again.
    """
    # Reading the status first costs a new event one read, and ends a duplicate after two, without reading its request.
    present = services.drop_statuses.find(status_object_of(incoming.source))
    dropped = incoming.content
    if isinstance(dropped, StoredObject):
        shown = run_shown(present, dropped.generation)
        try:
            return _resume(services, incoming, shown) or _take_object(services, incoming, dropped, present)
        except ObjectGone as gone:
            if gone.uri != dropped.uri:
                raise
            return _take_gone(services, incoming, dropped, present, gone)
    if incoming.source.idempotency_key is not None:
        incoming = incoming.of_content(same_request.document_id(dropped))
    if same_request.is_key_reused(present.get("content_id"), incoming.source):
        return launch.refuse_key(services, incoming)
    return _resume(services, incoming, incoming.run_id if present else None) or _take_new(services, incoming)


def _resume(services: Services, incoming: IncomingDocument, run_id: str | None) -> FlowResult | None:
    """The run, or the first one of the group, moved forward if it is on record."""
    if run_id is None:
        return None
    held = services.ledger.find(run_id) or services.ledger.find(run_id_in_group(run_id, 1))
    return None if held is None else launch.resume_recorded(services, incoming, held)


def _take_object(
    services: Services, incoming: IncomingDocument, dropped: StoredObject, present: Mapping[str, Any]
) -> FlowResult:
    """Take an object that has no run in `present`, the status of its name.

    Bucket, name and generation alone identify the run, so that no event can start a second one: the object itself says
    when it was created. This costs a new drop one read, because a download does not say that.

    Raises:
        ObjectGone: that generation was deleted or overwritten before it was read.
    """
    found = services.inbox.describe(dropped.bucket, dropped.name, dropped.generation)
    described = replace(dropped, size_bytes=found.size_bytes, content_id=_file_id(found))
    source = incoming.source
    actual = drop_of(described, source.event_id, found.created_at, source.received_at, found.metadata)
    # Without a status, or with that of an older generation, there is most likely no record: its reservation finds one.
    shown = shown_generation(present)
    if shown >= dropped.generation and (known := _resume(services, actual, actual.run_id)):
        return known
    if same_request.is_saved_again(present, actual.source):
        services.drop_statuses.note_repetition(actual.source, services.clock.now())
        return _repeats(present, dropped)
    for name in same_request.names_before(dropped.name):
        before = services.drop_statuses.find(status_object(name))
        if same_request.is_put_away(before, actual.source):
            reason = same_request.put_away_reason(name, before)
            ignored = Ignored(reason=reason, dropped=dropped, run_id=before["run_id"])
            return _ignore(services, ignored)
    return _take_new(services, actual)


def _ignore(services: Services, ignored: Ignored) -> FlowResult:
    write_ignored_status(services, ignored)
    return FlowResult(message=f"ignored: {ignored.reason}", run_id=ignored.run_id or "")


def _file_id(found: Listed) -> str | None:
    return same_request.file_id(found.size_bytes, found.crc32c, found.metadata)


def _repeats(present: Mapping[str, Any], dropped: StoredObject) -> FlowResult:
    what = f"{dropped.uri}, generation {dropped.generation}, repeats generation {present.get('generation')}"
    return FlowResult(message=f"{what}: the same content", run_id=str(present.get("run_id") or ""))


def _take_gone(
    services: Services,
    incoming: IncomingDocument,
    dropped: StoredObject,
    present: Mapping[str, Any],
    gone: ObjectGone,
) -> FlowResult:
    """Answer for a generation that can no longer be read: a newer one with the same content asks for the same."""
    if known := _resume(services, incoming, incoming.run_id):
        return known
    is_begun = bool(services.ledger.runs_of_group(incoming.run_id))
    if not is_begun and same_request.is_saved_again(present, incoming.source):
        return _repeats(present, dropped)
    try:
        newer = services.inbox.describe(dropped.bucket, dropped.name)
    except ObjectGone:
        newer = None
    if is_begun or newer is None or dropped.content_id is None or _file_id(newer) != dropped.content_id:
        # Not read, it is not the same as what is saved next.
        refused = refusal_of(
            problem=f"{gone}: it was deleted or overwritten before it was read",
            repair="if it was overwritten, the newer upload becomes its own request; otherwise drop the file again",
        )
        return launch.reject_rest(services, incoming.of_content(None), refused)
    what = f"{dropped.uri}, generation {dropped.generation}, was overwritten with the same content before it was read"
    return FlowResult(message=f"{what}: generation {newer.generation} asks for the same")


def _take_new(services: Services, incoming: IncomingDocument) -> FlowResult:
    request_rules, dropped = services.request_rules(), incoming.source.object_name
    if dropped is not None:
        incoming = incoming.of_team(team_of_drop(request_rules.policy, dropped))
    of_team = request_rules.of_team(incoming.source.team, dropped or _TOPIC)
    read = of_team if isinstance(of_team, Refused) else _read(services, incoming.content)
    if isinstance(read, Refused):
        reject = launch.reject_rest if read is of_team else launch.reject
        return reject(services, incoming, read)
    take_document = take_order if is_order(read.value) else launch.take_request
    return take_document(services, incoming, read)


def _read(services: Services, content: StoredObject | bytes) -> Document | Refused:
    if isinstance(content, bytes):
        return _read_message(content)
    if refusal := too_large(content.size_bytes):
        return refusal
    bucket, name = content.bucket, content.name
    try:
        found = services.inbox.read(bucket, name, content.generation, max_bytes=MAX_REQUEST_BYTES)
    except ObjectTooLarge:
        return oversized_refusal()
    return parse_document(found.content, as_json=name.lower().endswith(".json"))


def _read_message(content: bytes) -> Document | Refused:
    return too_large(len(content)) or parse_document(content, as_json=is_json(content))


def answer_entry(services: Services, entry: self_test.MarkedEntry) -> FlowResult:
    """Record that the entry arrived. Safe to repeat: the first answer stays.

    Any account that may write logs can send such entries: a flood of them shares the allowance of unknown jobs.

    Raises:
        ServiceFailed: the answer could not be written.
    """
    if not services.hint_reads.spend(self_test.NO_JOB_ID):
        return FlowResult(message="too many self-tests: this one is not answered", severity="WARNING")
    answer = self_test.Answer(
        self_test_id=entry.self_test_id,
        entry_point="on_job_log",
        asked_at=entry.written_at,
        answered_at=services.clock.now(),
    )
    return _answer(services, answer, "a log entry arrived")


def try_request(services: Services, dry_run: self_test.DryRun, team: str | None) -> FlowResult:
    """Check the team's request like one to run, build its job, and submit nothing. Safe to repeat.

    Raises:
        PolicyInvalid: the deployed policy cannot be used.
        ServiceFailed: the answer could not be written.
    """
    read = _read_message(dry_run.content)
    request = read if isinstance(read, Refused) else launch.check_request(services, read, team, found=_TOPIC)
    verdict: dict[str, Any] = {"accepted": not isinstance(request, Refused)}
    if isinstance(request, Refused):
        verdict["faults"] = [fault.document for fault in request.faults]
    else:
        target = replace(services.target, region=request.document["region"])
        submission = submission_of(DRY_RUN_ID, request.spec, target)
        verdict["warnings"] = [fault.document for fault in request.warnings]
        parent, kind, body = submission.parent, str(submission.kind), submission.body
        verdict["submission"] = {"parent": parent, "kind": kind, "body": body}
    answer = self_test.Answer(
        self_test_id=dry_run.self_test_id,
        entry_point="on_request_published",
        asked_at=dry_run.published_at,
        answered_at=services.clock.now(),
        verdict=verdict,
    )
    word = "found sound" if verdict["accepted"] else "refused"
    return _answer(services, answer, f"a request was checked: {word}")


def _answer(services: Services, answer: self_test.Answer, what: str) -> FlowResult:
    uri = services.ledger.keep_answer(answer)
    return FlowResult(message=f"self-test {answer.self_test_id}: {what}; {uri}")
