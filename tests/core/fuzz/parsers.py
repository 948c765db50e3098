"""Every parser of what comes from outside: its inputs, and what it promises of each of them.

A parser takes an input, passes it over, or refuses it with a reason. Whatever else happens is a finding.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

from tests.core.fuzz import seeds
from tests.core.fuzz.mutation import changed, content_like, places, text
from tests.core.fuzz.verdicts import LINE_BREAKERS, Broken, Parser, Verdict, promised, refused_well, said_well
from tests.core.parsed import parse_request
from tests.core.shipped import policy_document, schema
from tests.core.vertex_files import snake_key
from trainmaster.orchestrator.core.completion.entry import JobHint, parse_hint
from trainmaster.orchestrator.core.completion.model import ModelDirectory, ModelFile, find_model
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, Refused, json_path
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import (
    KEY_CHARS,
    Envelope,
    PubsubMessage,
    event_key,
    pubsub_message,
)
from trainmaster.orchestrator.core.events.self_test import (
    DryRun,
    MarkedEntry,
    parse_dry_run,
    parse_marked_entry,
    self_test_object,
)
from trainmaster.orchestrator.core.names import Buckets, is_run_id, status_object
from trainmaster.orchestrator.core.orders.order import (
    ApproveOrder,
    CancelOrder,
    CleanOrder,
    FireOrder,
    RollbackOrder,
    parse_order,
)
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.requests.incoming import (
    Ignored,
    IncomingDocument,
    is_order,
    parse_message,
    parse_upload,
)
from trainmaster.orchestrator.core.requests.reading import AI_PLATFORM, OWN, dialect_of
from trainmaster.orchestrator.core.requests.request import Request, RequestRules
from trainmaster.orchestrator.core.requests.submission import Target, submission_of
from trainmaster.orchestrator.core.retraining.arrivals import (
    ArrivedObject,
    encoded_batch,
    parse_arrived_object,
    parse_batch,
)
from trainmaster.orchestrator.core.retraining.book import Book, parse_book
from trainmaster.orchestrator.core.retraining.decision import Facts, decide_on_tick
from trainmaster.orchestrator.core.retraining.reading import parse_rule, template_uri
from trainmaster.orchestrator.core.retraining.request_check import RuleRequirements
from trainmaster.orchestrator.core.retraining.signals import (
    ParsedNotice,
    Signal,
    parse_alert,
    parse_image_push,
    parse_notice,
)
from trainmaster.orchestrator.core.retraining.state import state_for
from trainmaster.orchestrator.core.retraining.waiting import with_arrivals
from trainmaster.orchestrator.core.runs.end import Model

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
TARGET = Target(project="my-project", region="us-central1", models_bucket="my-project-models")
BUCKETS = Buckets(
    inbox="my-project-inbox",
    ledger="my-project-ledger",
    models="my-project-models",
    champions="my-project-champions",
)
NAMES = {"project": "my-project", "region": "us-central1", "models_bucket": "my-project-models"}
REQUEST_RULES = RequestRules(
    schemas={name: schema(name) for name in ("training_request.v1", "retraining_rule.v1")},
    policy=policy_from(policy_document(), NAMES),
    region="us-central1",
    today=NOON.date(),
)


def _property_names(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        schema = list(schema.values())
    for inner in schema if isinstance(schema, list) else ():
        yield from _property_names(inner)


RUN_ID = "run-20260304t120000-0123456789"
_LAST_PARTS = re.compile(r"""(?:\.\w+|\[[0-9]+\]|\['.*'\]|\[".*"\]){1,3}""", re.DOTALL)
_THEIRS = seeds.vocabulary([*seeds.CUSTOM, *seeds.TUNING, *seeds.AI_PLATFORM])
OURS = set(_property_names(REQUEST_RULES.schemas["training_request.v1"])) - {
    *_THEIRS,
    *map(snake_key, _THEIRS),
}
"""Words that only our own dialect has: in a fault about another they would mislead."""


def _bytes_of(documents: list[Any], *, as_json: bool) -> Callable[[Random], bytes]:
    words = seeds.vocabulary(documents)
    return lambda random: content_like(random.choice(documents), random, words, as_json=as_json)


# Requests, orders and rules: documents that users write.


def feed_request(content: bytes) -> Verdict:
    as_json = content[:1] == b"{" and len(content) % 2 == 0  # each of the two readers has its share
    read = parse_request(content, as_json=as_json, request_rules=REQUEST_RULES, name="named")
    document = parse_document(content, as_json=as_json).value
    if isinstance(document, dict) and dialect_of(document) is not OWN:
        _in_the_users_words(document, read.faults if isinstance(read, Refused) else read.warnings)
    return refused_well(read.faults) if isinstance(read, Refused) else _submitted(read)


def _in_the_users_words(document: dict[str, object], faults: Iterable[Fault]) -> None:
    """Every fault is at a place of the text or at what is missing there, and a Vertex job's at no word of ours."""
    there = {json_path(path) for path in places(document)}
    ours = frozenset[str]() if dialect_of(document) is AI_PLATFORM else OURS
    for fault in faults:
        beyond = any(_LAST_PARTS.fullmatch(fault.path.removeprefix(place)) for place in there)
        promised(holds=fault.path in there or beyond, promise="a place of the text", found=fault)
        words = set(re.split(r"[.\[\]]", fault.path))
        # A key of the text may hold brackets, and words of ours in them.
        own = ours.isdisjoint(words) or fault.path in there
        promised(holds=own, promise="words of the text", found=fault)


def _submitted(request: Request) -> Verdict:
    submission = submission_of(RUN_ID, request.spec, TARGET)
    json.dumps(submission.body, ensure_ascii=False, allow_nan=False).encode()
    job = submission.body.get("trialJobSpec") or submission.body["jobSpec"]
    uri = job["baseOutputDirectory"]["outputUriPrefix"]  # type: ignore[index]  # a submission's own shape
    parts = uri.split("/")
    promised(holds=parts[-1] == RUN_ID and ".." not in parts, promise="its own directory", found=uri)
    inside = uri.startswith(f"gs://{TARGET.models_bucket}/")
    promised(holds=inside, promise="a directory under the allowed prefix", found=uri)
    for warning in request.warnings:
        refused_well([warning])
    return Verdict.TAKEN


def feed_order(content: bytes) -> Verdict:
    for as_json in (False, True):
        document = parse_document(content, as_json=as_json)
    if not is_order(document.value):
        return Verdict.PASSED_OVER
    match parse_order(document, seeds.ORDER_SCHEMA, "order-1", NOON):
        case Refused(faults=faults):
            return refused_well(faults)
        case FireOrder() | RollbackOrder() | CancelOrder() | ApproveOrder() | CleanOrder():
            return Verdict.TAKEN


@dataclass(frozen=True, kw_only=True)
class RuleFile:
    name: str
    content: bytes
    template: bytes | None


def draw_rule(random: Random) -> RuleFile:
    name = (
        f"rules/{text(random)}.yaml"
        if random.random() < 0.1
        else random.choice(("rules/a.yaml", "rules/a.json"))
    )
    with_template = random.random() < 0.2
    return RuleFile(
        name=name,
        content=draw_rule_content(random),
        template=draw_own_request(random) if with_template else None,
    )


def feed_rule(file: RuleFile) -> Verdict:
    requirements = RuleRequirements(requests=REQUEST_RULES, buckets=BUCKETS)
    template_uri(file.content, file.name, requirements)
    read = parse_rule(
        file.content,
        dropped_name=file.name,
        generation=1,
        requirements=requirements,
        book=Book(),
        template=file.template,
    )
    if isinstance(read, Refused):
        return refused_well(read.faults)
    book = Book().with_rule(read)
    again = parse_book(json.loads(json.dumps(encoded(book))))
    promised(holds=again == book, promise="a rule that can be kept", found=read)
    decide_on_tick(read, with_arrivals(state_for(read, None, NOON), read, ()), Facts(now=NOON))
    return Verdict.TAKEN


# Events and messages: delivered by services, and by any principal that may publish.


def draw_envelope(documents: list[Any]) -> Callable[[Random], Envelope]:
    words = seeds.vocabulary(documents)

    def draw(random: Random) -> Envelope:
        whole = Envelope(id="9", type="t", source="s", subject="", time=NOON, received_at=NOON, data=None)
        if random.random() < 0.3:
            field = random.choice(("id", "type", "source", "subject"))
            whole = replace(whole, **{field: text(random)})  # type: ignore[arg-type]  # all of these are texts
        document = random.choice(documents)
        return replace(whole, data=changed(document, random, words) if random.random() < 0.95 else document)

    return draw


def feed_upload(event: Envelope) -> Verdict:
    return _heard(lambda: parse_upload(event, BUCKETS.inbox))


def feed_data_event(event: Envelope) -> Verdict:
    return _heard(lambda: parse_arrived_object(event))


def feed_message(event: Envelope) -> Verdict:
    key = event_key(event)
    promised(holds=len(key) in (0, KEY_CHARS) and key.isalnum() == bool(key), promise="a key", found=key)
    return _heard(lambda: parse_dry_run(pubsub_message(event)) or parse_message(event))


def parse_entry(message: PubsubMessage) -> MarkedEntry | JobHint | None:
    """What a log entry is taken for: a self-test, or a hint."""
    return parse_marked_entry(message) or parse_hint(message)


def _message(data: bytes) -> PubsubMessage:
    return PubsubMessage(message_id="m-1", publish_time=NOON, attributes={}, data=data)


def _message_fed(read: Callable[[PubsubMessage], object]) -> Callable[[bytes], Verdict]:
    return lambda data: _heard(lambda: read(_message(data)))


def _heard(read: Callable[[], object]) -> Verdict:
    try:
        found = read()
    except EventMalformed as malformed:
        said_well(str(malformed))
        return Verdict.REFUSED
    match found:
        case None:
            return Verdict.PASSED_OVER
        case Ignored():
            said_well(found.reason)
            return Verdict.REFUSED if found.severity == "WARNING" else Verdict.PASSED_OVER
        case IncomingDocument():
            promised(holds=is_run_id(found.run_id), promise="a run id", found=found.run_id)
            _kept_name(found.source.object_name)
        case ArrivedObject():
            (again,) = parse_batch("b", encoded_batch([found])).arrivals
            promised(holds=again == found, promise="an arrival that can be kept", found=found)
            _kept_name(found.name)
        case Signal():
            _values_fit(found)
        case ParsedNotice():
            if found.signal is not None:
                _values_fit(found.signal)
        case DryRun() | MarkedEntry():
            name = self_test_object(found.self_test_id)
            promised(
                holds=re.fullmatch(r"self-test/[0-9a-f]{32}\.json", name) is not None,
                promise="a name",
                found=name,
            )
        case JobHint():
            promised(holds=found.job_id.isascii() and found.job_id.isdigit(), promise="a job id", found=found)
        case _:
            raise Broken(f"an answer of no known kind: {found!r}")
    return Verdict.TAKEN


def _kept_name(object_name: str | None) -> None:
    """The object can be requested, and its status has a name that the service accepts."""
    if object_name is None:
        return
    promised(
        holds=len(status_object(object_name).encode()) <= 1024, promise="a status name", found=object_name
    )


def _values_fit(signal: Signal) -> None:
    if signal.warning:
        said_well(signal.warning)
    for name, found in signal.values.items():
        promised(holds=not LINE_BREAKERS.search(found), promise=f"{name} in one line", found=found)


# Files that trainers leave behind, written by untrusted containers.


def feed_manifest(content: bytes) -> Verdict:
    files = (ModelFile(path="saved_model.pb", size_bytes=10, generation=1),)
    # The same bytes as either document: both come from programs outside our control.
    for directory in (
        ModelDirectory(uri=seeds.MODEL_URI, files=files, metrics=content),
        ModelDirectory(uri=seeds.MODEL_URI, files=files, manifest=content),
    ):
        found = find_model(directory, seeds.EXPORT_SCHEMA)
        for problem in found.problems:
            said_well(problem)
        promised(
            holds=isinstance(found.model, Model), promise="the model that lies there", found=found.problems
        )
        json.dumps(encoded(found.model), allow_nan=False)
    return Verdict.REFUSED if found.problems else Verdict.TAKEN


draw_own_request = _bytes_of(seeds.OWN, as_json=False)
draw_rule_content = _bytes_of(seeds.RULES, as_json=False)
PARSERS = (
    Parser(name="request", draw=draw_own_request, feed=feed_request),
    Parser(name="request of custom-jobs", draw=_bytes_of(seeds.CUSTOM, as_json=False), feed=feed_request),
    Parser(name="request of hp-tuning-jobs", draw=_bytes_of(seeds.TUNING, as_json=False), feed=feed_request),
    Parser(
        name="request of ai-platform", draw=_bytes_of(seeds.AI_PLATFORM, as_json=False), feed=feed_request
    ),
    Parser(name="rule", draw=draw_rule, feed=feed_rule),
    Parser(name="order", draw=_bytes_of(seeds.ORDERS, as_json=False), feed=feed_order),
    Parser(name="upload event", draw=draw_envelope(seeds.UPLOADS), feed=feed_upload),
    Parser(name="data event", draw=draw_envelope(seeds.UPLOADS), feed=feed_data_event),
    Parser(name="Pub/Sub event", draw=draw_envelope(seeds.MESSAGES), feed=feed_message),
    Parser(name="log entry", draw=_bytes_of(seeds.LOG_ENTRIES, as_json=True), feed=_message_fed(parse_entry)),
    Parser(
        name="image push", draw=_bytes_of(seeds.PUSHES, as_json=True), feed=_message_fed(parse_image_push)
    ),
    Parser(name="alert", draw=_bytes_of(seeds.ALERTS, as_json=True), feed=_message_fed(parse_alert)),
    Parser(name="notice", draw=_bytes_of(seeds.NOTICES, as_json=True), feed=_message_fed(parse_notice)),
    Parser(name="model manifest", draw=_bytes_of(seeds.MANIFESTS, as_json=True), feed=feed_manifest),
)
