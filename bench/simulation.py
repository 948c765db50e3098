"""A million events with faults at a few percent: `python bench/simulation.py --events 1000000 --seed 1`.

The flows are the real ones, on the adapters in memory and a virtual clock. Users drop files and publish
messages, and jobs train and end. Log entries and notices arrive late, twice, out of order or never. Processes
crash before, after and during any call, services fail before and after a call takes effect, and paused
deliveries interleave. Each simulation is drawn from the seed and its number: `--only N` repeats a single one.
Exits with 1 if any guarantee of docs/explanation/guarantees.md was broken.
"""

import argparse
import hashlib
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # run as a file, from anywhere

from tests.contract.simulation.guarantees import simulate  # noqa: E402
from tests.contract.simulation.odds import Odds  # noqa: E402  # needs the line above
from tests.contract.simulation.tally import Tally  # noqa: E402

LIMIT_S = 600
EVENTS_PER_SIMULATION = 25_000
SHOWN = 20


def simulate_one(number: int, *, seed: int, events: int, beyond_lease: float) -> tuple[int, Tally]:
    return number, simulate(seed=f"{seed}/{number}", events=events, odds=Odds(beyond_lease=beyond_lease))


def simulations(arguments: argparse.Namespace, numbers: range) -> Iterator[tuple[int, Tally]]:
    events = min(arguments.events, EVENTS_PER_SIMULATION)
    run = partial(simulate_one, seed=arguments.seed, events=events, beyond_lease=arguments.beyond_lease)
    if arguments.processes == 1 or len(numbers) == 1:
        yield from map(run, numbers)
        return
    with multiprocessing.get_context("spawn").Pool(arguments.processes, maxtasksperchild=4) as pool:
        yield from pool.imap(run, numbers)


def table(title: str, counts: Mapping[str, int], per: int) -> None:
    print(f"\n{title}")
    for name, count in sorted(counts.items(), key=lambda item: -item[1]):
        print(f"  {name:<34} {count:>10,} {count / max(per, 1):>8.2%}")


def report(tally: Tally, seconds: float, broken: Mapping[int, int]) -> bool:
    for title, counts, per in (
        ("deliveries", tally.deliveries, tally.events),
        ("redelivered, as they were not acknowledged", tally.redelivered, tally.events),
        ("events sent twice", tally.duplicated, tally.events),
        ("events that were lost", tally.dropped, tally.events),
        ("disruptions", tally.disruptions, tally.events),
        ("the service's answers to submissions", tally.submissions, tally.submissions.total()),
        ("ends of runs", tally.ends, tally.runs),
        ("lengths of waits", tally.waits, tally.waits.total()),
        ("the candidate that a run's job used", tally.candidates, tally.candidates.total()),
    ):
        table(title, counts, per)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    memory_mib = max(children.ru_maxrss, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024
    print(f"\nevents                   {tally.events:>12,}")
    print(f"runs                     {tally.runs:>12,}   of {tally.requests:,} requests")
    print(f"jobs                     {tally.jobs:>12,}")
    print(f"jobs without capacity    {tally.stockouts:>12,}   each gave its run another round")
    print(
        f"of them not started      {tally.given_up:>12,}   by their deadline; {tally.kept} more started in time"
    )
    print(f"jobs lost and retried    {tally.retries:>12,}   each gave its run another round")
    print(f"refused by caps          {tally.refused_by_caps:>12,}")
    print(f"duplicate jobs           {tally.duplicate_jobs:>12,}   limit 0, unless --beyond-lease")
    print(f"lost requests            {tally.lost:>12,}   limit 0")
    print(f"unfinished records       {tally.unfinished:>12,}   limit 0")
    print(f"broken guarantees        {len(tally.violations):>12,}   limit 0")
    print(f"storage operations       {tally.storage_operations / tally.events:>12.2f}   of an event")
    print(f"disruptions              {tally.disruptions.total() / tally.events:>12.2%}   of events")
    print(
        f"seconds                  {seconds:>12.1f}   limit {LIMIT_S}; {tally.events / seconds:,.0f} events a second"
    )
    print(f"memory of a process      {memory_mib:>8.0f} MiB")
    print(f"fingerprint              {fingerprint(tally)}   the same for the same events and seed")
    for number, count in sorted(broken.items()):
        print(f"simulation {number} broke {count} guarantees; repeat it with --only {number}")
    for violation in tally.violations[:SHOWN]:
        print(f"  {violation}")
    return not tally.violations and seconds < LIMIT_S


def fingerprint(tally: Tally) -> str:
    counts = [tally.deliveries, tally.disruptions, tally.operations, tally.submissions, tally.ends]
    return hashlib.sha256(repr([sorted(each.items()) for each in counts]).encode()).hexdigest()[:12]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run only the simulation of this number")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--beyond-lease",
        type=float,
        default=0.0,
        help="share of pauses after which a process continues although its lease has expired, 0 to 1",
    )
    arguments = parser.parse_args()
    count = -(-arguments.events // EVENTS_PER_SIMULATION)
    numbers = range(count) if arguments.only is None else range(arguments.only, arguments.only + 1)
    print(
        f"{len(numbers)} simulations of {min(arguments.events, EVENTS_PER_SIMULATION):,} events, seed {arguments.seed}"
    )
    began, tally, broken = time.perf_counter(), Tally(), Counter[int]()
    for number, account in simulations(arguments, numbers):
        tally.add(account)
        if account.violations:
            broken[number] = len(account.violations)
    return 0 if report(tally, time.perf_counter() - began, broken) else 1


if __name__ == "__main__":
    sys.exit(main())
