"""Who goes when: in order, under limits, woken by ends and by the tick, and refused by caps."""

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from jsonschema import Draft202012Validator

from orchestrator.adapters.pubsub import cloud_event
from orchestrator.core.admission.terms import Admission, Caps, Limit
from orchestrator.core.codec import encoded
from orchestrator.core.errors import LeaseHeld, RecordMoved, SubmissionDeferred, SubmissionUnknown
from orchestrator.core.launch.event import Arrival
from orchestrator.core.launch.submission import Submission
from orchestrator.core.names import RUN_LABEL, held_slot
from orchestrator.core.run import Job, JobState, Problem, RunState, taken_over
from orchestrator.core.settle.outcome import END_OF
from orchestrator.core.waiting import UNANSWERED_MAX, WAIT_IN_ALL
from orchestrator.flow.admission import launch_and_admit
from orchestrator.flow.ladder import ladder_for
from orchestrator.flow.queueing import place_of
from orchestrator.flow.slots import limits_for
from orchestrator.flow.submit import SUBMIT_NEEDS, submit
from tests.contract.retraining import SMALL
from tests.contract.world import (
    ELSEWHERE,
    LEASE,
    LEDGER,
    REGION,
    Boundary,
    Killed,
    World,
    schema,
    standards_with,
)

RECORD = Draft202012Validator(schema("run_record.v1"))
NOTICE = Draft202012Validator(schema("notice.v1"))
GPU = {
    "cluster": {"chief": {"machine": "n1-standard-4", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}}
}
_Answer = TypeVar("_Answer")


class DiesAt(Boundary):
    """The process dies before the first call of this name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        if name == self.name:
            raise Killed(f"before {name}")
        return super().cross(name, call)


FULL = SubmissionDeferred(429, "The following quota metrics exceed quota limits: custom_model_training_cpus")
TOO_FAST = SubmissionDeferred(429, "Quota exceeded: requests per minute per region")


class Room:
    """A JobService with so many places for each kind of machine; None: as many as are wanted."""

    def __init__(self, world: World, places: int | None = None) -> None:
        self.world, self.places = world, places
        self.too_fast = 0
        self.loses: set[str] = set()
        self.asked: list[str] = []
        self.most = 0
        self._submit = world.jobs.submit
        world.jobs.submit = self.submit  # type: ignore[method-assign]  # this service's own way to answer

    def submit(self, submission: Submission) -> Job:
        self.asked.append(submission.run_id)
        if self.too_fast:
            self.too_fast -= 1
            raise TOO_FAST
        if self.places is not None and len(going(self.world)) >= self.places:
            raise FULL
        if submission.run_id in self.loses:
            self.loses.remove(submission.run_id)
            raise SubmissionUnknown("the connection broke")
        job = self._submit(submission)
        self.most = max(self.most, len(going(self.world)))
        return job


_names = (f"n{number}" for number in itertools.count())


def drop(world: World, **changes: Any) -> Arrival:
    world.clock.advance(timedelta(seconds=1))
    return world.drop(json.dumps({**SMALL, **changes}).encode(), f"requests/{next(_names)}.json")


def launched(world: World, **changes: Any) -> str:
    arrival = drop(world, **changes)
    world.launch(arrival)
    return arrival.run_id


def going(world: World) -> list[str]:
    return [job.labels[RUN_LABEL] for job in world.jobs.all() if job.state not in END_OF]


def ends(world: World, run_id: str) -> None:
    world.settle(world.hint(world.train(world.record(run_id))))


def places(world: World) -> list[str]:
    return [place.run_id for place in sorted(world.services().queue.places(), key=lambda each: each.order)]


def slots(world: World) -> list[str]:
    return [each.name for each in world.objects.listing(LEDGER, "slots/")]


def states(world: World, *run_ids: str) -> list[str]:
    for run_id in run_ids:
        RECORD.validate(encoded(world.record(run_id)))
    return [world.record(run_id).state.value for run_id in run_ids]


def limited(*limits: Limit) -> World:
    return World(standards_with(admission=Admission(limits=limits)))


def test_who_waits_goes_by_priority_and_then_by_arrival() -> None:
    world = World()
    room = Room(world, 0)
    low = launched(world, priority=10)
    first, second = launched(world), launched(world)
    high = launched(world, priority=90)
    assert places(world) == [high, first, second, low]
    room.places, room.asked = 1, []
    world.clock.advance(timedelta(minutes=11))
    world.sweep()
    for run_id in (high, first, second):
        assert going(world) == [run_id]
        ends(world, run_id)
    assert going(world) == [low]
    assert places(world) == []


def test_an_end_wakes_the_first_although_its_pause_is_not_over() -> None:
    world = World()
    Room(world, 1)
    one, two = launched(world), launched(world)
    assert states(world, one, two) == ["submitted", "waiting"]
    waiting = world.record(two).waiting
    assert waiting is not None
    assert waiting.not_before > world.clock.now()
    job = world.record(one).job
    assert job is not None
    world.settle(world.hint(world.jobs.become(job.name, JobState.SUCCEEDED)))
    assert states(world, one, two) == ["succeeded", "submitted"]


def test_a_new_run_does_not_overtake_who_waits_for_the_same_and_one_of_more_priority_does() -> None:
    world = World()
    room = Room(world, 0)
    waits = launched(world)
    room.places, room.asked = None, []
    later, urgent, other = launched(world), launched(world, priority=51), launched(world, **GPU)
    assert states(world, waits, later, urgent, other) == ["waiting", "waiting", "submitted", "submitted"]
    assert room.asked == [urgent, other]
    reason = world.record(later).waiting
    assert reason is not None
    assert reason.reason == f"{waits} waits for the same before it"
    world.clock.advance(timedelta(seconds=31))
    world.sweep()
    assert states(world, waits, later) == ["submitted", "submitted"]
    assert room.asked[2:] == [waits, later]


def test_one_refusal_closes_its_class_and_no_other_in_one_walk() -> None:
    world = World()
    room = Room(world, 0)
    cpus = [launched(world) for _ in range(5)]
    gpu = launched(world, **GPU)
    room.asked = []
    world.clock.advance(timedelta(minutes=11))
    world.sweep()
    assert room.asked == [cpus[0], gpu]


def test_nobody_goes_before_the_first_whose_pause_is_not_over() -> None:
    world = World()
    room = Room(world, 0)
    launched(world)
    world.clock.advance(timedelta(seconds=31))
    world.sweep()  # its second attempt: the next is due in a minute
    later = launched(world)
    room.places, room.asked = None, []
    world.clock.advance(timedelta(seconds=31))
    world.sweep()
    assert room.asked == []
    assert states(world, later) == ["waiting"]


def test_a_run_that_may_have_gone_keeps_nobody_waiting_and_goes_when_its_lease_is_over() -> None:
    world = World()
    room = Room(world, 0)
    first, second = launched(world), launched(world)
    room.places, room.loses = None, {first}
    world.clock.advance(timedelta(minutes=1))
    world.sweep()
    third = launched(world)
    assert states(world, first, second, third) == ["waiting", "submitted", "submitted"]
    world.clock.advance(timedelta(minutes=1))
    world.sweep()
    assert places(world) == [], "while the lease lasts, nobody knows and nobody waits for it"
    world.clock.advance(LEASE)
    world.sweep()
    assert states(world, first) == ["submitted"]
    assert room.asked.count(first) == 3
    assert places(world) == []


def test_a_run_that_another_process_asks_for_or_died_over_keeps_nobody_waiting() -> None:
    world = World()
    room = Room(world, 0)
    first, second = launched(world), launched(world)
    room.places = None
    world.clock.advance(timedelta(minutes=1))
    held = world.services().ledger.find(first)
    assert held is not None
    dead = taken_over(held.record, attempt="dead", now=world.clock.now(), lease=LEASE)
    world.services().ledger.replace(held, dead)
    world.sweep()
    assert states(world, first, second) == ["waiting", "submitted"]
    assert places(world) == [first], "it may be asking at this moment"
    world.clock.advance(SUBMIT_NEEDS)
    world.sweep()
    assert places(world) == [], "no new run waits for it any more"
    world.clock.advance(LEASE)
    world.sweep()
    assert states(world, first) == ["submitted"]


def test_a_new_run_that_waits_for_its_turn_takes_those_before_it_along() -> None:
    world = World()
    room = Room(world, 0)
    waits = [launched(world) for _ in range(3)]
    room.places = None
    world.clock.advance(timedelta(minutes=11))
    arrival = drop(world)
    list(launch_and_admit(world.services(), arrival))
    assert states(world, *waits, arrival.run_id) == ["submitted", "submitted", "waiting", "waiting"]
    assert places(world) == [waits[2], arrival.run_id]
    later = drop(world)
    list(launch_and_admit(world.services(), later))
    assert places(world) == [later.run_id]


def test_when_the_service_is_asked_too_fast_the_whole_region_pauses() -> None:
    world = World()
    room = Room(world, 0)
    cpu, gpu = launched(world), launched(world, **GPU)
    room.places, room.too_fast, room.asked = None, 1, []
    world.clock.advance(timedelta(minutes=11))
    world.sweep()
    assert room.asked == [cpu]
    world.sweep()
    new = launched(world, **GPU)
    assert room.asked == [cpu], "nobody asks before the pause is over"
    world.clock.advance(timedelta(seconds=31))
    world.sweep()
    assert states(world, cpu, gpu, new) == ["submitted"] * 3
    assert world.record(cpu).rung == 0


def test_a_full_limit_keeps_its_own_runs_and_nobody_else() -> None:
    world = limited(Limit(jobs=1, per_model=True))
    first, second = launched(world), launched(world)
    other = launched(world, model_name="other")
    assert states(world, first, second, other) == ["submitted", "waiting", "submitted"]
    (slot,) = world.services().slots.taken("model.cassava")
    assert world.record(first).slots == (held_slot("model.cassava/0", slot.version),)
    waiting = world.record(second).waiting
    assert waiting is not None
    assert (waiting.aside, waiting.reason) == (
        "model.cassava",
        "as many jobs run as the limit of the model cassava allows: 1",
    )
    world.sweep()
    assert states(world, second) == ["waiting"]
    ends(world, first)
    assert states(world, second) == ["submitted"]
    ends(world, second)
    ends(world, other)
    assert slots(world) == []


def test_a_run_of_more_priority_that_waits_for_a_limit_gets_the_slot_first() -> None:
    world = limited(Limit(jobs=1))
    first = launched(world)
    low, high = launched(world, priority=10), launched(world, priority=90)
    ends(world, first)
    assert going(world) == [high]
    ends(world, high)
    assert going(world) == [low]


def test_of_several_limits_all_are_kept_or_none() -> None:
    world = limited(Limit(jobs=5, per_model=True), Limit(jobs=1, labels={"team": "blue"}))
    blue = launched(world, labels={"team": "blue"})
    second = launched(world, labels={"team": "blue"})
    plain = launched(world)
    assert states(world, blue, second, plain) == ["submitted", "waiting", "submitted"]
    assert len(slots(world)) == 3
    assert world.record(second).slots == ()


def test_a_run_that_waits_for_room_holds_no_slot() -> None:
    world = limited(Limit(jobs=1))
    room = Room(world, 0)
    launched(world)
    assert slots(world) == []
    room.places = None
    world.clock.advance(timedelta(seconds=31))
    world.sweep()
    assert len(slots(world)) == 1


def test_without_limits_and_caps_an_event_costs_one_listing_more() -> None:
    world = World(standards_with(admission=Admission()))
    boundary = Boundary()
    world.launch(drop(world), boundary)
    assert boundary.calls.count("list ledger") == 1
    assert {"write slots", "write started", "write waiting"}.isdisjoint(boundary.calls)


def test_a_slot_that_nobody_holds_any_more_is_taken_over() -> None:
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
        world.sweep()
        if holder == ended:
            assert states(world, run_id) == ["submitted"]
        else:
            assert states(world, run_id) == ["waiting"], "its event may still come again"
            world.clock.advance(timedelta(hours=25))
            world.sweep()
            assert states(world, run_id) == ["submitted"]
        ends(world, run_id)


def test_a_slot_that_another_run_holds_by_now_is_not_given_back() -> None:
    world = limited(Limit(jobs=1))
    first, second = launched(world), launched(world)
    ends(world, first)
    world.services().slots.free(world.record(first).slots[0])
    assert going(world) == [second]
    assert slots(world) == ["slots/all/0"]


def test_a_slot_given_back_late_is_not_that_of_the_runs_next_job() -> None:
    world = limited(Limit(jobs=1))
    first = launched(world, fallbacks=[{"region": ELSEWHERE}])
    before = world.record(first)
    assert before.job is not None
    empty = Problem(message="Resources are insufficient in region: us-central1", code=8)
    job = world.jobs.become(before.job.name, JobState.FAILED, error=empty, ran=False)
    with pytest.raises(Killed):
        # It has written down that the run waits, and stands still before it gives the slot back.
        world.settle(world.hint(job), DiesAt("delete slots"))
    assert states(world, first) == ["waiting"]
    world.sweep()
    assert states(world, first) == ["submitted"]
    world.services().slots.free(before.slots[0])
    second = launched(world)
    assert states(world, first, second) == ["submitted", "waiting"]
    ends(world, first)
    assert going(world) == [second]


def test_what_was_taken_before_a_full_limit_is_given_back_only_by_whoever_has_the_run() -> None:
    world = limited(Limit(jobs=5, per_model=True), Limit(jobs=5, labels={"team": "blue"}))
    boundary = DiesAt("submit")
    arrival = drop(world, labels={"team": "blue"})
    with pytest.raises(Killed):
        world.launch(arrival, boundary)
    late = world.services()
    held = late.ledger.find(arrival.run_id)
    assert held is not None
    world.clock.advance(LEASE)
    world.sweep()
    assert states(world, arrival.run_id) == ["submitted"]
    there = slots(world)
    # Whoever was taken over finds one more limit by the policy that it knows, and that one is full.
    world.standards = limited(
        Limit(jobs=5, per_model=True),
        Limit(jobs=5, labels={"team": "blue"}),
        Limit(jobs=1, model="cass*"),
    ).standards
    ladder = ladder_for(late, held.record)
    for limit in limits_for(late, ladder[0].spec):
        if limit.name.startswith("models."):
            late.slots.take(limit.name, 0, "another")
    with pytest.raises(RecordMoved):
        submit(late, held, ladder)
    assert set(there) <= set(slots(world))


def test_a_storm_that_the_limit_has_room_for_goes_at_once() -> None:
    world = limited(Limit(jobs=40))
    arrivals = [drop(world) for _ in range(40)]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(world.launch, arrivals))
    assert states(world, *(each.run_id for each in arrivals)) == ["submitted"] * 40
    assert len(slots(world)) == 40


def test_a_run_of_more_priority_gets_the_slot_first_though_it_is_of_another_class() -> None:
    world = limited(Limit(jobs=1))
    first = launched(world)
    high = launched(world, priority=90, **GPU)
    world.standards = limited(Limit(jobs=2)).standards
    low = launched(world, priority=0)
    assert states(world, first, high, low) == ["submitted", "waiting", "waiting"]
    waiting = world.record(low).waiting
    assert waiting is not None
    assert (waiting.aside, waiting.reason) == (
        "all",
        f"{high} waits for a place under the same limit before it",
    )
    world.sweep()
    assert states(world, high, low) == ["submitted", "waiting"]
    ends(world, first)
    assert states(world, low) == ["submitted"]


def test_nobody_waits_at_a_limit_for_a_run_that_waits_for_room_as_well() -> None:
    world = limited(Limit(jobs=1))
    first = launched(world)
    launched(world, priority=90, **GPU)
    room = Room(world, 0)
    world.standards = limited(Limit(jobs=2)).standards
    world.sweep()
    room.places = None
    low = launched(world, priority=0)
    assert states(world, first, low) == ["submitted", "submitted"], "the one of more priority found no room"


def test_who_waited_for_a_limit_longer_than_a_week_does_not_fail_at_its_first_refusal() -> None:
    world = limited(Limit(jobs=1))
    room = Room(world)
    first, second = launched(world), launched(world)
    for _ in range(9):
        world.clock.advance(timedelta(days=1))
        world.sweep()
    assert room.asked == [first]
    room.places = 0
    ends(world, first)
    assert states(world, second) == ["waiting"]
    world.clock.advance(WAIT_IN_ALL - timedelta(days=1))
    world.sweep()
    assert states(world, second) == ["waiting"]
    world.clock.advance(timedelta(days=1, hours=1))
    world.sweep()
    assert states(world, second) == ["failed"]
    error = world.record(second).error
    assert error is not None
    assert error.message.startswith("there was no room in the 7 days since 2026-03-10")


def test_a_run_to_which_the_service_never_answers_ends_and_gives_its_slot_back() -> None:
    world = limited(Limit(jobs=1))
    room = Room(world)
    arrival = drop(world)
    for number in range(UNANSWERED_MAX):
        room.loses = {arrival.run_id}
        with suppress(SubmissionUnknown):
            world.launch(arrival)
        record = world.record(arrival.run_id)
        assert (record.unanswered, record.state) == (number + 1, RunState.RESERVED)
        world.clock.advance(LEASE)
    world.sweep()
    assert states(world, arrival.run_id) == ["failed"]
    record = world.record(arrival.run_id)
    assert record.error is not None
    assert f"no answer to {UNANSWERED_MAX} submissions in a row" in record.error.message
    assert "the connection broke" in record.error.message
    assert (slots(world), len(room.asked)) == ([], UNANSWERED_MAX)
    world.sweep()
    assert world.active() == []


def test_an_answer_ends_the_row_of_those_without_one() -> None:
    world = World()
    room = Room(world)
    arrival = drop(world)
    room.loses = {arrival.run_id}
    with pytest.raises(SubmissionUnknown):
        world.launch(arrival)
    room.places = 0
    world.clock.advance(LEASE)
    world.sweep()
    record = world.record(arrival.run_id)
    assert (record.state, record.unanswered) == (RunState.WAITING, 0)
    assert record.refused_since == record.tries[-1].at


def test_a_run_that_waits_ends_when_the_policy_allows_it_no_more() -> None:
    world = World(standards_with(admission=Admission()))
    room = Room(world, 0)
    run_id = launched(world, region=ELSEWHERE)
    world.standards = standards_with(admission=Admission(), regions=(REGION,))
    room.places, room.asked = None, []
    world.clock.advance(timedelta(minutes=11))
    world.sweep()
    assert states(world, run_id) == ["failed"]
    record = world.record(run_id)
    assert record.error is not None
    assert record.error.message.startswith("the request is not allowed any more: $.region")
    assert (room.asked, places(world)) == ([], [])


def test_the_reason_has_the_policys_words_for_a_limit_by_pattern() -> None:
    world = limited(Limit(jobs=1, model="cass*"))
    launched(world)
    waiting = world.record(launched(world)).waiting
    assert waiting is not None
    assert waiting.reason == "as many jobs run as the limit of the models cass* allows: 1"


def test_a_lowered_limit_counts_those_who_hold_higher_slots() -> None:
    world = limited(Limit(jobs=3))
    runs = [launched(world) for _ in range(3)]
    world.standards = standards_with(admission=Admission(limits=(Limit(jobs=1),)))
    waits = launched(world)
    ends(world, runs[0])
    ends(world, runs[1])
    assert states(world, waits) == ["waiting"]
    ends(world, runs[2])
    assert states(world, waits) == ["submitted"]


def test_a_place_that_is_left_over_is_taken_away_and_keeps_nobody() -> None:
    world = World()
    run_id = launched(world)
    services = world.services()
    services.queue.put(place_of(services, world.record(run_id)))
    later = launched(world)
    assert states(world, later) == ["waiting"]
    world.sweep()
    assert states(world, later) == ["submitted"]
    assert places(world) == []


def test_a_run_that_waits_without_a_place_is_given_one_by_the_sweep() -> None:
    world = World()
    room = Room(world, 0)
    run_id = launched(world)
    world.objects.delete(LEDGER, next(each.name for each in world.objects.listing(LEDGER, "waiting/")))
    world.sweep()
    assert places(world) == [run_id]
    room.places = None
    world.clock.advance(timedelta(seconds=31))
    world.sweep()
    assert states(world, run_id) == ["submitted"]


def test_what_is_no_place_keeps_nobody_waiting() -> None:
    world = World()
    for name in (
        "waiting/x",
        "waiting/us-central1/050-x-run",
        "waiting/us-central1/abc-20260301t120000000000-r",
    ):
        world.objects.write(LEDGER, name, b"", if_generation=None, metadata={"classes": "us-central1_n1_cpu"})
    assert states(world, launched(world)) == ["submitted"]
    assert not [each for each in world.sweep() if each.severity not in ("INFO", "DEBUG")]


def test_a_damaged_record_at_the_head_keeps_nobody_waiting() -> None:
    world = World()
    room = Room(world, 0)
    damaged, behind = launched(world), launched(world)
    world.objects.write(LEDGER, f"runs/{damaged}.json", b"[", if_generation=None)
    room.places = None
    world.clock.advance(timedelta(seconds=31))
    told = world.sweep()
    assert states(world, behind) == ["submitted"]
    assert "ERROR" in {each.severity for each in told}


def test_the_end_of_a_cancelled_run_that_waited_leaves_no_place() -> None:
    world = World()
    Room(world, 0)
    run_id = launched(world)
    held = world.ledger.find(run_id)
    assert held is not None
    from orchestrator.flow.retrain.firing import _cancel

    _cancel(world.services(), run_id)
    assert states(world, run_id) == ["cancelled"]
    assert places(world) == []


def test_of_many_at_once_never_more_run_than_the_limit_allows_and_all_get_their_turn() -> None:
    world = limited(Limit(jobs=3))
    room = Room(world)
    arrivals = [drop(world) for _ in range(16)]

    def deliver(arrival: Arrival) -> None:
        for _ in range(100):
            try:
                world.launch(arrival)
            except (LeaseHeld, RecordMoved):
                continue
            return

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(deliver, arrivals))
    for _ in range(40):
        for run_id in going(world):
            ends(world, run_id)
        world.clock.advance(timedelta(minutes=11))
        world.sweep()
    assert room.most <= 3
    assert states(world, *(each.run_id for each in arrivals)) == ["succeeded"] * 16
    assert (slots(world), places(world), world.active()) == ([], [], [])


def capped(**caps: Any) -> World:
    return World(standards_with(admission=Admission(caps=Caps(**caps))))


def cap_notices(world: World) -> Iterator[dict[str, Any]]:
    for notice in world.notices.published:
        if notice.type == "trainmaster.cap.reached.v1":
            document = cloud_event(notice, "//trainmaster/projects/p/locations/l")
            NOTICE.validate(document)
            yield document


def test_a_storm_is_one_refusal_a_run_and_one_notice_a_window() -> None:
    world = capped(runs_per_hour=3)
    runs = [launched(world) for _ in range(10)]
    assert states(world, *runs) == ["submitted"] * 3 + ["rejected"] * 7
    world.sweep()
    (notice,) = cap_notices(world)
    assert notice["id"] == "caps/runs_per_hour/2026-03-01T12"
    refused = world.record(runs[5])
    assert len(refused.problems) == 1
    assert world.document(f"rejected/{refused.run_id}.json")["faults"][0]["problem"].startswith(
        "3 runs were started"
    )
    world.clock.advance(timedelta(hours=1))
    assert states(world, launched(world)) == ["submitted"]


def test_a_full_cap_costs_a_listing_and_no_mark() -> None:
    world = capped(runs_per_hour=1)
    launched(world)
    boundary = Boundary()
    world.launch(drop(world), boundary)
    assert "write started" not in boundary.calls
    first = Boundary()
    capped(runs_per_hour=1).launch(drop(world), first)


def test_a_redelivery_is_not_counted_twice_wherever_the_first_died() -> None:
    from tests.contract.world import LEASE, Killed

    point = 0
    while True:
        world = capped(runs_per_hour=2)
        arrival = drop(world)
        try:
            world.launch(arrival, Boundary(die_at=point))
        except Killed:
            world.clock.advance(LEASE)
            world.sweep()
            world.launch(arrival)
        else:
            break
        point += 1
        assert states(world, arrival.run_id, launched(world), launched(world)) == [
            "submitted",
            "submitted",
            "rejected",
        ]
    assert point > 8


def test_of_many_at_once_as_many_are_started_as_the_cap_allows() -> None:
    world = capped(runs_per_hour=5)
    arrivals = [drop(world) for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(world.launch, arrivals))
    found = [world.record(each.run_id).state for each in arrivals]
    assert found.count(RunState.SUBMITTED) == 5
    assert found.count(RunState.REJECTED) == 11


def test_old_marks_go() -> None:
    world = capped(runs_per_hour=5)
    launched(world)
    world.clock.advance(timedelta(days=1))
    world.sweep()
    assert [each.name for each in world.objects.listing(LEDGER, "started/")] != []
    world.clock.advance(timedelta(days=1))
    world.sweep()
    assert [each.name for each in world.objects.listing(LEDGER, "started/")] == []
