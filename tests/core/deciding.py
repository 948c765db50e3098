"""A rule asked what it does: at a tick, or when it is called."""

from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.orders.order import FireOrder
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
