"""Runs are admitted in order, when another run ends and on each tick."""

from contextlib import suppress
from datetime import timedelta

from tests.contract.rooms import (
    GPU,
    NO_CAPACITY,
    TWO_REGIONS,
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
from tests.contract.world import ELSEWHERE, LEASE, LEDGER, REGION, World, request_rules_with
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.waiting import UNANSWERED_MAX, WAIT_IN_ALL
from trainmaster.orchestrator.core.errors import SubmissionUnknown
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.moves import taken_over
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.lifecycle.slots import place_of
from trainmaster.orchestrator.flows.services import SUBMIT_NEEDS


def test_waiting_runs_are_admitted_by_priority_and_then_by_arrival(world: World) -> None:
    room = Room(world, 0)
    low = launched(world, priority=10)
    first, second = launched(world), launched(world)
    high = launched(world, priority=90)
    assert places(world) == [high, first, second, low]
    room.places, room.asked = 1, []
    world.reconcile_after(timedelta(minutes=11))
    for run_id in (high, first, second):
        assert going(world) == [run_id]
        ends(world, run_id)
    assert going(world) == [low]
    assert places(world) == []


def test_an_ending_run_admits_the_first_in_the_queue_before_its_pause_is_over(world: World) -> None:
    Room(world, 1)
    one, two = launched(world), launched(world)
    assert states(world, one, two) == ["submitted", "waiting"]
    waiting = present(world.record(two).admission.waiting)
    assert waiting.not_before > world.clock.now()
    job = present(world.record(one).job)
    world.complete(world.hint(world.jobs.become(job.name, JobState.SUCCEEDED)))
    assert states(world, one, two) == ["succeeded", "submitted"]


def test_a_new_run_overtakes_a_run_that_waits_for_the_same_quota_only_with_higher_priority() -> None:
    world = World()
    room = Room(world, 0)
    waits = launched(world)
    room.places, room.asked = None, []
    later, urgent, other = launched(world), launched(world, priority=51), launched(world, **GPU)
    assert states(world, waits, later, urgent, other) == ["waiting", "waiting", "submitted", "submitted"]
    assert room.asked == [urgent, other]
    reason = present(world.record(later).admission.waiting)
    assert reason.reason == f"{waits} is ahead of it, waiting for the same"
    world.reconcile_after(timedelta(seconds=31))
    assert states(world, waits, later) == ["submitted", "submitted"]
    assert room.asked[2:] == [waits, later]


def test_a_run_whose_submission_is_unknown_delays_no_other_and_is_resubmitted_after_its_lease() -> None:
    world = World()
    room = Room(world, 0)
    first, second = launched(world), launched(world)
    room.places, room.loses = None, {first}
    world.reconcile_after(timedelta(minutes=1))
    third = launched(world)
    assert states(world, first, second, third) == ["waiting", "submitted", "submitted"]
    world.reconcile_after(timedelta(minutes=1))
    assert places(world) == [], "while the lease lasts, the result is unknown and no run waits for it"
    world.reconcile_after(LEASE)
    assert states(world, first) == ["submitted"]
    assert room.asked.count(first) == 3
    assert places(world) == []


def test_a_run_that_another_process_is_submitting_or_crashed_on_delays_no_other(world: World) -> None:
    room = Room(world, 0)
    first, second = launched(world), launched(world)
    room.places = None
    world.clock.advance(timedelta(minutes=1))
    held = present(world.services().ledger.find(first))
    dead = taken_over(held.record, attempt="dead", now=world.clock.now(), lease=LEASE)
    world.services().ledger.replace(held, dead)
    world.reconcile()
    assert states(world, first, second) == ["waiting", "submitted"]
    assert places(world) == [first], "it may be submitting now"
    world.reconcile_after(SUBMIT_NEEDS)
    assert places(world) == [], "no new run waits for it any more"
    world.reconcile_after(LEASE)
    assert states(world, first) == ["submitted"]


def test_a_rate_limit_pauses_the_whole_region(world: World) -> None:
    room = Room(world, 0)
    cpu, gpu = launched(world), launched(world, **GPU)
    room.places, room.too_fast, room.asked = None, 1, []
    world.reconcile_after(timedelta(minutes=11))
    assert room.asked == [cpu]
    world.reconcile()
    new = launched(world, **GPU)
    assert room.asked == [cpu], "no run is submitted before the pause is over"
    world.reconcile_after(timedelta(seconds=31))
    assert states(world, cpu, gpu, new) == ["submitted"] * 3
    assert world.record(cpu).submission.candidate == 0


def test_one_refusal_for_the_rate_of_requests_does_not_count_once_there_was_another_answer() -> None:
    world = World(TWO_REGIONS)
    room = Room(world)
    room.too_fast = 1
    one = launched(world, fallbacks=[{"region": ELSEWHERE}])
    world.reconcile_after(timedelta(minutes=1))
    (job,) = world.jobs.all()
    world.clock.advance(WAIT_IN_ALL + timedelta(days=1))  # it stays queued that long
    ended = world.jobs.become(job.name, JobState.FAILED, error=NO_CAPACITY, ran=False)
    world.complete(world.hint(ended))
    record = world.record(one)
    assert (record.state, record.submission.candidate, record.admission.rate_limited_since) == (
        RunState.SUBMITTED,
        1,
        None,
    )


def test_a_run_that_waited_for_a_limit_for_over_a_week_does_not_fail_at_its_first_refusal() -> None:
    world = limited(Limit(jobs=1))
    room = Room(world)
    first, second = launched(world), launched(world)
    for _ in range(9):
        world.reconcile_after(timedelta(days=1))
    assert room.asked == [first]
    room.places = 0
    ends(world, first)
    assert states(world, second) == ["waiting"]
    world.reconcile_after(WAIT_IN_ALL - timedelta(days=1))
    assert states(world, second) == ["waiting"]
    world.reconcile_after(timedelta(days=1, hours=1))
    assert states(world, second) == ["failed"]
    error = present(world.record(second).failure)
    assert error.message.startswith("there was no capacity in the 7 days since 2026-03-10")


def test_a_run_whose_submissions_never_get_a_response_ends_and_releases_its_slot() -> None:
    world = limited(Limit(jobs=1))
    room = Room(world)
    incoming = drop(world)
    for number in range(UNANSWERED_MAX):
        room.loses = {incoming.run_id}
        with suppress(SubmissionUnknown):
            world.launch(incoming)
        record = world.record(incoming.run_id)
        assert (record.submission.unanswered, record.state) == (number + 1, RunState.RESERVED)
        world.clock.advance(LEASE)
    world.reconcile()
    assert states(world, incoming.run_id) == ["failed"]
    record = world.record(incoming.run_id)
    assert record.failure is not None
    assert f"no answer to {UNANSWERED_MAX} submissions in a row" in record.failure.message
    assert "the connection broke" in record.failure.message
    assert (slots(world), len(room.asked)) == ([], UNANSWERED_MAX)
    world.reconcile_after(LEASE)  # checks once more for the job of a process that was only slow
    assert world.active() == []


def test_a_waiting_run_ends_once_the_policy_no_longer_allows_it() -> None:
    world = World(request_rules_with(admission=Admission()))
    room = Room(world, 0)
    run_id = launched(world, region=ELSEWHERE)
    world.request_rules = request_rules_with(admission=Admission(), regions=(REGION,))
    room.places, room.asked = None, []
    world.reconcile_after(timedelta(minutes=11))
    assert states(world, run_id) == ["failed"]
    record = world.record(run_id)
    assert present(record.failure).message.startswith("the request is no longer allowed: $.region")
    assert (room.asked, places(world)) == ([], [])


def test_a_leftover_place_is_removed_and_delays_no_run(world: World) -> None:
    run_id = launched(world)
    services = world.services()
    services.queue.put(place_of(services, world.record(run_id)))
    later = launched(world)
    assert states(world, later) == ["waiting"]
    world.reconcile()
    assert states(world, later) == ["submitted"]
    assert places(world) == []


def test_the_reconciler_gives_a_place_to_a_waiting_run_without_one(world: World) -> None:
    room = Room(world, 0)
    run_id = launched(world)
    world.objects.delete(LEDGER, next(each.name for each in world.objects.listing(LEDGER, "waiting/")))
    world.reconcile()
    assert places(world) == [run_id]
    room.places = None
    world.reconcile_after(timedelta(seconds=31))
    assert states(world, run_id) == ["submitted"]


def test_an_object_that_is_not_a_place_delays_no_run(world: World) -> None:
    for name in (
        "waiting/x",
        "waiting/050-x-run",
        "waiting/abc-20260301t120000000000-r",
        "waiting/050-20260301t120000000000-r",
    ):
        world.objects.write(LEDGER, name, b"", if_generation=None, metadata={"classes": "us-central1_n1_cpu"})
    assert states(world, launched(world)) == ["submitted"]
    assert not [each for each in world.reconcile() if each.severity not in ("INFO", "DEBUG")]


def test_a_damaged_record_at_the_head_of_the_queue_delays_no_run(world: World) -> None:
    room = Room(world, 0)
    damaged, behind = launched(world), launched(world)
    world.objects.write(LEDGER, f"runs/{damaged}.json", b"[", if_generation=None)
    room.places = None
    world.clock.advance(timedelta(seconds=31))
    told = world.reconcile()
    assert states(world, behind) == ["submitted"]
    assert "ERROR" in {each.severity for each in told}
