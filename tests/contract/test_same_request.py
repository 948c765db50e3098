"""What people's tools do with a file starts a second run only where that is meant."""

import pytest

from tests.contract.boundaries import At
from tests.contract.index import index_rows
from tests.contract.world import INBOX, OBJECT, REQUEST, World
from trainmaster.orchestrator.core.runs.states import RunState


def states(world: World) -> list[str]:
    """Of every run, rejected ones included."""
    return [row.state for row in index_rows(world.objects)]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_saves_of_the_same_bytes_before_the_first_is_read_are_one_request(order: tuple[int, ...]) -> None:
    world = World()
    saves = [world.drop() for _ in range(3)]
    for number in order:
        world.launch(saves[number])
    world.reconcile()
    assert states(world) == [RunState.SUBMITTED]
    assert world.record(saves[2].run_id).state is RunState.SUBMITTED
    assert {notice.data["state"] for notice in world.notices.published} == {"reserved", "submitted"}


def test_a_save_of_the_same_bytes_between_the_description_and_the_download_is_the_same_request() -> None:
    world = World()
    incoming = world.drop()
    result = world.launch(incoming, At("read inbox", before=world.drop))
    assert "overwritten with the same content" in result.message
    assert states(world) == []


@pytest.mark.parametrize("newer", [REQUEST + b"# changed\n", REQUEST[:-1] + b" "])
def test_a_save_of_other_bytes_before_the_first_is_read_is_reported(newer: bytes) -> None:
    world = World()
    first, second = world.drop(), world.drop(newer)
    world.launch(first)
    world.launch(second)
    assert sorted(states(world)) == [RunState.REJECTED, RunState.SUBMITTED]
    assert "overwritten" in world.record(first.run_id).problems[0]


def test_an_overwritten_file_whose_event_has_no_checksum_is_reported() -> None:
    world = World()
    first = world.drop()
    world.drop()
    world.launch(world.uploaded(OBJECT, first.source.generation or 0, len(REQUEST)))
    assert states(world) == [RunState.REJECTED]


def test_the_event_of_a_run_finds_it_after_the_same_bytes_were_saved_again() -> None:
    world = World()
    first = world.drop_and_launch()
    world.drop(REQUEST + b"# changed\n")
    world.objects.delete("ledger", f"status/{OBJECT}.json")  # as if its process had crashed
    assert world.launch(first).run_id == first.run_id
    assert states(world) == [RunState.SUBMITTED]
    assert world.objects.describe(INBOX, OBJECT).size_bytes > len(REQUEST)
