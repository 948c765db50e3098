"""Bucket, name and generation alone identify the run of an upload, whatever else an event about it says."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tests.contract.index import index_rows
from tests.contract.world import INBOX, OBJECT, REQUEST, START, Boundary, World
from tests.narrowing import present
from trainmaster.orchestrator.core.errors import LeaseHeld, RecordMoved
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take_upload

FORGED = START - timedelta(days=400)


def forged(
    world: World, incoming: IncomingDocument, created_at: datetime = FORGED, size_bytes: int = 9
) -> IncomingDocument:
    """Another event about the same generation."""
    generation = present(incoming.source.generation)
    other = world.uploaded(OBJECT, generation, size_bytes, created_at)
    assert other.run_id != incoming.run_id
    return other


def runs(world: World) -> list[str]:
    return [row.run_id for row in index_rows(world.objects)]


def test_of_many_events_with_different_times_at_once_one_starts_a_run(world: World) -> None:
    incoming = world.drop()
    events = [incoming, *(forged(world, incoming, FORGED + timedelta(hours=hour)) for hour in range(15))]

    def deliver(event: IncomingDocument) -> None:
        with suppress(LeaseHeld, RecordMoved):
            world.launch(event)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(deliver, events))
    assert runs(world) == [incoming.run_id]
    assert len(world.jobs.all()) == 1


def test_a_forged_event_costs_no_more_than_a_duplicate(world: World) -> None:
    incoming = world.drop_and_launch()
    boundary = Boundary()
    world.launch(forged(world, incoming), boundary)
    assert boundary.calls == ["read ledger", "read ledger"]


def test_a_forged_event_about_a_deleted_file_finds_the_run_by_its_status(world: World) -> None:
    incoming = world.drop_and_launch()
    world.objects.delete(INBOX, OBJECT)
    world.launch(forged(world, incoming))
    assert runs(world) == [incoming.run_id]
    assert world.document(f"status/{OBJECT}.json")["state"] == RunState.SUBMITTED


def test_a_file_that_was_deleted_before_its_first_event_is_rejected(world: World) -> None:
    incoming = world.drop()
    world.objects.delete(INBOX, OBJECT)
    world.launch(incoming)
    world.launch(incoming)
    assert world.record(incoming.run_id).state is RunState.REJECTED
    assert len(runs(world)) == 1


def test_a_forged_size_neither_refuses_a_request_nor_lets_a_huge_one_be_read(world: World) -> None:
    sound = world.drop()
    world.launch(forged(world, sound, size_bytes=10**9))
    assert world.record(sound.run_id).state is RunState.SUBMITTED
    huge = world.drop(REQUEST + bytes(2_000_000))
    boundary = Boundary()
    world.launch(forged(world, huge, size_bytes=1), boundary)
    assert world.record(huge.run_id).state is RunState.REJECTED
    assert "read inbox" not in boundary.calls


@pytest.mark.parametrize(
    "change",
    [
        {"metageneration": "7"},
        {"metageneration": "-1"},
        {"generation": "01"},
        {"generation": 1},
        {"timeCreated": "9999-12-31T23:59:59Z"},
        {"id": "inbox/requests/other.yaml/2", "updated": "2020-01-01T00:00:00Z", "etag": "x"},
        {
            "name": None
        },  # a background event or a replayed dead letter, which name the object in their subject
    ],
)
def test_no_other_field_or_form_of_an_event_leads_to_a_second_run(change: dict[str, object]) -> None:
    world = World()
    incoming = world.drop_and_launch()
    generation = incoming.source.generation
    data = {"bucket": INBOX, "name": OBJECT, "generation": str(generation), "size": "9", **change}
    envelope = replace(world.envelope(data), id="other", subject=f"objects/{OBJECT}#{generation}")
    list(take_upload(world.services(), envelope))
    assert runs(world) == [incoming.run_id]
    assert len(world.jobs.all()) == 1
