"""The steps after a run's end: each is done once, even if another fails or is slow."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contract.boundaries import At, raising
from tests.contract.schemas import RECORD
from tests.contract.test_champions import REQUEST
from tests.contract.test_complete import launched
from tests.contract.world import World
from tests.narrowing import present
from trainmaster.orchestrator.core.completion.steps import (
    BUG_ATTEMPTS_MAX,
    END_STEPS,
    OUTAGE_ATTEMPTS_MAX,
    all_over,
)
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.flows.completion.complete import STEPS
from trainmaster.orchestrator.flows.lifecycle.finish import (
    STEPS_WITHOUT_JOB,
    End,
    Step,
    finish_run,
    steps_done,
)
from trainmaster.orchestrator.stores.ledger import Held


def ended() -> tuple[World, Held]:
    world, incoming, job = launched()
    world.train(world.record(incoming.run_id))
    world.complete(world.hint(job))
    held = present(world.ledger.find(incoming.run_id))
    return world, held


def test_the_steps_of_every_run_are_the_named_ones_in_their_order() -> None:
    """The client waits for these names."""
    assert tuple(STEPS) == tuple(STEPS_WITHOUT_JOB) == END_STEPS


def test_a_run_that_asks_for_it_becomes_a_run_of_its_experiment_with_its_arguments_and_metrics() -> None:
    world = World()
    program = {"machine": "n1-standard-8", "args": ["--lr=0.1", "--optimizer", "sgd", "--augment"]}
    request = {**REQUEST, "experiment": "cats", "cluster": {"chief": program}}
    incoming = world.drop_and_launch(json.dumps(request).encode(), "requests/a.json")
    world.train(world.record(incoming.run_id), 0.75)
    down = At("write experiment", before=raising(ServiceFailed("Vertex AI", "log", "it is down")))
    world.complete(world.hint(world.jobs.read(present(world.record(incoming.run_id).job).name)), down)
    assert world.jobs.experiment_runs == {}
    world.reconcile()
    assert set(steps_done(world.record(incoming.run_id))) == set(STEPS)
    (kept,) = world.jobs.experiment_runs.values()
    assert (kept.id, kept.state) == (f"cats-{incoming.run_id}", "COMPLETE")
    assert kept.params == {"lr": 0.1, "optimizer": "sgd", "augment": "set"}
    assert kept.metrics == {"accuracy": 0.75, "loss": 1}


def test_a_step_that_fails_keeps_no_other_from_running_and_the_reconciler_repeats_it_alone() -> None:
    world, incoming, job = launched()
    world.train(world.record(incoming.run_id))
    down = At("publish", before=raising(ServiceFailed("Pub/Sub", "publish", "it is down")))
    result = world.complete(world.hint(job), down)
    assert "step 'notices' has not finished: Pub/Sub could not publish: it is down" in result.message
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
        finished = finish_run(world.services(), held, steps)
        assert finished.problems == ("step 'copy' has not finished: still copying",)
        assert world.active() == [held.record.run_id]
    assert finish_run(world.services(), held, steps).problems == ()
    assert "copy" in steps_done(world.record(held.record.run_id))
    assert world.active() == []


def test_steps_are_recorded_beside_what_another_attempt_wrote_meanwhile() -> None:
    world, held = ended()
    first = finish_run(world.services(), held, steps={"first": lambda _: None}).held
    second = finish_run(world.services(), held, steps={"second": lambda _: None}).held
    assert second.version > first.version
    assert steps_done(second.record)[-2:] == ("first", "second")


DOWN = ServiceFailed("Pub/Sub", "publish", "it is down")
ERRORS = (
    DOWN,
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"),
    RecursionError("deep"),
    KeyError("x"),
)


def failing(name: str, error: Exception) -> Mapping[str, Step]:
    """The real steps, one of which fails."""

    def fail(_: End) -> None:
        raise error

    return {**STEPS, name: fail}


def just_ended() -> tuple[World, Held]:
    """A run whose end is on record, and none of the steps after it."""
    world, held = ended()
    completion = present(held.record.completion)
    left = replace(held.record, completion=replace(completion, steps_done=()))
    world.ledger.mark_active(left.run_id)
    return world, world.ledger.replace(held, left)


def attempt(world: World, run_id: str, steps: Mapping[str, Step]) -> bool:
    """A reconcile pass over the run; whether it ran any step."""
    held = present(world.ledger.find(run_id))
    try:
        return finish_run(world.services(), held, steps).ran
    except (UnicodeEncodeError, RecursionError, KeyError):
        return True


@pytest.mark.parametrize(
    ("name", "error"), [*((name, ERRORS[1]) for name in STEPS), *(("notices", error) for error in ERRORS)]
)
def test_a_failing_step_is_retried_then_given_up_and_blocks_no_other(name: str, error: Exception) -> None:
    world, held = just_ended()
    run_id, steps, began = held.record.run_id, failing(name, error), world.clock.now()
    attempts = 0
    while world.active():
        attempts += attempt(world, run_id, steps)
        record = world.record(run_id)
        assert set(steps_done(record)) == set(STEPS) - {name}
        next_at = present(present(record.completion).steps_failed)[name].next_at or world.clock.now()
        world.clock.advance(next_at - world.clock.now())
    assert timedelta(hours=1) < world.clock.now() - began < timedelta(days=7)
    assert attempts == (OUTAGE_ATTEMPTS_MAX if error is DOWN else BUG_ATTEMPTS_MAX)
    assert f"step {name!r} after the run's end was given up after {attempts} attempts" in record.problems[-1]
    assert all_over(record)
    RECORD.validate(encoded(record))
