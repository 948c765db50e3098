"""Listings of the ledger and of jobs end at a limit: what lies beyond it is continued, reported or refused, never lost."""

from datetime import timedelta

import pytest

from tests.contract.boundaries import CountedObjects
from tests.contract.rooms import Room, ends, going, launched, places
from tests.contract.submissions import submission
from tests.contract.world import LEDGER, REGION, World
from trainmaster.orchestrator.adapters import vertex as vertex_adapter
from trainmaster.orchestrator.adapters.vertex import VertexJobs
from trainmaster.orchestrator.core.errors import ServiceFailed
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import marker_object
from trainmaster.orchestrator.flows.scheduled import take_tick
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores import admission, ledger


def test_a_pass_knows_the_head_of_a_long_queue_and_others_move_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "PLACES_MAX", 2)
    world = World()
    room = Room(world, 0)
    runs = [launched(world) for _ in range(5)]
    waiting = list(world.objects.listing(LEDGER, "waiting/"))
    assert (len(waiting), places(world)) == (5, runs[:2])
    room.places = 1
    world.clock.advance(timedelta(minutes=11))
    results = world.reconcile()
    assert [each.severity for each in results if "runs wait: this pass knows only" in each.message] == [
        "WARNING"
    ]
    assert not any("added it again" in each.message for each in results)
    assert [each for each in world.objects.listing(LEDGER, "waiting/") if each in waiting] == waiting[2:]
    for run_id in runs[:4]:
        assert going(world) == [run_id]
        ends(world, run_id)
    assert going(world) == runs[4:]


def test_a_lost_place_at_the_head_of_a_long_queue_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "PLACES_MAX", 2)
    world = World()
    Room(world, 0)
    runs = [launched(world) for _ in range(4)]
    lost = next(each.name for each in world.objects.listing(LEDGER, "waiting/") if runs[0] in each.name)
    world.objects.delete(LEDGER, lost)
    world.reconcile_after(timedelta(minutes=3))
    assert places(world) == runs[:2]


def test_a_tick_takes_the_first_active_runs_and_reports_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ACTIVE_MAX", 3)
    world = World()
    world.objects = objects = CountedObjects(world.clock)
    for number in range(9):
        objects.write(LEDGER, marker_object(f"m-20260301t120000-{number:010}"), b"", if_generation=0)
    services = world.services()
    behind = [each for each in take_tick(services) if each.event is LogEvent.RECONCILE_BEHIND]
    assert [each.severity for each in behind] == ["WARNING"]
    assert "are active: this tick knows the first" in behind[0].message
    markers, has_more = services.ledger.active()
    assert (len(markers), has_more) == (3, True)


def test_too_many_jobs_with_a_runs_label_are_an_error(
    vertex: VertexJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vertex_adapter, "JOBS_OF_RUN_MAX", 2)
    asked = submission()
    names = [vertex.submit(asked).name for _ in range(2)]
    assert [job.name for job in vertex.of_run(asked.run_id, JobKind.CUSTOM, [REGION])] == names
    vertex.submit(asked)
    with pytest.raises(ServiceFailed, match="delete the jobs of other programs with this label"):
        vertex.of_run(asked.run_id, JobKind.CUSTOM, [REGION])
