"""The status tells where a rule stands, in the form that its schema promises."""

import pytest

from tests.core.deciding import ordered
from tests.core.retraining_cases import HOUR, MINUTE, NOON, fresh, rule
from tests.core.shipped import assert_valid
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.retraining.decision import Facts, Fire, Hold, decide_on_signal
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.state import (
    RuleStanding,
    RuleState,
    RuleStatus,
    status_of,
    with_launch,
)

ONE = rule({"manual": {}})


def after_a_firing_and_a_hold() -> RuleState:
    def call(order: str, state: RuleState, *, ended: bool) -> Fire | Hold:
        signal = ordered(order, ONE.rule_id, NOON)
        decision = decide_on_signal(ONE, signal, state, Facts(now=NOON, current_ended=ended))
        assert isinstance(decision, Fire | Hold)
        return decision

    return call("o2", with_launch(call("o1", fresh(ONE), ended=True).state), ended=False).state


@pytest.mark.parametrize(
    ("one", "state", "standing"),
    [
        (ONE, None, RuleStanding.ACCEPTED),
        (ONE, after_a_firing_and_a_hold(), RuleStanding.ACCEPTED),
        (rule({"manual": {}}, enabled=False), None, RuleStanding.DISABLED),
    ],
)
def test_a_status_says_how_a_rule_stands(one: Rule, state: RuleState | None, standing: RuleStanding) -> None:
    status = status_of(one, state, NOON + HOUR)
    assert status.state is standing
    document = encoded(status)
    assert_valid(document, "rule_status.v1")
    assert decoded(RuleStatus, document) == status


def test_a_status_tells_the_last_firing_and_why_the_next_was_held_back() -> None:
    status = status_of(ONE, after_a_firing_and_a_hold(), NOON + MINUTE)
    assert status.firings == 1
    assert present(status.held).reason == f"its run {present(status.last_firing).run_id} is still running"


@pytest.mark.parametrize("standing", [RuleStanding.REFUSED, RuleStanding.RETIRED])
def test_a_rule_without_a_state_has_a_status_too(standing: RuleStanding) -> None:
    status = RuleStatus(dropped_name="rules/x.yaml", generation=3, state=standing, updated_at=NOON)
    assert_valid(encoded(status), "rule_status.v1")
