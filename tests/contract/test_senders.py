"""Who sent a request, and from which commit: in the record of its run and in the index."""

from datetime import timedelta

import pytest

from tests.contract.index import index_rows
from tests.contract.world import World
from trainmaster.orchestrator.core.runs.sender import Commit, Sender, Surety

COMMIT = "04889a2c9d3b6c1f0e7a5d4c3b2a190817263544"


@pytest.fixture
def world() -> World:
    return World()


def test_the_sender_of_an_upload_is_in_its_record_and_its_row(world: World) -> None:
    incoming = world.drop(account="anna@example.com", commit=COMMIT, branch="main", dirty="true")
    world.launch(incoming)
    source = world.record(incoming.run_id).source
    assert source.sent_by == Sender(name="anna@example.com", by=Surety.CREDENTIALS)
    assert source.commit == Commit(id=COMMIT, branch="main", dirty=True)
    (row,) = index_rows(world.objects)
    assert (row.sent_by, row.commit, row.dirty) == ("anna@example.com", COMMIT, True)


def test_a_request_that_the_service_refuses_has_its_sender_too(world: World) -> None:
    incoming = world.drop(b"imgae: x", by="anna")
    world.launch(incoming)
    record = world.record(incoming.run_id)
    assert (record.state, record.source.sent_by) == ("rejected", Sender(name="anna", by=Surety.CLAIM))


def test_what_the_object_says_counts_not_what_the_event_says(world: World) -> None:
    """A late event of an older generation is not believed about the newer one."""
    first = world.drop(by="anna")
    world.clock.advance(timedelta(minutes=5))
    second = world.drop(by="ben")
    world.launch(second)
    world.launch(first)
    assert world.record(second.run_id).source.sent_by == Sender(name="ben", by=Surety.CLAIM)
