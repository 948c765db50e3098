"""Signals, events that may fire rules at once, read from messages: an image, an alert or a notice."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.orchestrator.core.documents.faults import cut, listed, shown
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import PubsubMessage, malformed_message, message_document
from trainmaster.orchestrator.core.notices.notice import CHAMPION_PROMOTED, RUN_PREFIX
from trainmaster.orchestrator.core.notices.routing import parse_published
from trainmaster.orchestrator.core.orders.order import FireOrder
from trainmaster.orchestrator.core.policy.policy import repository
from trainmaster.orchestrator.core.requests.incoming import Ignored
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.condition import Condition, UpstreamEvent
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.runs.states import ENDS, RunState

SUMMARY_MAX_CHARS = 500
MODEL_LABELS = (
    "model",
    "model_name",
    "model_id",
    "model_user_id",
    "deployed_model_id",
    "model_deployment_monitoring_job",
    "endpoint_id",
)
"""Labels in which an alert may name a model or its endpoint."""
LABELS = (
    ("policy_user_labels",),
    ("resource", "labels"),
    ("metric", "labels"),
    ("metadata", "user_labels"),
    ("metadata", "system_labels"),
)
"""The parts of an incident that have labels."""
_DIGEST = re.compile(r"(?P<repository>[^@\s]+)@(?P<digest>sha256:[0-9a-f]{64})")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_ABOUT_IMAGE = re.compile(r"sha(256|512)-[0-9a-f]{64,128}([._-].*)?")
"""The tag of what is stored about an image: signatures, attestations and SBOMs, as cosign and registries without OCI's
referrers API name them. Source: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#referrers-tag-schema
"""
ALERT_VERSION, TEST_VERSION = "1.2", "test"
"""The version of alerts that is read here, and that of the console's button "Send test notification"."""


@dataclass(frozen=True, kw_only=True)
class Signal:
    """`id` is the same in every delivery of the event; `values` fill placeholders, `facts` are for conditions.

    `warning` says what is odd about an event that is read all the same.

    The facts, by kind:

        new_image  repository, tag, digest
        alert      policy; models: names in the alert that may be a model, one per line
        upstream   model_name, event; team, if there are teams
        manual     rule
    """

    kind: ConditionKind
    id: str
    at: datetime
    facts: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    warning: str = ""


def manual_call(order: FireOrder) -> Signal:
    """The signal of an order to fire a rule."""
    facts = {"rule": order.rule_id}
    return Signal(kind=ConditionKind.MANUAL, id=order.order_id, at=order.given_at, facts=facts)


def matches(rule: Rule, signal: Signal) -> bool:
    """Whether the signal meets one of the rule's conditions. What a team's run or champion causes, no other team sees."""
    if signal.kind is ConditionKind.UPSTREAM and signal.facts.get("team") != rule.team:
        return False
    if signal.kind is ConditionKind.MANUAL and signal.facts.get("rule") != rule.rule_id:
        return False
    return bool(conditions_met(rule.members, signal))


def conditions_met(conditions: Iterable[Condition], signal: Signal) -> list[Condition]:
    """Those that the signal meets by its facts."""
    return [one for one in conditions if one.kind is signal.kind and one.matches(signal.facts)]


def parse_image_push(message: PubsubMessage) -> Signal | Ignored:
    """The push of a tagged image to Artifact Registry that the message reports.

    Source: https://cloud.google.com/artifact-registry/docs/configure-notifications

    Raises:
        EventMalformed: the message is not a registry's notification.
    """
    document = message_document(message, "a registry's notification")
    action, digest, tag = (document.get(key) for key in ("action", "digest", "tag"))
    if action == "DELETE":
        removed = f"the tag {tag!r} was removed from its image"
        what = f"the image {digest!r} was deleted" if digest else removed
        return Ignored(reason=f"{what}; only a push fires rules")
    if action != "INSERT":
        raise malformed_message(message, f"has the action {action!r}; a registry writes INSERT or DELETE")
    if not isinstance(tag, str) or not tag:
        return Ignored(reason=f"the image {digest!r} was pushed without a tag; rules watch tags")
    return _push_signal(message, tag, digest)


def _push_signal(message: PubsubMessage, tag: str, digest: object) -> Signal | Ignored:
    match = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if match is None:
        problem = f"gives no digest of {tag!r} but {digest!r}; expected HOST/…/IMAGE@sha256:…"
        raise malformed_message(message, problem)
    name = tag.removeprefix(f"{match['repository']}:")
    if _ABOUT_IMAGE.fullmatch(name):
        return Ignored(reason=f"{tag!r} is a signature or another document about an image, not an image")
    if repository(tag) != match["repository"] or not _TAG.fullmatch(name):
        raise malformed_message(message, f"has the tag {tag!r}, which is none of {match['repository']!r}")
    return Signal(
        kind=ConditionKind.NEW_IMAGE,
        id=f"image/{message.message_id}",
        at=message.publish_time,
        facts={"repository": match["repository"], "tag": name, "digest": match["digest"]},
        values={"image.uri": match[0], "image.digest": match["digest"], "image.tag": name},
    )


def parse_alert(message: PubsubMessage) -> Signal | Ignored:
    """The opening of a Cloud Monitoring incident; whatever else a notification channel sends starts nothing.

    Source: https://cloud.google.com/monitoring/support/notification-options, the schema of webhooks, version 1.2, which
    Pub/Sub channels send too.
    """
    try:
        return _opened_incident(message, message_document(message, "an alert"))
    except EventMalformed as malformed:
        return Ignored(reason=str(malformed), severity="WARNING")


def _opened_incident(message: PubsubMessage, document: Mapping[str, object]) -> Signal | Ignored:
    version, incident = document.get("version"), mapping_at(document, "incident")
    if version == TEST_VERSION:
        return Ignored(reason="a test notification of the channel, which is about no incident")
    odd = "" if version == ALERT_VERSION else f"has the version {shown(version)}, not {ALERT_VERSION!r}"
    incident_id, state = incident.get("incident_id"), incident.get("state")
    if not isinstance(incident_id, str) or not incident_id:
        keys = listed(sorted(map(one_line, document)), most=10) or "nothing"
        has = f"it has {keys}, and the version {shown(version)}"
        problem = f"is not an alert, which has an incident with an incident_id: {has}"
        raise malformed_message(message, problem)
    if not isinstance(state, str) or state.strip().lower() != "open":
        reason = f"incident {incident_id!r} is {state!r}; only one that opens fires rules"
        return Ignored(reason=reason, severity="INFO" if isinstance(state, str) else "WARNING")
    texts = {
        "alert.policy": incident.get("policy_name"),
        "alert.incident_id": incident_id,
        "alert.summary": incident.get("summary") or incident.get("condition_name"),
    }
    values = {name: one_line(str(text or "")) for name, text in texts.items()}
    return Signal(
        kind=ConditionKind.ALERT,
        id=f"alert/{values['alert.incident_id']}",
        at=message.publish_time,
        facts={"policy": values["alert.policy"], "models": "\n".join(_models(incident))},
        values={name: text for name, text in values.items() if text},
        warning=f"message {message.message_id!r} {odd}" if odd else "",
    )


def _models(incident: Mapping[str, object]) -> Iterable[str]:
    """Names in its labels that may be a model, each on one line."""
    labels = [mapping_at(incident, *path) for path in LABELS]
    named = (group.get(label) for group in labels for label in MODEL_LABELS)
    return dict.fromkeys(one_line(name) for name in named if isinstance(name, str) and name.strip())


@dataclass(frozen=True, kw_only=True)
class ParsedNotice:
    """What a notice reports: a signal that may fire rules, and the run that ended, if any."""

    signal: Signal | None = None
    ended_run_id: str | None = None


def parse_notice(message: PubsubMessage) -> ParsedNotice | Ignored:
    """What the notice, a structured CloudEvent from this service, means for rules.

    Raises:
        EventMalformed: the message is not a CloudEvent from this service.
    """
    notice, _ = parse_published(message)
    if notice.type == CHAMPION_PROMOTED:
        return ParsedNotice(signal=_upstream(notice.id, notice.time, UpstreamEvent.PROMOTED, notice.data))
    if not notice.type.startswith(RUN_PREFIX):
        return Ignored(reason=f"a notice of type {notice.type!r} fires no rule")
    return _of_run(notice.id, notice.time, notice.data)


def _of_run(event_id: str, at: datetime, data: Mapping[str, object]) -> ParsedNotice | Ignored:
    run_id, state = data.get("run_id"), data.get("state")
    if not isinstance(run_id, str) or not isinstance(state, str) or state not in set(RunState):
        raise EventMalformed(f"notice {event_id!r} is about run {run_id!r} in state {state!r}")
    if state not in ENDS:
        return Ignored(reason=f"run {run_id!r} is {state}; rules only react to ended runs")
    if state != RunState.SUCCEEDED or not isinstance(data.get("model_name"), str):
        return ParsedNotice(ended_run_id=run_id)
    return ParsedNotice(signal=_upstream(event_id, at, UpstreamEvent.SUCCEEDED, data), ended_run_id=run_id)


def _upstream(event_id: str, at: datetime, event: UpstreamEvent, data: Mapping[str, object]) -> Signal:
    model_name = data.get("model_name")
    if not isinstance(model_name, str):
        raise EventMalformed(f"notice {event_id!r} names no model")
    values = {f"upstream.{key}": data.get(key) for key in ("model_name", "run_id", "model_uri")}
    team = {"team": one_line(named)} if isinstance(named := data.get("team"), str) else {}
    return Signal(
        kind=ConditionKind.UPSTREAM,
        id=f"notice/{one_line(event_id)}",
        at=at,
        facts={"model_name": model_name, "event": event, **team},
        values={name: one_line(text) for name, text in values.items() if isinstance(text, str)},
    )


def one_line(text: str) -> str:
    """The text on one line, cut to what a placeholder takes: each run of spaces and line breaks becomes one space."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return cut(line, SUMMARY_MAX_CHARS)
