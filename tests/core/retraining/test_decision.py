"""A rule fires when it should, once, never too often, and says why when it does not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.core.deciding import DATA, HOURLY, MANUAL, call, fired, held, ordered, pushed, tick
from tests.core.retraining_cases import (
    CHAMPION,
    DAY,
    HOUR,
    IMAGE,
    MINUTE,
    NOON,
    SECOND,
    arrived,
    batch,
    fresh,
    pictures,
    rule,
)
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.names import is_run_id
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.decision import (
    STORM,
    Decision,
    Facts,
    Fire,
    Hold,
    NothingDue,
    decide_on_signal,
    limits_end,
)
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.signals import Signal
from trainmaster.orchestrator.core.retraining.state import RuleState, state_for, with_launch
from trainmaster.orchestrator.core.retraining.waiting import with_arrivals


class TestNewData:
    """Objects that come in."""

    def test_it_waits_for_quiet(self) -> None:
        one = rule(DATA)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(3))])
        assert tick(one, state, NOON + 59 * SECOND) == NothingDue()
        fire = fired(tick(one, state, NOON + 60 * SECOND))
        assert fire.firing.condition is ConditionKind.NEW_DATA
        assert fire.firing.values["data.count"] == "3"
        assert (fire.state.waiting, fire.state.newest) == ((), ())

    def test_it_waits_for_enough(self) -> None:
        one = rule({"new_data": {"objects": "gs://data-1/", "min_objects": 2, "min_bytes": 50, "quiet_s": 0}})
        state = with_arrivals(fresh(one), one, [batch("x", pictures(4))])
        assert tick(one, state, NOON + DAY) == NothingDue()
        state = with_arrivals(state, one, [batch("y", [arrived("b", size_bytes=10)])])
        assert isinstance(tick(one, state, NOON + DAY), Fire)

    def test_it_waits_no_longer_than_the_maximum(self) -> None:
        one = rule(DATA)
        stream = [arrived(f"cassava/{n}.jpg", at=NOON + n * 30 * SECOND) for n in range(20)]
        state = with_arrivals(fresh(one), one, [batch("x", stream)])
        assert tick(one, state, NOON + 599 * SECOND) == NothingDue()
        assert isinstance(tick(one, state, NOON + 600 * SECOND), Fire)

    def test_the_maximum_wait_does_not_make_too_few_enough(self) -> None:
        one = rule(DATA)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(2))])
        assert tick(one, state, NOON + 10 * DAY) == NothingDue()

    def test_the_firing_names_the_newest_object(self) -> None:
        one = rule(DATA)
        late = [*pictures(3), arrived("cassava/z/newest.jpg", at=NOON + SECOND)]
        values = fired(
            tick(one, with_arrivals(fresh(one), one, [batch("x", late)]), NOON + HOUR)
        ).firing.values
        assert values["data.newest_uri"] == "gs://data-1/cassava/z/newest.jpg"
        assert values["data.newest_dir_uri"] == "gs://data-1/cassava/z/"
        assert values["data.watermark"] == "2026-03-04T12:00:01.000000Z"
        assert values["data.bytes"] == "40"

    def test_data_that_arrives_during_a_run_fires_once_it_has_ended(self) -> None:
        one = rule(DATA)
        state = replace(with_arrivals(fresh(one), one, [batch("x", pictures(3))]), current_run="watch-1")
        hold = held(tick(one, state, NOON + HOUR, ended=False))
        assert hold.reason == "its run watch-1 is still running"
        assert tick(one, hold.state, NOON + 2 * HOUR, ended=False) == hold  # nothing new to write
        assert isinstance(tick(one, hold.state, NOON + 3 * HOUR), Fire)

    def test_any_firing_counts_from_zero_again(self) -> None:
        one = rule(DATA, MANUAL)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(2))])
        fire = fired(call(one, state, NOON))
        assert fire.firing.values["data.count"] == "2"
        assert (fire.state.waiting, fire.state.newest) == ((), ())


class TestSchedule:
    """Times that a cron expression names."""

    def test_missed_ticks_are_caught_up_once(self) -> None:
        one = rule(HOURLY)
        fire = fired(tick(one, fresh(one), NOON + 5 * DAY + MINUTE))
        assert fire.firing.event_id == "schedule/2026-03-09T12:00:00.000000Z"
        assert tick(one, with_launch(fire.state), NOON + 5 * DAY + 2 * MINUTE) == NothingDue()
        assert isinstance(tick(one, with_launch(fire.state), NOON + 5 * DAY + HOUR), Fire)

    def test_times_before_the_rule_was_dropped_do_not_fire_it(self) -> None:
        one = rule(HOURLY)
        assert tick(one, fresh(one), NOON + 59 * MINUTE) == NothingDue()

    def test_a_time_that_is_held_back_is_passed_over(self) -> None:
        one = rule(HOURLY)
        state = replace(fresh(one), current_run="watch-1")
        hold = held(tick(one, state, NOON + HOUR, ended=False))
        assert tick(one, hold.state, NOON + HOUR + MINUTE) == NothingDue()

    def test_two_schedules_due_at_once_fire_once(self) -> None:
        one = rule(HOURLY, {"schedule": {"cron": "*/30 * * * *"}}, DATA)
        state = with_arrivals(fresh(one), one, [batch("x", pictures(3))])
        fire = fired(tick(one, state, NOON + HOUR))
        assert tick(one, with_launch(fire.state), NOON + HOUR + MINUTE) == NothingDue()


class TestAge:
    """The champion grows old."""

    ONE = rule({"age": {"older_than_s": 86400}})

    def test_it_fires_when_the_champion_is_older(self) -> None:
        before = NOON + DAY - SECOND
        assert tick(self.ONE, fresh(self.ONE), before, champion=CHAMPION) == NothingDue()
        values = fired(tick(self.ONE, fresh(self.ONE), NOON + DAY, champion=CHAMPION)).firing.values
        assert values["champion.model_uri"] == CHAMPION.model_uri
        assert values["champion.value"] == "0.9"

    def test_without_a_champion_nothing_is_old(self) -> None:
        assert tick(self.ONE, fresh(self.ONE), NOON + 9 * DAY) == NothingDue()

    def test_a_champion_that_stays_fires_again_after_the_same_time(self) -> None:
        state = with_launch(fired(tick(self.ONE, fresh(self.ONE), NOON + DAY, champion=CHAMPION)).state)
        assert tick(self.ONE, state, NOON + 2 * DAY - SECOND, champion=CHAMPION) == NothingDue()
        assert isinstance(tick(self.ONE, state, NOON + 2 * DAY, champion=CHAMPION), Fire)


class TestSignals:
    """Images, alerts, upstream models and calls."""

    def test_the_same_signal_twice_fires_once(self) -> None:
        one = rule(MANUAL)
        state = with_launch(fired(call(one, fresh(one), NOON, order="o1")).state)
        assert call(one, state, NOON + HOUR, order="o1") == NothingDue()
        assert isinstance(call(one, state, NOON + HOUR, order="o2"), Fire)

    def test_a_signal_that_no_condition_is_about_is_nothing(self) -> None:
        one = rule(HOURLY)
        assert isinstance(call(one, fresh(one), NOON), NothingDue)
        other = ordered("o1", "another", NOON)
        two = rule(MANUAL)
        instance_of(NothingDue, decide_on_signal(two, other, fresh(two), Facts(now=NOON)))

    def test_an_image_fires_by_its_digest_and_only_when_it_is_another(self) -> None:
        one = rule({"new_image": {"repository": IMAGE, "tag": "*"}}, request={"image": "${image.uri}"})
        a, b = (f"sha256:{letter * 64}" for letter in "ab")

        def push(state: RuleState, *args: str) -> Decision:
            return decide_on_signal(one, pushed(*args), state, Facts(now=NOON))

        fire = fired(push(fresh(one), a, "1", "v1"))
        assert fire.firing.values["image.uri"] == f"{IMAGE}@{a}"
        state = with_launch(fire.state)
        assert isinstance(push(state, a, "2", "latest"), NothingDue)
        assert isinstance(push(state, b, "3", "latest"), Fire)

    def test_a_huge_value_neither_fills_a_place_nor_grows_the_state(self) -> None:
        alert = Signal(
            kind=ConditionKind.ALERT,
            id="alert/1",
            at=NOON,
            facts={"policy": "p", "models": ""},
            values={"alert.summary": "x" * 100_000},
        )

        def decide(one: Rule) -> Decision:
            return decide_on_signal(one, alert, fresh(one), Facts(now=NOON))

        used = rule({"alert": {"policy": "p"}}, request={"args": ["${alert.summary}"]})
        assert held(decide(used)).reason.endswith("is longer than 2000 characters")
        assert len(str(encoded(fired(decide(rule({"alert": {"policy": "p"}}))).state))) < 5000

    def test_a_missing_value_holds_the_firing_back_in_plain_words(self) -> None:
        one = rule(MANUAL, request={"args": ["--weights=${champion.model_uri}"]})
        reason = held(call(one, fresh(one), NOON)).reason
        assert reason.startswith("${champion.model_uri} has no value now")
        signal = ordered("o1", one.rule_id, NOON)
        instance_of(Fire, decide_on_signal(one, signal, fresh(one), Facts(now=NOON, champion=CHAMPION)))


class TestWhileRunning:
    """What comes while the rule's last run is still going."""

    def test_skip_passes_over_and_says_so(self) -> None:
        one = rule(MANUAL)
        hold = held(call(one, replace(fresh(one), current_run="watch-1"), NOON, ended=False))
        assert hold.state.queued is None
        assert present(hold.state.held).reason == "its run watch-1 is still running"
        assert tick(one, hold.state, NOON + HOUR) == NothingDue()

    def test_queue_one_keeps_the_newest_and_fires_it_once_the_run_has_ended(self) -> None:
        one = rule(
            {"new_image": {"repository": IMAGE, "tag": "latest"}},
            request={"image": "${image.uri}"},
            while_running="queue_one",
        )
        state = replace(fresh(one), current_run="watch-1")
        digests = [f"sha256:{letter * 64}" for letter in "abc"]
        for number, digest in enumerate(digests):
            facts = Facts(now=NOON, current_ended=False)
            decision = decide_on_signal(one, pushed(digest, str(number)), state, facts)
            state = held(decision).state
        assert held(tick(one, state, NOON + MINUTE, ended=False)).state == state
        fire = fired(tick(one, state, NOON + HOUR))
        assert fire.firing.values["image.digest"] == digests[-1]
        assert fire.state.queued is None
        instance_of(
            NothingDue,
            decide_on_signal(one, pushed(digests[-1], "2"), with_launch(fire.state), Facts(now=NOON + HOUR)),
        )

    def test_queue_one_waits_for_the_cooldown_too(self) -> None:
        one = rule(MANUAL, while_running="queue_one", cooldown_s=3600)
        state = with_launch(fired(call(one, fresh(one), NOON)).state)
        state = held(call(one, state, NOON + MINUTE)).state
        assert isinstance(tick(one, state, NOON + 59 * MINUTE), Hold)
        assert isinstance(tick(one, state, NOON + 60 * MINUTE), Fire)

    def test_queued_data_values_are_those_of_the_firing(self) -> None:
        one = rule(MANUAL, DATA, while_running="queue_one")
        state = replace(fresh(one), current_run="watch-1")
        state = held(call(one, state, NOON, ended=False)).state
        state = with_arrivals(state, one, [batch("x", pictures(2))])
        assert fired(tick(one, state, NOON + HOUR)).firing.values["data.count"] == "2"

    def test_replace_names_the_run_to_cancel(self) -> None:
        one = rule(MANUAL, while_running="replace")
        going = replace(fresh(one), current_run="watch-1")
        assert fired(call(one, going, NOON, ended=False)).firing.replaces == "watch-1"
        assert fired(call(one, going, NOON, ended=True)).firing.replaces is None


class TestLimits:
    """Cooldown, daily cap and storms."""

    @pytest.mark.parametrize(("cooldown", "end"), [(HOUR, "04T13:00"), (7 * DAY, "11T12:00")])
    def test_a_cooldown_is_kept_and_is_the_reason(self, cooldown: timedelta, end: str) -> None:
        one = rule(MANUAL, cooldown_s=cooldown // SECOND)
        state = with_launch(fired(call(one, fresh(one), NOON)).state)
        reason = held(call(one, state, NOON + cooldown - SECOND)).reason
        assert reason.startswith(f"its cooldown lasts until 2026-03-{end}")
        assert isinstance(call(one, state, NOON + cooldown), Fire)

    @pytest.mark.parametrize(("cap", "often"), [(1, "it fired once within"), (2, "it fired 2 times within")])
    def test_a_rule_held_by_its_daily_cap_says_how_often_it_fired(self, cap: int, often: str) -> None:
        one = rule(MANUAL, max_per_day=cap)
        state = fresh(one)
        for hour in range(cap):
            state = with_launch(fired(call(one, state, NOON + 2 * hour * HOUR)).state)
        assert held(call(one, state, NOON + 20 * HOUR)).reason.startswith(often)

    @pytest.mark.parametrize(("limits", "hours"), [({"max_per_day": 2}, 24), ({"cooldown_s": 7200}, 22)])
    def test_the_end_of_its_limits_is_the_first_time_at_which_a_rule_fires(
        self,
        limits: dict[str, Any],
        hours: int,  # Any: keys of a rule
    ) -> None:
        one = rule(MANUAL, **limits)
        state = fresh(one)
        for hour in (0, 20):
            state = with_launch(fired(call(one, state, NOON + hour * HOUR)).state)
        end = limits_end(one, NOON + 21 * HOUR, fired_last_at=state.fired_last_at, fired_at=state.fired_at)
        assert end == NOON + hours * HOUR
        assert isinstance(call(one, state, end - SECOND), Hold)
        assert isinstance(call(one, state, end), Fire)

    def test_a_storm_counts_from_when_the_rule_was_dropped_last(self) -> None:
        one = rule(MANUAL, max_per_day=1000, while_running="queue_one")
        state = fresh(one, NOON - DAY)
        for second in range(STORM):
            state = with_launch(fired(call(one, state, NOON + second * SECOND)).state)
        storm = held(call(one, state, NOON + MINUTE))
        assert storm.is_storm
        assert "more than 60 firings within an hour" in storm.reason
        assert storm.state.queued is None
        again = rule(MANUAL, max_per_day=1000, generation=2)
        state = state_for(again, storm.state, NOON + 2 * MINUTE)
        assert isinstance(call(again, state, NOON + 2 * MINUTE), Fire)

    def test_one_firing_a_minute_is_no_storm(self) -> None:
        one = rule({"schedule": {"cron": "* * * * *"}}, max_per_day=1000)
        state = fresh(one)
        for minute in range(1, 181):
            state = with_launch(fired(tick(one, state, NOON + minute * MINUTE)).state)

    def test_a_disabled_rule_is_silent(self) -> None:
        one = rule(MANUAL, HOURLY, enabled=False)
        assert isinstance(call(one, fresh(one), NOON), NothingDue)
        assert isinstance(tick(one, fresh(one), NOON + DAY), NothingDue)


def test_a_decided_firing_reads_back_as_the_next_event_finds_it() -> None:
    one = rule(MANUAL)
    fire = fired(call(one, fresh(one), NOON, order="o1"))
    assert decoded(RuleState, encoded(fire.state)).firing == fire.firing


def test_run_ids_differ_by_firing_and_generation_and_are_legal() -> None:
    ids = set()
    for generation in (1, 2):
        one = rule(MANUAL, name=f"rules/9{'x' * 62}.yaml", generation=generation)
        state = fresh(one)
        for number in range(3):
            fire = fired(call(one, state, NOON, order=f"o{number}"))
            state = with_launch(fire.state)
            ids.add(fire.firing.run_id)
    assert len(ids) == 6
    assert all(is_run_id(run_id) for run_id in ids)


def test_a_condition_that_cannot_fire_does_not_block_the_others() -> None:
    one = rule(DATA, HOURLY, request={"args": ["${data.watermark}"]})
    hold = held(tick(one, fresh(one), NOON + HOUR))
    assert "data.watermark" in hold.reason
    state = with_arrivals(hold.state, one, [batch("x", pictures(3, at=NOON + HOUR))])
    assert isinstance(tick(one, state, NOON + HOUR + MINUTE), Fire)
