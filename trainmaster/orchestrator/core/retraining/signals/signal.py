"""Something that happened once and may fire rules. The modules beside read one out of each kind of message."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import assert_never

from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import PubsubMessage
from trainmaster.orchestrator.core.policy.policy import matches
from trainmaster.orchestrator.core.retraining.rules.condition import (
    Age,
    Alert,
    Condition,
    ConditionKind,
    Manual,
    NewData,
    NewImage,
    Schedule,
    Upstream,
)
from trainmaster.orchestrator.core.retraining.rules.rule import Rule

SUMMARY_MAX_CHARS = 500
_RESOURCE = re.compile(
    r"projects/[^/]+/locations/(?P<location>[^/]+)/(?P<collection>[A-Za-z]+)/(?P<id>[^/@]+)(@[^/]+)?"
)


@dataclass(frozen=True, kw_only=True)
class Signal:
    """`id` is the same in every delivery of what happened; `values` fill places, `facts` are for conditions.

    The facts, by kind:

        new_image  repository, tag, digest
        alert      policy; models: what the alert names that may be a model, one a line
        upstream   model_name, event
        manual     rule
    """

    kind: ConditionKind
    id: str
    at: datetime
    facts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)


def manual_call(order_id: str, rule_id: str, at: datetime) -> Signal:
    """The signal of an order to fire this rule."""
    return Signal(kind=ConditionKind.MANUAL, id=order_id, at=at, facts={"rule": rule_id})


def heeds(rule: Rule, signal: Signal) -> bool:
    """Whether one of the rule's conditions is about this signal."""
    if signal.kind is ConditionKind.MANUAL and signal.facts.get("rule") != rule.rule_id:
        return False
    return any(_about(condition, signal) for condition in rule.conditions if condition.kind is signal.kind)


def _about(condition: Condition, signal: Signal) -> bool:
    facts = signal.facts
    match condition:
        case NewImage():
            return condition.repository == facts.get("repository") and matches(
                condition.tag, facts.get("tag", "")
            )
        case Alert():
            return _alerted(condition, facts)
        case Upstream():
            return condition.model_name == facts.get("model_name") and condition.event == facts.get("event")
        case Manual():
            return True
        case NewData() | Schedule() | Age():
            return False  # a tick decides these
        case _:
            assert_never(condition)


def _alerted(condition: Alert, facts: Mapping[str, str]) -> bool:
    if condition.policy is not None and not _any_text(condition.policy, facts.get("policy", "")):
        return False
    if condition.model is None:
        return True
    return any(_same_model(condition.model, named) for named in facts.get("models", "").splitlines())


def _any_text(pattern: str, text: str) -> bool:
    """A policy's name is free text, in which '/' is a character like any other."""
    return matches(re.sub(r"\*+", "**", pattern), text)


def _same_model(wanted: str, named: str) -> bool:
    """Whether the alert's name means the wanted model: the same text, or the same resource.

    The service writes the project's number where a user writes its id, and in labels the bare id alone.
    A version, `@2`, is no part of the name.
    """
    if matches(wanted, named) or matches(wanted, named.partition("@")[0]):
        return True
    want, name = _RESOURCE.fullmatch(wanted), _RESOURCE.fullmatch(named)
    if want is not None and name is not None:
        return want.group("location", "collection", "id") == name.group("location", "collection", "id")
    return (want is not None and named == want["id"]) or (name is not None and wanted == name["id"])


def one_line(text: str) -> str:
    """The text as a place can take it: runs of spaces and line breaks as one space, and not too long."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= SUMMARY_MAX_CHARS else line[: SUMMARY_MAX_CHARS - 1] + "…"


def document_of(message: PubsubMessage, what: str) -> Mapping[str, object]:
    """The JSON object in the message.

    Raises:
        EventMalformed: it holds something else.
    """
    try:
        document = json.loads(message.data)
    except (ValueError, RecursionError) as error:
        raise EventMalformed(
            f"message {message.message_id!r} holds no JSON, so no {what}: {error}"
        ) from error
    if not isinstance(document, Mapping):
        kind = type(document).__name__
        raise EventMalformed(f"message {message.message_id!r} holds a {kind} where {what} was expected")
    return document


def texts(values: Iterable[object]) -> tuple[str, ...]:
    """Those of the values that are texts with something in them, each once, in one line each."""
    return tuple(
        dict.fromkeys(one_line(value) for value in values if isinstance(value, str) and value.strip())
    )
