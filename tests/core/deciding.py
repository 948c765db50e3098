"""A rule asked what it does: at a tick, or when it is called."""

from datetime import datetime
from typing import Any

from tests.core.retraining_cases import IMAGE, NOON
from trainmaster.orchestrator.core.orders.order import FireOrder
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.decision import (
    Decision,
    Facts,
    Fire,
    Hold,
    decide_on_signal,
    decide_on_tick,
)
from trainmaster.orchestrator.core.retraining.rule import ChampionFacts, Rule
from trainmaster.orchestrator.core.retraining.signals import Signal, manual_call
from trainmaster.orchestrator.core.retraining.state import RuleState

DATA = {"new_data": {"objects": "gs://data-1/cassava/**", "min_objects": 3, "quiet_s": 60, "max_wait_s": 600}}
HOURLY = {"schedule": {"cron": "0 * * * *"}}
MANUAL: dict[str, Any] = {"manual": {}}
FEATURES = {"upstream": {"model_name": "features", "event": "succeeded"}}


def tick(
    one: Rule, state: RuleState, now: datetime, *, champion: ChampionFacts | None = None, ended: bool = True
) -> Decision:
    return decide_on_tick(one, state, Facts(now=now, champion=champion, current_ended=ended))


def ordered(order_id: str, rule_id: str, given_at: datetime) -> Signal:
    """The signal of an order to fire the rule."""
    return manual_call(FireOrder(order_id=order_id, given_at=given_at, rule_id=rule_id))


def call(one: Rule, state: RuleState, now: datetime, *, order: str = "", ended: bool = True) -> Decision:
    signal = ordered(order or f"order/{now}", one.rule_id, now)
    return decide_on_signal(one, signal, state, Facts(now=now, current_ended=ended))


def fired(decision: Decision) -> Fire:
    assert isinstance(decision, Fire), decision
    return decision


def held(decision: Decision) -> Hold:
    assert isinstance(decision, Hold), decision
    return decision


def pushed(digest: str, message: str = "1", tag: str = "latest") -> Signal:
    """The signal of a pushed image."""
    return Signal(
        kind=ConditionKind.NEW_IMAGE,
        id=f"image/{message}",
        at=NOON,
        facts={"repository": IMAGE, "tag": tag, "digest": digest},
        values={"image.uri": f"{IMAGE}@{digest}", "image.digest": digest, "image.tag": tag},
    )


def upstream(model_name: str, event: str, run_id: str) -> Signal:
    """The signal of a run that succeeded, or of a champion that was promoted."""
    return Signal(
        kind=ConditionKind.UPSTREAM,
        id=f"notice/{run_id}",
        at=NOON,
        facts={"model_name": model_name, "event": event},
        values={"upstream.model_name": model_name, "upstream.run_id": run_id},
    )
