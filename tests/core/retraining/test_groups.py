"""`all`: a rule fires when all of the conditions hold, never when only some do, and says which do not."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.core.deciding import FEATURES, MANUAL, call, fired, held, pushed, tick, upstream
from tests.core.retraining_cases import (
    CHAMPION,
    DAY,
    HOUR,
    IMAGE,
    MINUTE,
    NOON,
    REQUEST,
    SECOND,
    arrived,
    batch,
    document,
    dropped,
    faults,
    fresh,
    pictures,
    rule,
)
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.decision import (
    Decision,
    Facts,
    Fire,
    NothingDue,
    decide_on_signal,
)
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.signals import Signal
from trainmaster.orchestrator.core.retraining.state import (
    RuleState,
    state_for,
    status_of,
    why_held,
    with_launch,
)
from trainmaster.orchestrator.core.retraining.waiting import with_arrivals

SATURDAY = {"schedule": {"cron": "0 3 * * SAT", "time_zone": "Europe/Amsterdam"}}
THREE = datetime(2026, 3, 7, 2, tzinfo=UTC)  # the first Saturday after NOON
FILES = {"new_data": {"objects": "gs://data-1/cassava/**", "min_objects": 3, "quiet_s": 3600}}
LABELS = {"upstream": {"model_name": "labels", "event": "promoted"}}
PUSH = {"new_image": {"repository": IMAGE, "tag": "latest"}}
WAITS = "the signal is remembered: "


def signal(
    one: Rule, state: RuleState, what: Signal, now: datetime = NOON, *, ended: bool = True
) -> Decision:
    return decide_on_signal(one, what, state, Facts(now=now, current_ended=ended))


def both(*members: dict[str, Any], **more: Any) -> Rule:
    return rule({"all": list(members)}, **more)


class TestWithASchedule:
    """At the scheduled time, if the others hold then."""

    def test_it_fires_at_its_time_if_enough_data_has_arrived_however_recently(self) -> None:
        one = both(SATURDAY, FILES)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(3, at=THREE - SECOND))])
        assert tick(one, state, THREE - SECOND) == NothingDue()
        fire = fired(tick(one, state, THREE)).firing
        assert (fire.condition, fire.event_id) == (ConditionKind.SCHEDULE, "all/2026-03-07T02:00:00.000000Z")
        assert fire.values["data.count"] == "3"

    def test_enough_data_alone_never_fires_it(self) -> None:
        one = both(SATURDAY, FILES)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(9))])
        assert tick(one, state, NOON + 2 * DAY) == NothingDue()

    def test_its_time_alone_passes_and_the_status_says_why(self) -> None:
        one = both(SATURDAY, FILES)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(2))])
        hold = held(tick(one, state, THREE + MINUTE))
        assert hold.reason == "Saturday 2026-03-07 03:00 was due, but 2 of 3 objects have arrived"
        assert hold.state.waiting == state.waiting, "the data stays counted"
        late = with_arrivals(hold.state, one, [batch("y", [arrived("cassava/9.jpg", at=THREE + HOUR)])])
        assert tick(one, late, THREE + 6 * DAY) == NothingDue(), "that Saturday has passed"
        assert fired(tick(one, late, THREE + 7 * DAY)).firing.values["data.count"] == "3"

    def test_every_condition_that_does_not_hold_is_named(self) -> None:
        data = {"new_data": {**FILES["new_data"], "min_objects": 1, "min_bytes": 5000}}
        one = both(SATURDAY, data, {"age": {"older_than_s": 86400}}, FEATURES)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(2))])
        assert held(tick(one, state, THREE)).reason == (
            "Saturday 2026-03-07 03:00 was due, but 20 of 5,000 bytes have arrived, there is no champion that is "
            "86400 s old, upstream features succeeded has not come"
        )

    def test_a_signal_since_the_last_firing_counts_at_its_time(self) -> None:
        one = both(SATURDAY, FEATURES, {"age": {"older_than_s": 86400}})
        hold = held(signal(one, fresh(one), upstream("features", "succeeded", "f-1")))
        assert hold.reason == (
            f"{WAITS}schedule 0 3 * * SAT Europe/Amsterdam has not come, there is no champion that is 86400 s old"
        )
        fire = fired(tick(one, hold.state, THREE, champion=CHAMPION))
        assert fire.firing.values["upstream.run_id"] == "f-1"
        again = held(tick(one, with_launch(fire.state), THREE + 7 * DAY, champion=CHAMPION))
        assert "upstream features succeeded has not come" in again.reason

    @pytest.mark.parametrize(("while_running", "is_queued"), [("skip", False), ("queue_one", True)])
    def test_held_back_by_a_gate_it_is_like_a_schedule(self, while_running: str, is_queued: bool) -> None:
        one = both(SATURDAY, FILES, while_running=while_running, not_before="2026-03-07T06:00:00Z")
        state = with_arrivals(fresh(one), one, [batch("x", pictures(3))])
        hold = held(tick(one, state, THREE))
        assert hold.reason == "it is held until 2026-03-07T06:00:00.000000Z by its not_before"
        later = tick(one, hold.state, THREE + 5 * HOUR)
        assert isinstance(later, Fire) == is_queued
        assert is_queued or later == NothingDue()

    def test_a_plain_schedule_beside_it_still_fires(self) -> None:
        one = rule({"schedule": {"cron": "0 2 * * *"}}, {"all": [SATURDAY, FILES]})
        state = with_launch(fired(tick(one, fresh(one), THREE - DAY)).state)
        assert fired(tick(one, state, THREE)).firing.event_id == "schedule/2026-03-07T02:00:00.000000Z"


class TestWithoutASchedule:
    """When the last of them comes."""

    def test_two_signals_fire_once_in_any_order_with_the_values_of_both(self) -> None:
        one = both(FEATURES, PUSH, request={"image": "${image.uri}", "args": ["${upstream.run_id}"]})
        first, second = upstream("features", "succeeded", "f-1"), pushed("sha256:" + "1" * 64)
        for order in ((first, second), (second, first)):
            hold = held(signal(one, fresh(one), order[0]))
            assert hold.reason.startswith(WAITS)
            assert hold.reason.endswith(" has not come")
            assert tick(one, hold.state, NOON + DAY) == NothingDue()
            fire = fired(signal(one, hold.state, order[1], NOON + DAY))
            assert fire.firing.condition is ConditionKind.ALL
            assert fire.firing.event_id == order[1].id
            assert fire.firing.values["upstream.run_id"] == "f-1"
            assert fire.firing.values["image.digest"] == fire.state.image == "sha256:" + "1" * 64
            after = with_launch(fire.state)
            for repeated in order:
                assert isinstance(signal(one, after, repeated, NOON + DAY), NothingDue)
            assert tick(one, after, NOON + 2 * DAY) == NothingDue()

    def test_the_same_signal_twice_is_one(self) -> None:
        one = both(FEATURES, LABELS)
        hold = held(signal(one, fresh(one), upstream("features", "succeeded", "f-1")))
        again = signal(one, hold.state, upstream("features", "succeeded", "f-1"))
        assert again == NothingDue()
        newer = held(signal(one, hold.state, upstream("features", "succeeded", "f-2")))
        fire = fired(signal(one, newer.state, upstream("labels", "promoted", "l-1")))
        assert len(newer.state.met) == 1
        assert fire.firing.values["upstream.run_id"] == "l-1", "two of a kind: the later condition's"

    def test_data_waits_for_the_signal_and_the_signal_for_quiet(self) -> None:
        one = both(FILES, FEATURES)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(3))])
        assert tick(one, state, NOON + DAY) == NothingDue()
        assert isinstance(signal(one, state, upstream("features", "succeeded", "f-1"), NOON + DAY), Fire)
        hold = held(signal(one, state, upstream("features", "succeeded", "f-1"), NOON + MINUTE))
        assert hold.reason == f"{WAITS}no 3600 s have passed without a new object"
        assert tick(one, hold.state, NOON + 59 * MINUTE) == NothingDue()
        assert fired(tick(one, hold.state, NOON + HOUR)).firing.values["data.count"] == "3"

    def test_it_stays_due_while_a_gate_is_closed(self) -> None:
        one = both(FEATURES, LABELS)
        state = held(signal(one, fresh(one), upstream("features", "succeeded", "f-1"))).state
        running = RuleState(**{**vars(state), "current_run": "watch-1"})
        hold = held(signal(one, running, upstream("labels", "promoted", "l-1"), ended=False))
        assert hold.reason == f"{WAITS}its run watch-1 is still running"
        same = held(tick(one, hold.state, NOON + MINUTE, ended=False))
        assert same.reason == "its run watch-1 is still running"
        assert tick(one, same.state, NOON + 2 * MINUTE, ended=False) == same, "nothing new to write"
        assert isinstance(tick(one, same.state, NOON + HOUR), Fire)

    def test_an_order_is_one_of_the_conditions_and_says_what_it_waits_for(self) -> None:
        one = both(MANUAL, FILES)
        hold = held(call(one, fresh(one), NOON, order="order/1"))
        assert why_held(hold.state) == "the order is remembered: 0 of 3 objects have arrived"
        state = with_arrivals(hold.state, one, [batch("x", pictures(3))])
        assert isinstance(tick(one, state, NOON + HOUR), Fire)
        fire = fired(
            call(one, with_arrivals(fresh(one), one, [batch("x", pictures(3))]), NOON + HOUR, order="order/2")
        )
        assert (fire.firing.event_id, why_held(fire.state)) == ("order/2", None)

    def test_any_firing_starts_all_over(self) -> None:
        one = rule(MANUAL, {"all": [FEATURES, LABELS]})
        state = held(signal(one, fresh(one), upstream("features", "succeeded", "f-1"))).state
        fire = fired(call(one, state, NOON))
        assert fire.state.met == {}
        assert "upstream.run_id" not in fire.firing.values

    def test_a_signal_that_fires_alone_does_not_wait(self) -> None:
        one = rule({"upstream": dict(FEATURES["upstream"])}, {"all": [FEATURES, LABELS]})
        fire = fired(signal(one, fresh(one), upstream("features", "succeeded", "f-1")))
        assert fire.firing.condition is ConditionKind.UPSTREAM

    def test_a_new_version_keeps_the_signals_of_conditions_that_it_still_has(self) -> None:
        one = both(FEATURES, LABELS)
        state = held(signal(one, fresh(one), upstream("features", "succeeded", "f-1"))).state
        assert decoded(RuleState, encoded(state)) == state
        same = state_for(both(LABELS, FEATURES, generation=2), state, NOON + HOUR)
        assert same.met == state.met
        assert state_for(both(LABELS, MANUAL, generation=2), state, NOON + HOUR).met == {}


@pytest.mark.parametrize(
    ("members", "path", "says"),
    [
        ([FEATURES], "$.when[0].all", "too few entries"),
        ([FEATURES, LABELS, PUSH, FILES, SATURDAY, MANUAL], "$.when[0].all", "too many entries"),
        ([FEATURES, {"all": [LABELS, PUSH]}], "$.when[0].all[1].all", "not allowed"),
        ([SATURDAY, {"schedule": {"cron": "0 4 * * *"}}], "$.when[0].all[1].schedule", "a second schedule"),
        (
            [SATURDAY, {"new_data": {"objects": "gs://data-1/sales/**", "each": "folder"}}],
            "$.when[0].all[1].new_data.each",
            "it cannot fire for each folder",
        ),
        ([FEATURES, {"schedule": {"cron": "61 4 * * *"}}], "$.when[0].all[1].schedule.cron", "minute"),
        (
            [FEATURES, {"new_data": {"objects": "gs://ledger/x"}}],
            "$.when[0].all[1].new_data.objects",
            "records",
        ),
        ([FEATURES, {"new_date": {}}], "$.when[0].all[1].new_date", "unknown"),
        ([FEATURES, "manual"], "$.when[0].all[1]", "expected a mapping"),
        (
            [FEATURES, {"upstream": {"model_name": "cassava", "event": "succeeded"}}],
            "$.when[0]",
            "its own output",
        ),
        ([SATURDAY, {"new_data": {"objects": "gs://models/cassava/**"}}], "$.when[0]", "its own output"),
    ],
)
def test_a_faulty_condition_inside_all_is_reported_at_its_place(
    members: list[Any], path: str, says: str
) -> None:
    found = faults(dropped(document({"all": members})))
    assert list(found) == [path]
    assert says in found[path].problem


def test_placeholders_of_every_condition_inside_all_have_values() -> None:
    asks = {"image": "${image.uri}", "args": ["${upstream.run_id} ${data.newest_uri}"]}
    assert isinstance(dropped(document({"all": [FEATURES, PUSH, FILES]}, request=asks)), Rule)
    missing = faults(dropped(document({"all": [FEATURES, FILES]}, PUSH, request=asks)))
    assert "a firing by all has no value for it" in missing["$.request.image"].problem
    by_tag = faults(dropped(document({"all": [FEATURES, PUSH]})))
    assert "by its tag" in by_tag["$.request.image"].problem
    assert REQUEST["image"] == f"{IMAGE}:latest"


def test_manual_without_a_value_is_manual_inside_all_too() -> None:
    assert both({"manual": None}, FILES).conditions == both(MANUAL, FILES).conditions


def test_the_status_says_which_conditions_fire_the_rule_alone_and_which_together() -> None:
    status = status_of(rule({"all": [FEATURES, LABELS]}, MANUAL), None, NOON)
    assert status.fires_by == ("all of (upstream features succeeded, upstream labels promoted)", "manual")
