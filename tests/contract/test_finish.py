"""The steps after a run's end: each is done once, even if another fails or is slow."""

import pytest

from tests.contract.boundaries import At, raising
from tests.contract.test_complete import launched
from tests.contract.world import World
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.flows.completion.finish import STEPS, End, finish_run, steps_done
from trainmaster.orchestrator.stores.ledger import Held


def ended() -> tuple[World, Held]:
    world, incoming, job = launched()
    world.train(world.record(incoming.run_id))
    world.complete(world.hint(job))
    held = world.ledger.find(incoming.run_id)
    assert held is not None
    return world, held


def test_a_step_that_fails_keeps_no_other_from_running_and_the_reconciler_repeats_it_alone() -> None:
    world, incoming, job = launched()
    world.train(world.record(incoming.run_id))
    down = At("publish", before=raising(ServiceFailed("Pub/Sub", "publish", "it is not there")))
    result = world.complete(world.hint(job), down)
    assert "step 'notices' has not finished: Pub/Sub could not publish: it is not there" in result.message
    assert (result.severity, result.made_room) == ("WARNING", True)
    assert set(steps_done(world.record(incoming.run_id))) == set(STEPS) - {"notices"}
    assert world.active() == [incoming.run_id]
    again = At("write status")
    world.reconcile(again)
    assert set(steps_done(world.record(incoming.run_id))) == set(STEPS)
    assert world.active() == []
    assert "write status" not in again.calls


def test_a_slow_step_is_repeated_until_it_is_done() -> None:
    world, held = ended()
    world.ledger.mark_active(held.record.run_id)
    answers = iter(["still copying", "still copying", None])
    steps = {**STEPS, "copy": lambda _: next(answers)}
    for _ in range(2):
        finished = finish_run(world.services(), held, steps=steps)
        assert finished.problems == ("step 'copy' has not finished: still copying",)
        assert world.active() == [held.record.run_id]
    assert finish_run(world.services(), held, steps=steps).problems == ()
    assert "copy" in steps_done(world.record(held.record.run_id))
    assert world.active() == []


def test_a_bug_in_one_step_is_raised_after_the_others_are_on_record() -> None:
    world, held = ended()
    world.ledger.mark_active(held.record.run_id)

    def mistaken(_: End) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        finish_run(world.services(), held, steps={"first": mistaken, "second": lambda _: None})
    assert steps_done(world.record(held.record.run_id))[-1] == "second"
    assert world.active() == [held.record.run_id]


def test_steps_are_recorded_beside_what_another_attempt_wrote_meanwhile() -> None:
    world, held = ended()
    first = finish_run(world.services(), held, steps={"first": lambda _: None}).held
    second = finish_run(world.services(), held, steps={"second": lambda _: None}).held
    assert second.version > first.version
    assert steps_done(second.record)[-2:] == ("first", "second")
