"""What comes next for a rule, as its user reads it: within its limits, and none where it depends on an event."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.core.retraining_cases import batch, fresh, pictures, rule
from tests.narrowing import present
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.shown.rule_lines import limits_text, next_text, rule_facts, when_text
from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.state import DueFiring, with_met
from trainmaster.orchestrator.core.retraining.waiting import with_arrivals

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)  # a Friday
HOURLY = {"schedule": {"cron": "0 * * * *"}}
WEEKEND = {"cron": "0 18 * * FRI", "for_s": 60 * 3600}


def found(*when: dict[str, Any], **more: Any) -> FoundRule:
    one = rule(*when, **more)
    return FoundRule(dropped_name=one.dropped_name, rule_id=one.rule_id, rule=one)


@pytest.mark.parametrize(
    ("more", "now", "hours"),
    [
        ({}, NOW, 1),
        ({"blackout": [WEEKEND]}, NOW, 1),
        ({"blackout": [WEEKEND]}, NOW + timedelta(hours=5), 66),
        ({"blackout": [WEEKEND]}, NOW + timedelta(hours=30), 66),
        ({"blackout": [WEEKEND], "while_running": "queue_one"}, NOW + timedelta(hours=5), 66),
        ({"not_before": "2026-11-28T00:30:00Z"}, NOW, 13),
        ({"not_before": "2026-11-28T00:30:00Z", "while_running": "queue_one"}, NOW, 12.5),
    ],
)
def test_the_next_time_is_outside_the_windows_in_which_the_rule_does_not_fire(
    more: dict[str, Any], now: datetime, hours: float
) -> None:
    assert found(HOURLY, **more).next_at(now) == NOW + timedelta(hours=hours)


def test_a_schedule_that_only_ever_comes_in_a_window_has_no_next_time() -> None:
    assert found({"schedule": {"cron": "30 18 * * FRI"}}, blackout=[WEEKEND]).next_at(NOW) is None


def test_the_limits_name_the_windows() -> None:
    one = found(HOURLY, blackout=[WEEKEND], not_before="2026-11-28T00:30:00Z").rule
    assert one is not None
    assert limits_text(one) == (
        "at most 24 firings in 24 hours, not before 2026-11-28 00:30 UTC, not in 1 window of its blackout"
    )


SATURDAY = {"schedule": {"cron": "0 3 * * SAT"}}
FILES = {"new_data": {"objects": "gs://data-1/**", "min_objects": 3, "quiet_s": 3600}}
FEATURES = {"upstream": {"model_name": "features", "event": "succeeded"}}
THREE = datetime(2026, 11, 28, 3, tzinfo=UTC)


def counting(rule: FoundRule, count: int, *, came: bool = False) -> FoundRule:
    """The rule with as many objects, the last half an hour ago, and with or without its signal."""
    assert rule.rule is not None
    at = NOW - timedelta(minutes=30)
    state = with_arrivals(
        fresh(rule.rule, NOW - timedelta(days=1)), rule.rule, [batch("x", pictures(count, at=at))]
    )
    if came:
        due = DueFiring(condition=ConditionKind.UPSTREAM, event_id="notice/1", at=at)
        state = with_met(state, [rule.rule.members[-1]], due)
    return replace(rule, state=state)


@pytest.mark.parametrize(
    ("members", "count", "came", "next_at", "text"),
    [
        ([SATURDAY, FILES], 2, False, None, "2 of 3 objects"),
        ([SATURDAY, FILES], 3, False, THREE, "2026-11-28 03:00 UTC, 3 objects, enough"),
        ([SATURDAY, FILES, FEATURES], 3, False, None, "3 objects, enough, 0 of 1 signal"),
        (
            [SATURDAY, FILES, FEATURES],
            3,
            True,
            THREE,
            "2026-11-28 03:00 UTC, 3 objects, enough, 1 of 1 signal",
        ),
        ([FILES, FEATURES], 3, False, None, "3 objects, enough, 0 of 1 signal"),
        (
            [FILES, FEATURES],
            3,
            True,
            NOW + timedelta(minutes=30),
            "2026-11-27 12:30 UTC, 3 objects, enough, 1 of 1 signal",
        ),
    ],
)
def test_the_next_time_of_all_is_when_the_last_condition_holds(
    members: list[dict[str, Any]], count: int, came: bool, next_at: datetime | None, text: str
) -> None:
    rule = counting(found({"all": members}), count, came=came)
    assert rule.next_at(NOW) == next_at
    assert next_text(rule, NOW) == text


def test_data_that_is_due_fires_at_the_next_full_minute_and_is_enough() -> None:
    """Ticks fire rules: a moment that has passed would never come."""
    rule = counting(found({"new_data": FILES["new_data"] | {"quiet_s": 5}}), 4)
    now = NOW + timedelta(seconds=51)
    assert rule.next_at(now) == NOW + timedelta(minutes=1)
    assert next_text(rule, now) == "2026-11-27 12:01 UTC, 4 objects, enough"


@pytest.mark.parametrize(("while_running", "hours"), [("skip", 39), ("queue_one", 24)])
def test_the_next_time_is_within_max_per_day(while_running: str, hours: int) -> None:
    """The rule fired at noon, and may fire once in 24 hours: at the next 03:00 it may not."""
    one = found({"schedule": {"cron": "0 3 * * *"}}, max_per_day=1, while_running=while_running)
    state = fresh(present(one.rule), NOW - timedelta(days=1))
    one = replace(one, state=replace(state, fired_at=(NOW,), fired_last_at=NOW))
    now, then = NOW + timedelta(minutes=20), NOW + timedelta(hours=hours)
    assert one.next_at(now) == then
    assert one.document(now)["next_at"] == encoded_time(then)
    assert [each.due_at for each in one.awaited(now)] == [then]


def test_any_and_all_are_shown_as_such() -> None:
    one = found(HOURLY, {"all": [SATURDAY, FEATURES]}, {"manual": {}})
    assert one.rule is not None
    together = "all of (schedule 0 3 * * SAT Etc/UTC, upstream features succeeded)"
    assert when_text(one.rule) == f"any of: schedule 0 * * * * Etc/UTC, {together}, manual"
    assert ("when any of", ["schedule 0 * * * * Etc/UTC", together, "manual"]) in list(rule_facts(one, NOW))
    assert [each.text for each in one.awaited(NOW)] == [
        "schedule 0 * * * * Etc/UTC",
        "all of 2: schedule 0 3 * * SAT Etc/UTC",
        "all of 2: upstream features succeeded",
        "manual",
    ]
    assert when_text(present(found({"all": [SATURDAY, FEATURES]}).rule)) == together
