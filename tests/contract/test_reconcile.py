"""The reconciler has a time limit, and every active run gets its turn."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from tests.contract.boundaries import At
from tests.contract.data_stream import MeteredObjects
from tests.contract.world import LEDGER, REQUEST, Boundary, World
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.sizes import MIB
from trainmaster.orchestrator.stores.attempts import Traces

Answer = TypeVar("Answer")


def slow_reads(world: World) -> Boundary:
    """Reading a job takes half a minute."""
    return At("read job", before=lambda: world.clock.advance(timedelta(seconds=15)))


def launched(world: World, runs: int) -> list[str]:
    """The runs, a second apart; their names fall while their ages rise."""
    made = []
    for number in range(runs):
        incoming = world.drop_and_launch(name=f"requests/{chr(ord('z') - number)}.yaml")
        world.clock.advance(timedelta(seconds=1))
        made.append(incoming.run_id)
    return made


def ended(world: World, runs: list[str]) -> list[bool]:
    return [world.record(run_id).state is RunState.SUCCEEDED for run_id in runs]


def test_a_reconcile_pass_without_time_for_all_takes_the_oldest_and_says_how_many_are_left() -> None:
    world = World()
    runs = launched(world, 6)
    for run_id in runs:
        world.train(world.record(run_id))
    told = world.reconcile(slow_reads(world))  # a minute, of a quarter of a minute each
    assert ended(world, runs) == [True, True, True, True, False, False]
    assert told[-1].message == "out of time with 2 of 6 active runs left; the next pass continues with them"
    assert told[-1].severity == "WARNING"
    world.reconcile(slow_reads(world))
    assert all(ended(world, runs))
    assert world.active() == []


def test_runs_that_keep_running_block_no_other(world: World) -> None:
    runs = launched(world, 7)
    world.train(world.record(runs[-1]))
    world.reconcile(slow_reads(world))
    assert ended(world, runs)[-1] is False
    world.reconcile(slow_reads(world))
    assert ended(world, runs)[-1] is True


def test_a_complete_reconcile_pass_is_followed_by_one_from_the_oldest_run(world: World) -> None:
    runs = launched(world, 6)
    world.reconcile(slow_reads(world))
    world.reconcile()
    assert world.services().attempts.read() == Traces()
    world.train(world.record(runs[0]))
    assert world.reconcile()[0].run_id == runs[0]


def test_a_place_that_cannot_be_read_costs_no_run_its_turn(world: World) -> None:
    runs = launched(world, 3)
    odd = {"runs": "zzz", "attempts": "many"}
    for name in ("ticks/places", "ticks/attempts/runs/odd"):
        world.objects.write(LEDGER, name, b"", if_generation=None, metadata=odd)
    for run_id in runs:
        world.train(world.record(run_id))
    world.reconcile()
    assert all(ended(world, runs))


def test_a_reconcile_pass_costs_the_same_operations_however_many_runs_have_ended() -> None:
    def cost(finished: int) -> dict[tuple[str, str], int]:
        world = World()
        objects = MeteredObjects(world.clock)
        world.objects = objects
        launched(world, 3)
        for number in range(finished):
            objects.write(LEDGER, f"runs/finished-{number}.json", b"{}", if_generation=0)
        objects.meter.operations.clear()
        world.reconcile()
        return dict(objects.meter.operations)

    assert cost(0) == cost(5000)
    assert cost(0)["list", "active"] == 1


def test_a_report_beside_a_run_that_another_attempt_accepted_is_removed(world: World) -> None:
    """One attempt finds the file gone; another had read it before."""
    dropped = world.drop()  # its event has no checksum: the file counts as overwritten with something else
    incoming = world.uploaded("requests/cassava.yaml", dropped.source.generation or 0, len(REQUEST))

    class GoneAtTheRead(Boundary):
        def cross(self, name: str, call: Callable[[], Answer]) -> Answer:
            if name == "write active":
                world.launch(incoming)
            if name != "read inbox":
                return super().cross(name, call)
            content = world.objects.read("inbox", "requests/cassava.yaml", max_bytes=MIB).content
            world.objects.delete("inbox", "requests/cassava.yaml")
            try:
                return super().cross(name, call)
            finally:
                restored(content)

    def restored(content: bytes) -> None:
        # The same generation as before: the other attempt had read it already.
        world.objects._generation = (incoming.source.generation or 0) - 1
        world.objects.write("inbox", "requests/cassava.yaml", content, if_generation=None)
        world.objects._generation += 100

    world.launch(incoming, GoneAtTheRead())
    assert world.record(incoming.run_id).state is RunState.SUBMITTED
    names = [listed.name for listed in world.objects.listing(LEDGER, "rejected/")]
    assert names == []
