"""What a reconcile pass costs: with many active runs, and beside 100 and beside 100,000 finished runs.

python bench/reconcile_cost.py [--active 50] [--passes 30] [--watched 600]

First the calls of Vertex AI and the storage operations of a pass over 600 runs that train in two regions, of which a
tenth are tunings: with a list for each region, and with a read of each job, as before lists were used. Then the deployed reconcile pass on the in-memory adapters. The records of the finished runs are copies of one that the flow
itself ended. Passes beside both are timed in turns, and the medians compared; the exit status says whether the
larger ledger costs the same operations, and a tenth more or less of time at most, and the lists at most ten calls.
"""

import argparse
import gc
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # run as a file, from anywhere

from tests.contract.boundaries import CountedJobs  # noqa: E402
from tests.contract.watched import MINUTE, watched  # noqa: E402
from tests.contract.world import LEDGER, Boundary, World  # noqa: E402
from trainmaster.orchestrator.core.job_names import JobKind  # noqa: E402
from trainmaster.orchestrator.core.runs.job import Job  # noqa: E402
from trainmaster.orchestrator.core.sizes import MAX_RECORD_BYTES  # noqa: E402

FINISHED = (100, 100_000)
LIMIT = 0.10
CALLS_MAX = 10


class UnlistedJobs(CountedJobs):
    """Lists that lack every job: each is read singly."""

    def active(self, kind: JobKind, region: str) -> Sequence[Job]:  # noqa: ARG002 - none is listed
        return ()


def watch(jobs_type: type[CountedJobs], runs: int) -> tuple[int, int]:
    """The calls of Vertex AI, and the storage operations, of a pass over that many running jobs."""
    world, jobs = watched(runs - runs // 10, runs // 10, jobs_type)
    world.clock.advance(MINUTE)
    calls = operations(world)
    vertex = ("read job", "list jobs")
    return jobs.calls.total(), sum(count for name, count in calls.items() if name not in vertex)


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
    parser.add_argument("--watched", type=int, default=600, help="runs that train in two regions")
    asked = parser.parse_args()
    print(f"{'running':>10}  {'watched by':>14}  {'calls of Vertex AI':>18}  {'operations':>10}")
    for name, jobs_type in (("single reads", UnlistedJobs), ("lists", CountedJobs)):
        vertex_calls, stored = watch(jobs_type, asked.watched)
        print(f"{asked.watched:>10,}  {name:>14}  {vertex_calls:>18}  {stored:>10}")
    few = vertex_calls <= CALLS_MAX
    print(f"limit {CALLS_MAX} calls a minute: {'kept' if few else 'broken'}\n")
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
    return 0 if kept and few else 1


if __name__ == "__main__":
    sys.exit(main())
