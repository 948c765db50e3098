"""Events that may fire rules: an image that was pushed, an alert, one of our own notices, a manual call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from orchestrator.core.envelope import PubsubMessage
from orchestrator.core.launch.event import Ignored
from orchestrator.core.retrain.condition import ConditionKind
from orchestrator.core.retrain.rule import Rule


@dataclass(frozen=True, kw_only=True)
class Signal:
    """Something that happened once. `id` is the same in every delivery.

    `facts` is what conditions are matched with and, under names with a dot, what fills places:

        new_image  repository, tag; image.uri, image.digest, image.tag
        alert      policy, model, models…; alert.policy, alert.incident_id, alert.summary
        upstream   model_name, event; upstream.model_name, upstream.run_id, upstream.model_uri
        manual     rule
    """

    kind: ConditionKind
    id: str
    at: datetime
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, str]:
        """The facts that fill places."""
        return {name: text for name, text in self.facts.items() if "." in name}


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What one of our own notices tells: a signal that may fire rules, and the run that ended, if one did."""

    signal: Signal | None = None
    ended_run_id: str | None = None


def image_pushed_in(message: PubsubMessage) -> Signal | Ignored:
    """The push that Artifact Registry tells of.

    Raises:
        EventMalformed: the message is no such notification.
    """
    raise NotImplementedError


def alert_in(message: PubsubMessage) -> Signal | Ignored:
    """The alert in a Cloud Monitoring incident, or in a log entry of Vertex AI Model Monitoring.

    Raises:
        EventMalformed: the message is neither.
    """
    raise NotImplementedError


def notice_in(message: PubsubMessage) -> Heard | Ignored:
    """What the notice, a structured CloudEvent of ours, means to rules.

    Raises:
        EventMalformed: the message holds no CloudEvent.
    """
    raise NotImplementedError


def manual_call(order_id: str, rule_id: str, at: datetime) -> Signal:
    """The signal of an order to fire this rule."""
    return Signal(kind=ConditionKind.MANUAL, id=order_id, at=at, facts={"rule": rule_id})


def heeds(rule: Rule, signal: Signal) -> bool:
    """Whether one of the rule's conditions is about this signal."""
    raise NotImplementedError
