"""What a reconcile pass costs beside 100 and beside 100,000 finished runs: storage operations, and time.

python bench/reconcile_cost.py [--active 50] [--passes 30]

The deployed reconcile pass on the in-memory adapters. The records of the finished runs are copies of one that the flow
itself ended. Passes beside both are timed in turns, and the medians compared; the exit status says whether the
larger ledger costs the same operations, and a tenth more or less of time at most.
"""

import argparse
import gc
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # run as a file, from anywhere

from tests.contract.world import LEDGER, Boundary, World  # noqa: E402
from trainmaster.orchestrator.core.sizes import MAX_RECORD_BYTES  # noqa: E402

FINISHED = (100, 100_000)
LIMIT = 0.10


def world_with(active: int, finished: int) -> World:
    """A deployment with given numbers of active and ended runs."""
    world = World()
    incoming = world.drop(name="requests/finished.yaml")
    world.launch(incoming)
    world.train(world.record(incoming.run_id))
    world.reconcile()
    record = world.objects.read(LEDGER, f"runs/{incoming.run_id}.json", max_bytes=MAX_RECORD_BYTES).content
    for number in range(finished - 1):
        world.objects.write(LEDGER, f"runs/finished-{number}.json", record, if_generation=0)
    for number in range(active):
        world.launch(world.drop(name=f"requests/active-{number}.yaml"))
    return world


def operations(world: World) -> Counter[str]:
    boundary = Boundary()
    world.reconcile(boundary)
    return Counter(boundary.calls)


def seconds_of(world: World) -> float:
    began = time.perf_counter()
    world.reconcile()
    return time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--active", type=int, default=50, help="active runs")
    parser.add_argument(
        "--passes", type=int, default=30, help="timed passes beside each number of finished runs"
    )
    asked = parser.parse_args()
    worlds = [world_with(asked.active, finished) for finished in FINISHED]
    counted = [operations(world) for world in worlds]
    gc.collect()
    gc.freeze()  # a collection of 100,000 records' objects would be timed otherwise
    timed = list(zip(*([seconds_of(world) for world in worlds] for _ in range(asked.passes)), strict=True))
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
