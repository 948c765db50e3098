"""Every parser of bytes from outside, for the search for the inputs that take it longest: `bench/fuzz.py --slow`."""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.core.fuzz import seeds
from tests.core.fuzz.parsers import BUCKETS, NAMES, NOON, REQUEST_RULES, parse_entry
from tests.core.fuzz.recipes import Recipe, changed_recipe, drawn
from tests.core.fuzz.text_recipes import TextRecipe
from tests.core.parsed import parse_request
from tests.core.shipped import policy_document, schema
from trainmaster.client.deployment import parse_deployment
from trainmaster.client.errors import ClientRefused
from trainmaster.orchestrator.core.admission.prices import prices_from
from trainmaster.orchestrator.core.completion.model import ModelDirectory, ModelFile, find_model
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import Envelope, PubsubMessage, event_key, pubsub_message
from trainmaster.orchestrator.core.events.self_test import parse_dry_run
from trainmaster.orchestrator.core.orders.order import parse_order
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.requests.incoming import is_order, parse_message, parse_upload
from trainmaster.orchestrator.core.retraining.arrivals import parse_arrived_object, parse_batch
from trainmaster.orchestrator.core.retraining.book import Book, parse_book
from trainmaster.orchestrator.core.retraining.reading import parse_rule, template_uri
from trainmaster.orchestrator.core.retraining.request_check import RuleRequirements
from trainmaster.orchestrator.core.retraining.signals import parse_alert, parse_image_push, parse_notice
from trainmaster.orchestrator.core.retraining.state import RuleState
from trainmaster.orchestrator.core.runs.drop_status import parse_status
from trainmaster.orchestrator.core.runs.index import parse_row
from trainmaster.orchestrator.core.runs.record import RunRecord

SLOW_S = 0.5
"""Processor time that no parser may take for a document of at most 1 MiB."""
_FILES = tuple(ModelFile(path=f"{number}.bin", size_bytes=10, generation=1) for number in range(100))
_REQUIREMENTS = RuleRequirements(requests=REQUEST_RULES, buckets=BUCKETS)
_RULE = json.dumps(
    {
        "when": [{"new_data": {"objects": f"gs://data/{number}/**"}} for number in range(10)],
        "request_uri": f"gs://{BUCKETS.inbox}/templates/a.json",
    }
).encode()
"""The rule that repeats the check of its template most often."""


@dataclass(frozen=True, kw_only=True)
class SlowParser:
    """A parser, and the examples that its inputs grow from."""

    name: str
    examples: list[Any]
    feed: Callable[[bytes], object]
    draw: Callable[[Random, list[Any]], Recipe | TextRecipe] = drawn
    change: Callable[[Any, Random, list[Any]], Recipe | TextRecipe] = changed_recipe


def _request(content: bytes) -> object:
    as_json = content[:1] == b"{" and len(content) % 2 == 0  # each of the two readers has its share
    return parse_request(content, as_json=as_json, request_rules=REQUEST_RULES, name="named")


def _order(content: bytes) -> object:
    read = parse_document(content, as_json=False)
    return is_order(read.value) and parse_order(read, seeds.ORDER_SCHEMA, "order-1", NOON)


def _rule(content: bytes) -> object:
    template_uri(content, "rules/a.yaml", _REQUIREMENTS)
    return _parsed_rule(content, None)


def _template(content: bytes) -> object:
    return _parsed_rule(_RULE, content)


def _parsed_rule(content: bytes, template: bytes | None) -> object:
    return parse_rule(
        content,
        dropped_name="rules/a.yaml",
        generation=1,
        requirements=_REQUIREMENTS,
        book=Book(),
        template=template,
    )


def _event(read: Callable[[Envelope], object]) -> Callable[[bytes], object]:
    def feed(content: bytes) -> object:
        data = json.loads(content)
        return read(
            Envelope(id="9", type="t", source="s", subject="", time=NOON, received_at=NOON, data=data)
        )

    return feed


def _delivered(event: Envelope) -> object:
    event_key(event)
    return parse_dry_run(pubsub_message(event)) or parse_message(event)


def _message(read: Callable[[PubsubMessage], object]) -> Callable[[bytes], object]:
    return lambda content: read(
        PubsubMessage(message_id="m-1", publish_time=NOON, attributes={}, data=content)
    )


def _model(content: bytes, name: str) -> object:
    directory = ModelDirectory(uri=seeds.MODEL_URI, files=_FILES, **{name: content})  # type: ignore[arg-type]  # both are bytes
    return find_model(directory, seeds.EXPORT_SCHEMA)


def _row(content: bytes) -> object:
    metadata = {str(key): json.dumps(value) for key, value in json.loads(content).items()}
    return parse_row("index/9999999999999999/run-20260304t120000-0123456789", metadata)


def _kept(kind: type) -> Callable[[bytes], object]:
    return lambda content: decoded(kind, json.loads(content))


def _policy(content: bytes) -> object:
    read = parse_document(content, as_json=False)
    return schema_faults(schema("policy.v1"), read.value, read.spelled) or policy_from(read.value, NAMES)


def _prices(content: bytes) -> object:
    read = parse_document(content, as_json=False)
    found: Any = read.value
    return schema_faults(schema("prices.v1"), found, read.spelled) or prices_from(found)


def _deployment(content: bytes) -> object:
    found = parse_deployment(json.loads(content), "deployment.json", "trainmaster deploy")
    return schema_faults(schema("policy.v1"), found.policy) or schema_faults(
        schema("prices.v1"), found.prices
    )


SLOW_PARSERS = (
    SlowParser(name="request", examples=seeds.OWN, feed=_request),
    SlowParser(name="request of custom-jobs", examples=seeds.CUSTOM, feed=_request),
    SlowParser(name="request of hp-tuning-jobs", examples=seeds.TUNING, feed=_request),
    SlowParser(name="request of ai-platform", examples=seeds.LEGACY, feed=_request),
    SlowParser(name="rule", examples=seeds.RULES, feed=_rule),
    SlowParser(name="template", examples=[*seeds.OWN, *seeds.TUNING], feed=_template),
    SlowParser(name="order", examples=seeds.ORDERS, feed=_order),
    SlowParser(
        name="upload event", examples=seeds.UPLOADS, feed=_event(lambda e: parse_upload(e, BUCKETS.inbox))
    ),
    SlowParser(name="data event", examples=seeds.UPLOADS, feed=_event(parse_arrived_object)),
    SlowParser(name="Pub/Sub event", examples=seeds.MESSAGES, feed=_event(_delivered)),
    SlowParser(name="log entry", examples=seeds.LOG_ENTRIES, feed=_message(parse_entry)),
    SlowParser(name="image push", examples=seeds.PUSHES, feed=_message(parse_image_push)),
    SlowParser(name="alert", examples=seeds.ALERTS, feed=_message(parse_alert)),
    SlowParser(name="notice", examples=seeds.NOTICES, feed=_message(parse_notice)),
    SlowParser(
        name="model manifest", examples=seeds.MANIFESTS, feed=lambda content: _model(content, "manifest")
    ),
    SlowParser(
        name="metrics",
        examples=[{"accuracy": 0.9, "loss": 0.1}],
        feed=lambda content: _model(content, "metrics"),
    ),
    SlowParser(name="record", examples=seeds.stored("run_record.v2"), feed=_kept(RunRecord)),
    SlowParser(name="rule state", examples=seeds.stored("rule_state.v1"), feed=_kept(RuleState)),
    SlowParser(
        name="rule book",
        examples=seeds.stored("rule_book.v1"),
        feed=lambda content: parse_book(json.loads(content)),
    ),
    SlowParser(name="drop status", examples=seeds.stored("drop_status.v1"), feed=parse_status),
    SlowParser(
        name="batch",
        examples=[["data", "a/b", "1", "2", "2026-03-01T11:00:00Z"]],
        feed=lambda c: parse_batch("b", c),
    ),
    SlowParser(name="index row", examples=[{"state": "succeeded", "labels": {"a": "b"}}], feed=_row),
    SlowParser(name="policy", examples=[policy_document(), *seeds.stored("policy.v1")], feed=_policy),
    SlowParser(name="price table", examples=seeds.stored("prices.v1"), feed=_prices),
    SlowParser(name="deployment", examples=seeds.stored("deployment.v1"), feed=_deployment),
)
DECLARED = (EventMalformed, ClientRefused, ValueError, RecursionError, AttributeError)


def seconds_of(parser: SlowParser, content: bytes) -> float:
    """Processor time of one input; a refusal takes its time too."""
    began = time.process_time()
    with contextlib.suppress(*DECLARED):
        parser.feed(content)
    return time.process_time() - began


@dataclass(frozen=True, kw_only=True)
class Slowest:
    """The input that took a parser longest, of all that the search tried."""

    recipe: Recipe | TextRecipe
    seconds: float
    size_bytes: int


def search(parser: SlowParser, tries: int, seed: int) -> Slowest:
    """Climb towards the slowest input: a third of the tries start anywhere, the others change one of the three slowest."""
    random = Random(f"{seed}/{parser.name}")
    kept: list[Slowest] = []
    for number in range(tries):
        recipe = (
            parser.draw(random, parser.examples)
            if number < tries // 3
            else parser.change(random.choice(kept).recipe, random, parser.examples)
        )
        content = recipe.content(parser.examples)
        taken_s = seconds_of(parser, content)
        if not kept or taken_s > kept[-1].seconds:  # the first time may include an import
            taken_s = min(taken_s, seconds_of(parser, content))
        kept.append(Slowest(recipe=recipe, seconds=taken_s, size_bytes=len(content)))
        kept = sorted(kept, key=lambda each: -each.seconds)[:3]
    return kept[0]
