"""No run, rule or dropped rule costs another its turn in a tick."""

import json
from datetime import timedelta
from random import Random

import pytest

from tests.contract.hostile import TIMEOUT, HostileWorld, state_of
from tests.contract.retraining import MANUAL, rule
from tests.contract.schemas import RULE_BOOK, RULE_STATUS
from tests.contract.test_reconcile import ended, launched
from tests.contract.world import INBOX, LEDGER
from tests.narrowing import present
from trainmaster.orchestrator.core.names import record_object
from trainmaster.orchestrator.flows.turns import ATTEMPTS_MAX
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.attempts import Traces

SKIP_NOTHING = {"while_running": "replace", "max_per_day": 1000}
"""An honest rule fires at every tick, even while its last run is active."""


@pytest.fixture
def world() -> HostileWorld:
    return HostileWorld()


def drop_unanswered(world: HostileWorld, name: str = "rules/a-hostile.json") -> str:
    """A rule whose event was lost, so that a tick has to check it."""
    world.objects.write(INBOX, name, json.dumps(rule(MANUAL)).encode(), if_generation=None)
    return name


@pytest.mark.parametrize("harm", ["kills", "raises", "computes"])
def test_a_drop_that_harms_the_tick_keeps_no_rule_from_firing(world: HostileWorld, harm: str) -> None:
    world.accept_copies("honest", **SKIP_NOTHING)
    name = drop_unanswered(world)
    getattr(world.hostility, harm).add(name)
    for minute in range(1, 8):
        world.minute()
        assert world.firings("honest") == minute
    status = world.rule_status(name)
    RULE_STATUS.validate(status)
    assert status["state"] == ("accepted" if harm == "computes" else "quarantined")


def test_a_drop_in_quarantine_says_why_and_may_be_dropped_again(world: HostileWorld) -> None:
    name = drop_unanswered(world)
    world.hostility.raises.add(name)
    logged = [line for _ in range(ATTEMPTS_MAX + 1) for line in world.minute()]
    status = world.rule_status(name)
    assert "failed 3 times in a row: RecursionError" in status["reason"]
    assert "drop it again" in status["reason"]
    assert [line.message for line in logged if line.event is LogEvent.QUARANTINED] == [
        f"{name} is in quarantine until its file is dropped again: RecursionError: maximum recursion depth exceeded"
    ]
    assert world.minute() == []
    world.hostility.raises.clear()
    drop_unanswered(world)
    world.minute()
    assert world.rule_status(name)["state"] == "accepted"
    assert world.services().attempts.read() == Traces()


@pytest.mark.parametrize("harm", ["kills", "raises", "computes"])
@pytest.mark.parametrize("place", ["a-first", "m-middle", "z-last"])
def test_a_harmful_rule_costs_others_one_turn_at_most(world: HostileWorld, harm: str, place: str) -> None:
    honest = ["b", "c", "n", "o"]
    world.accept_copies(*honest, place, **SKIP_NOTHING)
    getattr(world.hostility, harm).add(state_of(place))
    for minute in range(1, 9):
        world.minute()
        lost = 1 if harm == "kills" else 0
        assert min(map(world.firings, honest)) >= minute - lost
    assert world.ticks_that_died == (ATTEMPTS_MAX + 1 if harm == "kills" else 0)
    status = world.rule_status(f"rules/{place}.json")
    RULE_STATUS.validate(status)
    assert status["state"] == "quarantined"
    held = present(world.services().rule_book.read().document.find(place))
    assert not held.enabled
    RULE_BOOK.validate(world.document("rules/book.json"))
    notices = [
        notice for notice in world.notices.published if notice.type == "trainmaster.rule.quarantined.v1"
    ]
    assert [notice.subject for notice in notices] == [place]
    assert world.services().attempts.read() == Traces()


def test_a_rule_in_quarantine_refuses_orders_until_it_is_dropped_again(world: HostileWorld) -> None:
    world.drop_rule(rule(MANUAL))
    world.hostility.raises.add(state_of("cassava"))
    for _ in range(ATTEMPTS_MAX + 1):
        world.minute()
    world.hostility.raises.clear()
    world.order({"fire": {"rule": "cassava"}}, "1")
    (refused,) = world.records()
    assert refused.rejection is not None
    assert "quarantine" in str(world.document(f"rejected/{refused.run_id}.json")["faults"])
    world.drop_rule(rule(MANUAL))
    assert world.rule_status()["state"] == "accepted"
    world.order({"fire": {"rule": "cassava"}}, "2")
    assert sorted(record.state for record in world.records()) == ["rejected", "submitted"]


def test_a_service_that_fails_puts_nothing_into_quarantine(world: HostileWorld) -> None:
    world.accept_copies("honest", **SKIP_NOTHING)
    world.objects.write(LEDGER, state_of("honest"), b"[", if_generation=None)  # as damaged as it can be
    for _ in range(ATTEMPTS_MAX + 2):
        world.minute()
    assert world.rule_status("rules/honest.json")["state"] == "accepted"
    assert world.services().attempts.read() == Traces()


def test_failures_count_only_in_a_row(world: HostileWorld) -> None:
    world.accept_copies("honest", **SKIP_NOTHING)
    for _ in range(3):
        world.hostility.raises.add(state_of("honest"))
        for _ in range(ATTEMPTS_MAX - 1):
            world.minute()
        world.hostility.raises.clear()
        world.minute()
    assert world.firings("honest") == 3


def test_a_run_at_which_ticks_die_keeps_no_other_run_from_its_end(world: HostileWorld) -> None:
    runs = launched(world, 5)
    deadly = runs[2]
    world.hostility.kills.add(record_object(deadly))
    others = [run_id for run_id in runs if run_id != deadly]
    for run_id in others:
        world.train(world.record(run_id))
    world.minute()
    world.minute()
    assert all(ended(world, others))
    for _ in range(4):
        logged = world.minute()
    assert world.ticks_that_died == ATTEMPTS_MAX + 1
    (line,) = [each for each in logged if each.run_id == deadly]
    assert (line.event, line.severity) == (LogEvent.RUN_NOT_RECONCILED, "ERROR")
    assert "in quarantine after 3 failures" in line.message


def test_a_run_in_quarantine_is_tried_again_after_an_hour_and_ends(world: HostileWorld) -> None:
    (run_id,) = launched(world, 1)
    world.hostility.raises.add(record_object(run_id))
    for _ in range(ATTEMPTS_MAX + 1):
        world.minute()
    world.hostility.raises.clear()
    world.train(world.record(run_id))
    world.minute()
    assert ended(world, [run_id]) == [False]
    world.clock.advance(timedelta(hours=1))
    world.minute()
    assert ended(world, [run_id]) == [True]
    assert world.services().attempts.read() == Traces()


def test_rules_without_a_turn_for_lack_of_time_come_first_in_the_next_tick() -> None:
    world = HostileWorld()
    rules = [f"r{number}" for number in range(8)]
    world.accept_copies(*rules, **SKIP_NOTHING)
    slow = {state_of(rule_id) for rule_id in rules}
    world.hostility.computes |= slow  # 20 s each, of the tick's 96 s
    logged = world.minute()
    assert "out of time with 3 of 8 rules left; the next tick begins with them" in [
        line.message for line in logged if line.event is LogEvent.RECONCILE_BEHIND
    ]
    assert [world.firings(rule_id) for rule_id in rules] == [1, 1, 1, 1, 1, 0, 0, 0]
    world.minute()
    assert [world.firings(rule_id) for rule_id in rules][5:] == [1, 1, 1]


def test_a_tick_without_work_leaves_no_trace(world: HostileWorld) -> None:
    before = world.hostile.operations
    world.minute()
    assert world.hostile.operations - before == 6
    assert world.services().attempts.read() == Traces()


@pytest.mark.slow
def test_of_a_thousand_rules_the_hostile_hundred_delay_no_honest_one_beyond_the_tick() -> None:
    """Calls take as long as Cloud Storage's. All honest rules are due in the same minute."""
    world = HostileWorld(at_once=10)
    rules = [f"r{number:04}" for number in range(1000)]
    world.accept_copies(*rules, **SKIP_NOTHING)
    hostile = set(Random("hostile").sample(rules, 100))
    for number, rule_id in enumerate(sorted(hostile)):
        state = state_of(rule_id)
        match number % 4:
            case 0:
                world.hostility.raises.add(state)
            case 1:
                world.objects.write(LEDGER, state, b"[" * 100_000, if_generation=None)
            case 2:
                world.objects.write(LEDGER, state, b" " * 2_000_000, if_generation=None)
            case _ if number < 16:
                world.hostility.computes.add(state)
            case _:
                world.objects.write(LEDGER, state, b'{"schema": 1}', if_generation=None)
    for number in range(50):
        world.hostility.raises.add(drop_unanswered(world, f"rules/0-hostile-{number}.json"))
    began = world.clock.now()
    world.minute()
    assert {world.firings(rule_id) for rule_id in rules if rule_id not in hostile} == {1}
    assert world.clock.now() - began < TIMEOUT
    assert world.ticks_that_died == 0
