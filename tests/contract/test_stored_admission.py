"""Queue, slots and starts over every object store: in memory, and Cloud Storage's client against the emulator."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.contract.world import START
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.queue import Place
from trainmaster.orchestrator.core.errors import GenerationMoved
from trainmaster.orchestrator.core.names import held_slot
from trainmaster.orchestrator.ports.objects import Objects
from trainmaster.orchestrator.stores.admission import Queue, Slots, Starts


def place(run_id: str, priority: int = 50, seconds: float = 0) -> Place:
    return Place(
        run_id=run_id,
        region="us-central1",
        priority=priority,
        arrived_at=START + timedelta(seconds=seconds),
        classes=("us-central1_n1_cpu", "europe-west4_n1_cpu"),
        not_before=START + timedelta(seconds=30),
        limits=("model.cassava", "label.team.blue"),
        rate_limited=priority == 0,
        blocked_on_limit="model.cassava" if priority == 100 else None,
    )


def test_places_come_back_as_they_were_those_that_go_first_first(objects: Objects, bucket: str) -> None:
    queue = Queue(objects, bucket)
    put = [place("a", 100), place("b-1-c", 50, 0.000001), place("c", 50, 2), place("d", 9), place("e", 0)]
    for each in reversed(put):
        queue.put(each)
    assert list(queue.places()[0]) == put
    queue.remove(put[0])
    queue.remove(put[0])
    assert list(queue.places()[0]) == put[1:]


def test_a_slot_has_one_holder_however_many_want_it(objects: Objects, bucket: str) -> None:
    slots = Slots(objects, bucket)

    def take(number: int) -> bool:
        try:
            slots.take("all", 0, f"run-{number}")
        except GenerationMoved:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(8))) == 1
    (slot,) = slots.taken_slots("all")
    held = slots.take("all", 0, "heir", instead_of=slot)
    with pytest.raises(GenerationMoved):
        slots.take("all", 0, "late", instead_of=slot)
    slots.free(held_slot(slot.name, slot.version))
    assert [each.holder for each in slots.taken_slots("all")] == ["heir"]
    (slot,) = slots.taken_slots("all")
    assert held == held_slot(slot.name, slot.version)
    again = slots.take("all", 0, "heir", instead_of=slot)
    slots.free(held)
    assert [each.holder for each in slots.taken_slots("all")] == ["heir"], "the run's next job holds it"
    slots.free(again)
    slots.free(again)
    assert slots.taken_slots("all") == []


def test_limits_whose_names_begin_alike_have_separate_slots(objects: Objects, bucket: str) -> None:
    slots = Slots(objects, bucket)
    slots.take("model.a", 10, "run-1")
    slots.take("model.a", 9, "run-2")
    slots.take("model.ab", 0, "run-3")
    assert [each.name for each in slots.taken_slots("model.a")] == ["model.a/9", "model.a/10"]


def test_marks_are_counted_by_day_with_their_cost(objects: Objects, bucket: str) -> None:
    starts = Starts(objects, bucket)
    starts.mark("a", START, Decimal("12.50"))
    starts.mark("a", START, Decimal(99))
    starts.mark("b", START + timedelta(hours=3), None)
    starts.mark("c", START + timedelta(days=1), None)
    starts.settle("a", START, Decimal("0.25"))
    starts.settle("a", START, Decimal(0))
    found = starts.of_day(START.date())
    assert [(each.run_id, each.cost) for each in found] == [("a", Decimal("12.50")), ("b", None)]
    assert [each.end and each.end.cost for each in found] == [Decimal("0.25"), None]
    assert present(found[0].end).created_at >= found[0].created_at


def test_a_caps_notice_is_recorded(objects: Objects, bucket: str) -> None:
    starts = Starts(objects, bucket)
    window = "runs_per_hour/2026-03-01T12"
    assert not starts.was_notified(window)
    starts.keep_notified(window, {"window": window})
    starts.keep_notified(window, {"window": window})
    assert starts.was_notified(window)
