"""A cancel order ends a waiting run at once, and a run with a job when its job ends."""

import json
from datetime import timedelta

import pytest

from tests.contract.boundaries import At, dies_after, dies_before, raising
from tests.contract.rooms import (
    GPU,
    NO_CAPACITY,
    TWO_REGIONS,
    Room,
    drop,
    launched,
    places,
    states,
    unanswered,
)
from tests.contract.schemas import RECORD
from tests.contract.simulation.scenarios import TUNED
from tests.contract.world import ELSEWHERE, LEASE, LEDGER, Killed, World
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import LeaseHeld, ServiceFailed
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.sender import Sender, Surety
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.services import FlowResult


def order_to_end(world: World, run_id: str) -> IncomingDocument:
    return world.drop(json.dumps({"cancel": {"run": run_id}}).encode(), "requests/end.json")


def carried_out(world: World, incoming: IncomingDocument) -> FlowResult:
    result, *_ = take_and_admit(world.services(), incoming)
    return result


def told(world: World, run_id: str) -> list[str]:
    ids = [notice.id for notice in world.notices.published]
    return [each.removeprefix(f"{run_id}/") for each in ids if each.startswith(f"{run_id}/")]


def killed_around_the_submission(world: World, *, after: bool) -> str:
    """A run whose function died just before, or just after, it submitted."""
    incoming = drop(world)
    with pytest.raises(Killed):
        world.launch(incoming, dies_after("submit") if after else dies_before("submit"))
    return incoming.run_id


def test_a_cancelled_waiting_run_ends_at_once_and_the_next_is_admitted(world: World) -> None:
    room = Room(world, 0)
    first, second = launched(world), launched(world)
    room.places = None
    world.clock.advance(timedelta(minutes=1))
    carried_out(world, order_to_end(world, first))
    assert states(world, first, second) == ["cancelled", "submitted"]
    assert told(world, first) == ["reserved", "waiting", "cancelled"]
    assert first not in world.active()
    assert places(world) == []


def test_an_order_cancels_the_job_and_the_jobs_end_ends_the_run(world: World) -> None:
    run_id = launched(world)
    order = world.drop(json.dumps({"cancel": {"run": run_id}}).encode(), "requests/end.json", by="Ben")
    result = carried_out(world, order)
    record = world.record(run_id)
    assert record.cancel_requested_by == Sender(name="Ben", by=Surety.CLAIM)
    assert record.job is not None
    assert result.message == f"{record.job.name} was asked to cancel"
    assert record.state is RunState.SUBMITTED, "the job's end was not reported"
    RECORD.validate(encoded(record))
    status = world.document("status/requests/end.json.json")
    assert (status["state"], status["record_uri"]) == ("succeeded", f"gs://{LEDGER}/runs/{run_id}.json")
    world.complete(world.hint(world.jobs.read(record.job.name)))
    assert states(world, run_id) == ["cancelled"]
    assert " UTC by Ben" in str(world.record(run_id).failure)
    asked_at = world.record(run_id).cancel_requested_at
    assert carried_out(world, order).message == "the run had already ended: cancelled"
    assert world.record(run_id).cancel_requested_at == asked_at


def test_a_cancelled_run_gets_no_other_job_after_a_stockout() -> None:
    """Its end was in flight when the order arrived."""
    world = World(TWO_REGIONS)
    run_id = launched(world, fallbacks=[{"region": ELSEWHERE}])
    job = world.jobs.all()[0]
    world.jobs.become(job.name, JobState.FAILED, error=NO_CAPACITY, ran=False)
    carried_out(world, order_to_end(world, run_id))
    world.complete(world.hint(world.jobs.read(job.name)))
    world.reconcile_after(timedelta(hours=1))
    assert states(world, run_id) == ["failed"]
    assert len(world.jobs.all()) == 1
    error = present(world.record(run_id).failure)
    assert error.message == NO_CAPACITY.message


def test_a_run_that_is_being_submitted_is_ended_by_a_later_delivery(world: World) -> None:
    run_id = killed_around_the_submission(world, after=True)
    order = order_to_end(world, run_id)
    with pytest.raises(LeaseHeld) as held:
        carried_out(world, order)
    assert held.value.retryable
    world.clock.advance(LEASE + timedelta(seconds=1))
    carried_out(world, order)
    (job,) = world.jobs.all()
    assert job.state is JobState.CANCELLED
    world.complete(world.hint(job))
    assert states(world, run_id) == ["cancelled"]


def test_a_cancelled_run_whose_submission_left_no_job_gets_none_from_any_process(world: World) -> None:
    """The order was interrupted after it took the run over; the next process carries it out."""
    run_id = killed_around_the_submission(world, after=False)
    world.clock.advance(LEASE + timedelta(seconds=1))
    order = order_to_end(world, run_id)
    down = At("find jobs", before=raising(ServiceFailed("Vertex AI", "list", "it is down")))
    with pytest.raises(ServiceFailed):
        list(take_and_admit(world.services(down), order))
    carried_out(world, order)
    assert states(world, run_id) == ["cancelled"]
    world.reconcile_after(LEASE + timedelta(seconds=1))
    assert world.jobs.all() == []


def test_submissions_without_a_response_do_not_block_a_cancel_order(world: World) -> None:
    """Each leaves a lease, and the reconciler would take the next one before the order is redelivered."""
    room = Room(world)
    incoming = unanswered(world, room)
    order = order_to_end(world, incoming.run_id)
    for _ in range(2):
        with pytest.raises(LeaseHeld):
            carried_out(world, order)
    world.reconcile_after(LEASE)
    assert (states(world, incoming.run_id), room.asked) == (["cancelled"], [incoming.run_id])
    carried_out(world, order)


def test_reconciling_a_cancelled_run_admits_no_run_before_its_pause_is_over(world: World) -> None:
    room = Room(world, 0)
    ended, other = launched(world), launched(world, **GPU)
    for _ in range(5):
        world.reconcile_after(timedelta(minutes=11))
    due = present(world.record(other).admission.waiting)
    room.places = None
    carried_out(world, order_to_end(world, ended))
    world.clock.advance(LEASE)
    assert due.not_before > world.clock.now()
    world.reconcile()
    assert (states(world, ended, other), world.active()) == (["cancelled", "waiting"], [other])


def test_every_reconcile_pass_cancels_a_job_again_until_it_ends(world: World) -> None:
    run_id = launched(world)
    refuses = At("cancel", before=raising(ServiceFailed("Vertex AI", "cancel", "it is down")))
    with pytest.raises(ServiceFailed):
        list(take_and_admit(world.services(refuses), order_to_end(world, run_id)))
    end, asked = world.jobs.cancel, list[str]()
    world.jobs.cancel = asked.append  # type: ignore[method-assign, assignment]  # a service that accepts the request and does nothing
    world.reconcile()
    world.reconcile()
    record = world.record(run_id)
    assert asked == [present(record.job).name] * 2
    world.jobs.cancel = end  # type: ignore[method-assign]
    world.reconcile()
    world.reconcile()
    assert states(world, run_id) == ["cancelled"]


def test_cancelling_a_tuning_run_cancels_the_study(world: World) -> None:
    run_id = launched(world, tuning=TUNED["tuning"])
    carried_out(world, order_to_end(world, run_id))
    (study,) = world.jobs.all()
    assert "/hyperparameterTuningJobs/" in study.name
    world.complete(world.hint(study))
    assert states(world, run_id) == ["cancelled"]


def test_an_order_for_an_unknown_run_is_refused_with_the_path_of_the_fault(world: World) -> None:
    incoming = order_to_end(world, "cassava-20260301t120000-0123456789")
    carried_out(world, incoming)
    (problem,) = world.record(incoming.run_id).problems
    assert problem.startswith("$.cancel.run: no run has this id")
