"""Limits on concurrent jobs hold at every moment, and delay no other run."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from tests.contract.boundaries import At, dies_before
from tests.contract.rooms import (
    GPU,
    NO_CAPACITY,
    Room,
    drop,
    ends,
    going,
    launched,
    limited,
    places,
    slots,
    states,
)
from tests.contract.world import ELSEWHERE, LEASE, Killed, request_rules_with
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.candidates import candidates_of
from trainmaster.orchestrator.core.errors import LeaseHeld, RecordMoved, SubmissionRefused
from trainmaster.orchestrator.core.names import held_slot
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.moves import taken_over
from trainmaster.orchestrator.flows.completion.complete import complete_from_log
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.lifecycle.slots import limits_for
from trainmaster.orchestrator.flows.services import SUBMIT_NEEDS
from trainmaster.orchestrator.flows.submission.submit import submit


def test_a_full_limit_delays_only_its_own_runs() -> None:
    world = limited(Limit(jobs=1, per_model=True))
    first, second = launched(world), launched(world)
    other = launched(world, model_name="other")
    assert states(world, first, second, other) == ["submitted", "waiting", "submitted"]
    (slot,) = world.services().slots.taken_slots("model.cassava")
    assert world.record(first).admission.slots == (held_slot("model.cassava/0", slot.version),)
    waiting = present(world.record(second).admission.waiting)
    assert (waiting.limit, waiting.reason) == (
        "model.cassava",
        "the limit of the model cassava is reached: 1 running",
    )
    world.reconcile()
    assert states(world, second) == ["waiting"]
    ends(world, first)
    assert states(world, second) == ["submitted"]
    ends(world, second)
    ends(world, other)
    assert slots(world) == []


@pytest.mark.parametrize("since", [timedelta(0), SUBMIT_NEEDS])
def test_a_slot_is_kept_while_another_pass_submits_the_run_that_waits_for_it(since: timedelta) -> None:
    """The other pass has claimed the run and not taken the slot yet, or crashed before it did."""
    world = limited(Limit(jobs=1))
    first = launched(world)
    low, high = launched(world, priority=10), launched(world, priority=90)
    complete_from_log(world.services(), world.hint(world.train(world.record(first))))
    held = present(world.services().ledger.find(high))
    asked = taken_over(held.record, attempt="another walk", now=world.clock.now(), lease=LEASE)
    world.services().ledger.replace(held, asked)
    world.reconcile_after(since)
    assert going(world) == ([low] if since else [])
    assert (high in places(world)) is not bool(since)


def test_a_slot_that_was_kept_for_a_run_that_goes_to_wait_is_the_runs() -> None:
    """The limit was full when the run came, and its slot is given back before the record says that it waits."""
    world = limited(Limit(jobs=1))
    first, low = launched(world), launched(world, priority=10)
    end = world.hint(world.train(world.record(first)))
    incoming = drop(world, priority=90)

    def meanwhile() -> None:
        if not world.record(first).ended:
            world.complete(end)
            assert going(world) == []

    arriving = At("publish", before=meanwhile)
    result, *more = take_and_admit(world.services(arriving), incoming)
    assert "the run is waiting: the limit of all runs is reached" in result.message
    assert going(world) == [incoming.run_id], more
    ends(world, incoming.run_id)
    assert going(world) == [low]


def test_of_several_limits_all_are_kept_or_none() -> None:
    world = limited(Limit(jobs=5, per_model=True), Limit(jobs=1, labels={"team": "blue"}))
    blue = launched(world, labels={"team": "blue"})
    second = launched(world, labels={"team": "blue"})
    plain = launched(world)
    assert states(world, blue, second, plain) == ["submitted", "waiting", "submitted"]
    assert len(slots(world)) == 3
    assert world.record(second).admission.slots == ()


def test_a_run_that_waits_for_room_holds_no_slot() -> None:
    world = limited(Limit(jobs=1))
    room = Room(world, 0)
    launched(world)
    assert slots(world) == []
    room.places = None
    world.reconcile_after(timedelta(seconds=31))
    assert len(slots(world)) == 1


def test_a_slot_without_a_holder_is_taken_over() -> None:
    world = limited(Limit(jobs=1))
    ended = launched(world)
    ends(world, ended)
    queued = launched(world)
    waits = launched(world)
    ends(world, queued)
    assert states(world, waits) == ["submitted"]
    ends(world, waits)
    for holder in (ended, "never-seen-20260301t120000-0000000000"):
        world.services().slots.take("all", 0, holder)
        run_id = launched(world)
        assert states(world, run_id) == ["waiting"]
        world.reconcile()
        if holder == ended:
            assert states(world, run_id) == ["submitted"]
        else:
            assert states(world, run_id) == ["waiting"], "its event may still be redelivered"
            world.reconcile_after(timedelta(hours=25))
            assert states(world, run_id) == ["submitted"]
        ends(world, run_id)


def test_a_slot_given_back_late_is_not_that_of_the_runs_next_job() -> None:
    world = limited(Limit(jobs=1))
    first = launched(world, fallbacks=[{"region": ELSEWHERE}])
    before = world.record(first)
    job = world.jobs.become(present(before.job).name, JobState.FAILED, error=NO_CAPACITY, ran=False)
    with pytest.raises(Killed):
        # It has recorded that the run waits, and is paused before it releases the slot.
        world.complete(world.hint(job), dies_before("delete slots"))
    assert states(world, first) == ["waiting"]
    world.reconcile()
    assert states(world, first) == ["submitted"]
    world.services().slots.free(before.admission.slots[0])
    second = launched(world)
    assert states(world, first, second) == ["submitted", "waiting"]
    ends(world, first)
    assert going(world) == [second]


def test_slots_taken_before_a_full_limit_are_released_only_by_the_process_that_holds_the_run() -> None:
    world = limited(Limit(jobs=5, per_model=True), Limit(jobs=5, labels={"team": "blue"}))
    incoming = drop(world, labels={"team": "blue"})
    with pytest.raises(Killed):
        world.launch(incoming, dies_before("submit"))
    late = world.services()
    held = present(late.ledger.find(incoming.run_id))
    world.reconcile_after(LEASE)
    assert states(world, incoming.run_id) == ["submitted"]
    there = slots(world)
    # The process that lost the run knows a policy with one more limit, which is full.
    world.request_rules = limited(
        Limit(jobs=5, per_model=True), Limit(jobs=5, labels={"team": "blue"}), Limit(jobs=1, model="cass*")
    ).request_rules
    for limit in limits_for(late, candidates_of(held.record)[0].spec, None):
        if limit.name.startswith("models."):
            late.slots.take(limit.name, 0, "another")
    with pytest.raises(RecordMoved):
        submit(late, held)
    assert set(there) <= set(slots(world))


def test_a_run_of_higher_priority_gets_the_slot_first_even_in_another_quota_class() -> None:
    world = limited(Limit(jobs=1))
    first = launched(world)
    high = launched(world, priority=90, **GPU)
    world.request_rules = limited(Limit(jobs=2)).request_rules
    low = launched(world, priority=0)
    assert states(world, first, high, low) == ["submitted", "waiting", "waiting"]
    waiting = present(world.record(low).admission.waiting)
    assert (waiting.limit, waiting.reason) == ("all", f"{high} is ahead of it, waiting under the same limit")
    world.reconcile()
    assert states(world, high, low) == ["submitted", "waiting"]
    ends(world, first)
    assert states(world, low) == ["submitted"]


def test_no_run_waits_at_a_limit_for_a_run_that_also_waits_for_quota() -> None:
    world = limited(Limit(jobs=1))
    first = launched(world)
    launched(world, priority=90, **GPU)
    room = Room(world, 0)
    world.request_rules = limited(Limit(jobs=2)).request_rules
    world.reconcile()
    room.places = None
    low = launched(world, priority=0)
    assert states(world, first, low) == ["submitted", "submitted"], (
        "the run of higher priority found no quota"
    )


def test_the_slot_of_a_run_that_is_refused_at_once_goes_to_a_run_that_arrived_meanwhile() -> None:
    world = limited(Limit(jobs=1))
    submit_now, waits = world.jobs.submit, list[str]()

    def refuses_the_first(submission: Submission) -> Job:
        if not waits:
            waits.append(launched(world))
            assert states(world, *waits) == ["waiting"]
            raise SubmissionRefused(400, "no such machine")
        return submit_now(submission)

    world.jobs.submit = refuses_the_first  # type: ignore[method-assign]  # the test's service answers instead
    incoming = drop(world)
    list(take_and_admit(world.services(), incoming))
    assert states(world, incoming.run_id, *waits) == ["failed", "submitted"]


def test_a_lowered_limit_counts_those_who_hold_higher_slots() -> None:
    world = limited(Limit(jobs=3))
    runs = [launched(world) for _ in range(3)]
    world.request_rules = request_rules_with(admission=Admission(limits=(Limit(jobs=1),)))
    waits = launched(world)
    ends(world, runs[0])
    ends(world, runs[1])
    assert states(world, waits) == ["waiting"]
    ends(world, runs[2])
    assert states(world, waits) == ["submitted"]


def test_of_many_at_once_never_more_run_than_the_limit_allows_and_all_get_their_turn() -> None:
    world = limited(Limit(jobs=3))
    room = Room(world)
    arrivals = [drop(world) for _ in range(16)]

    def deliver(incoming: IncomingDocument) -> None:
        for _ in range(100):
            try:
                world.launch(incoming)
            except (LeaseHeld, RecordMoved):
                continue
            return

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(deliver, arrivals))
    for _ in range(40):
        for run_id in going(world):
            ends(world, run_id)
        world.reconcile_after(timedelta(minutes=11))
    assert room.most <= 3
    assert states(world, *(each.run_id for each in arrivals)) == ["succeeded"] * 16
    assert (slots(world), places(world), world.active()) == ([], [], [])
