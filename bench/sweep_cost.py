"""What a sweep costs beside 100 and beside 100,000 finished runs: storage operations, and time.

python bench/sweep_cost.py [--active 50] [--sweeps 30]

The deployed sweep on the in-memory adapters. The records of the finished runs are copies of one that the flow
itself ended. Sweeps beside both are timed in turns, and the medians compared; the exit status says whether the
larger ledger costs the same operations, and a tenth more or less of time at most.
"""

import argparse
import gc
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "functions")]  # run as a file, from anywhere

from orchestrator.adapters.memory import ManualClock, MemoryObjects  # noqa: E402  # needs the line above
from orchestrator.adapters.objects import Listed  # noqa: E402
from tests.contract.world import LEDGER, Boundary, World  # noqa: E402

FINISHED = (100, 100_000)
LIMIT = 0.10


class FolderObjects(MemoryObjects):
    """Each top folder is a store of its own, as a prefix is a range of Cloud Storage's index.

    The in-memory buckets look at every object for a listing, which no service does.
    """

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self._names: dict[tuple[str, str], dict[str, None]] = {}

    def write(
        self,
        bucket: str,
        name: str,
        content: bytes,
        *,
        if_generation: int | None,
        metadata: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> int:
        written = super().write(
            bucket, name, content, if_generation=if_generation, metadata=metadata, content_type=content_type
        )
        self._names.setdefault((bucket, name.partition("/")[0]), {})[name] = None
        return written

    def delete(self, bucket: str, name: str) -> None:
        super().delete(bucket, name)
        self._names.get((bucket, name.partition("/")[0]), {}).pop(name, None)

    def listing(self, bucket: str, prefix: str) -> Iterator[Listed]:
        folder, slash, _ = prefix.partition("/")
        assert slash, f"a prefix within one top folder is wanted, not {prefix!r}"
        for name in sorted(self._names.get((bucket, folder), {})):
            if name.startswith(prefix):
                found = self._objects[bucket, name]
                yield Listed(
                    name=name,
                    generation=found.generation,
                    size_bytes=len(found.content),
                    created_at=found.created_at,
                )


def world_with(active: int, finished: int) -> World:
    """A deployment with so many runs that go on, and so many that have ended."""
    world = World()
    world.objects = FolderObjects(world.clock)
    arrival = world.drop(name="requests/finished.yaml")
    services = world.services()
    world.ledger = services.ledger  # type: ignore[assignment]  # the same kind, over the objects of above
    world.launch(arrival)
    world.train(world.record(arrival.run_id))
    world.sweep()
    record = world.objects.read(LEDGER, f"runs/{arrival.run_id}.json").content
    for number in range(finished - 1):
        world.objects.write(LEDGER, f"runs/finished-{number}.json", record, if_generation=0)
    for number in range(active):
        world.launch(world.drop(name=f"requests/active-{number}.yaml"))
    return world


def operations(world: World) -> Counter[str]:
    boundary = Boundary()
    world.sweep(boundary)
    return Counter(boundary.calls)


def seconds_of(world: World) -> float:
    began = time.perf_counter()
    world.sweep()
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--active", type=int, default=50, help="runs that go on")
    parser.add_argument(
        "--sweeps", type=int, default=30, help="timed sweeps beside each number of finished runs"
    )
    asked = parser.parse_args()
    worlds = [world_with(asked.active, finished) for finished in FINISHED]
    counted = [operations(world) for world in worlds]
    gc.collect()
    gc.freeze()  # a collection of 100,000 records' objects would be timed otherwise
    timed = list(zip(*([seconds_of(world) for world in worlds] for _ in range(asked.sweeps)), strict=True))
    medians = [statistics.median(each) for each in timed]
    print(f"{'finished':>10}  {'active':>6}  {'operations':>10}  {'median':>9}")
    for finished, calls, median in zip(FINISHED, counted, medians, strict=True):
        print(f"{finished:>10,}  {asked.active:>6}  {calls.total():>10}  {median * 1000:>6.2f} ms")
    ratio = medians[1] / medians[0]
    kept = counted[0] == counted[1] and abs(ratio - 1) <= LIMIT
    print(f"time {ratio:.3f} of the smaller ledger's, limit {1 - LIMIT:.2f} to {1 + LIMIT:.2f}: ", end="")
    print("kept" if kept else "broken")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
