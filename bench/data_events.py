"""A burst of data events on the local stack: how fast each is handled, how often any object is written, what runs.

python bench/data_events.py [--events 10000] [--deliverers 8]

The events go over HTTP to the stack's own function, each on a separate connection, as Eventarc's front end
sends them, of a bucket that sends none itself; a rule over them waits for all of them, and a tick starts its run. Writes
are counted by the ledger bucket's own notifications. The last table is the simulation of tests/contract/data_stream.py.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # run as a file, from anywhere

from tests.contract.data_stream import MeteredWorld, Simulation  # noqa: E402
from tests.contract.retraining import SMALL, rule  # noqa: E402
from tests.e2e.data_events import data_event, post  # noqa: E402
from tests.e2e.project import Project, image_uri, running_project  # noqa: E402
from trainstack.events.clients import clients_of  # noqa: E402  # needs the line above
from trainstack.events.eventarc import ensure_notification  # noqa: E402

MEDIAN_MS, WRITES_PER_S, RUNS = 20.0, 2, 1
DEADLINE_S = 120


@dataclass(frozen=True, kw_only=True)
class Burst:
    """What a burst took: seconds of each event as its deliverer saw it, sorted, and of all together."""

    taken_s: Sequence[float]
    wall_s: float
    runs: int


def drop_rule(project: Project, events: int) -> None:
    request = {**SMALL, "model_name": "burst", "image": f"{image_uri(project.id)}:1"}
    watched = {"objects": f"gs://{project.id}-burst/burst/**", "min_objects": events, "quiet_s": 1}
    project.upload("rules/burst.json", json.dumps(rule({"new_data": watched}, request=request)))
    project.eventually(lambda: project.status("rules/burst.json"), "the rule is answered")


def deliver(project: Project, events: int, deliverers: int) -> Burst:
    """Every event once, by this number of concurrent deliverers; then the run that they start, and a tick more."""
    url, bucket = project.function_url("on-data-arrived"), f"{project.id}-burst"
    written = project.storage.create_bucket(bucket)

    def write(number: int) -> int:
        blob = written.blob(f"burst/{number:06d}.jpg")
        blob.upload_from_string(b"1")
        return int(blob.generation)

    def timed(number: int) -> float:
        event = data_event(bucket, f"burst/{number:06d}.jpg", generations[number], size_bytes=1)
        began = time.perf_counter()
        status = post(url, event)
        taken = time.perf_counter() - began
        if status != 200:
            raise RuntimeError(f"event {number} was answered {status}")
        return taken

    with ThreadPoolExecutor(deliverers) as pool:
        generations = list(pool.map(write, range(events)))
    for number in range(deliverers):  # the instance imports its libraries
        post(url, data_event(bucket, f"warm/{number}.jpg", number + 1))
    with ThreadPoolExecutor(deliverers) as pool:
        began = time.perf_counter()
        taken = sorted(pool.map(timed, range(events)))
        wall_s = time.perf_counter() - began
    project.eventually(lambda: runs(project), "the burst starts a run", deadline_s=DEADLINE_S)
    ticks = ticks_seen(project)
    project.eventually(lambda: ticks_seen(project) > ticks + 1, "ticks after the run", deadline_s=DEADLINE_S)
    return Burst(taken_s=taken, wall_s=wall_s, runs=len(runs(project)))


def runs(project: Project) -> list[dict[str, Any]]:
    return [record for record in project.records().values() if record["source"]["kind"] == "rule"]


def ticks_seen(project: Project) -> int:
    name = f"projects/{project.id}/logs/run.googleapis.com%2Frequests"
    entries = project.logging.list_entries(
        filter_=f'logName="{name}" AND resource.labels.service_name="on-tick"'
    )
    return sum(1 for _ in entries)


@contextmanager
def ledger_writes(project: Project) -> Iterator[Counter[tuple[str, str]]]:
    """Writes by object and second, filled when the block ends, from the bucket's notifications."""
    topic = f"projects/{project.id}/topics/bench-ledger"
    subscription = f"projects/{project.id}/subscriptions/bench-ledger"
    counted: Counter[tuple[str, str]] = Counter()
    with clients_of(project.env["PUBSUB_EMULATOR_HOST"]) as clients:
        clients.publisher.create_topic(name=topic)
        clients.subscriber.create_subscription(name=subscription, topic=topic)
        ensure_notification(project.env["STORAGE_EMULATOR_HOST"], project.ledger, topic)
        yield counted
        project.storage.bucket(project.ledger).blob("bench/last").upload_from_string(b"")
        while not any(name == "bench/last" for name, _ in counted):
            pulled = clients.subscriber.pull(subscription=subscription, max_messages=1000, timeout=30)
            for each in pulled.received_messages:
                attributes = each.message.attributes
                counted[attributes["objectId"], attributes["eventTime"][:19]] += 1
            acknowledged = [each.ack_id for each in pulled.received_messages]
            if acknowledged:
                clients.subscriber.acknowledge(subscription=subscription, ack_ids=acknowledged)


def timed_burst(folder: Path, events: int, deliverers: int) -> bool:
    with running_project(folder / "timed", "--tick-s", "10", project="bench-data") as project:
        drop_rule(project, events)
        with ledger_writes(project) as writes:
            burst = deliver(project, events, deliverers)
    median_ms, most = 1000 * statistics.median(burst.taken_s), max(writes.values())
    batches = len({name for name, _ in writes if name.startswith("arrivals/")})
    busiest = next(name for (name, _), count in writes.items() if count == most)
    print(
        f"events                          {events:>8}   from {deliverers} deliverers, {events / burst.wall_s:.0f} a second"
    )
    print(f"runs started                    {burst.runs:>8}   limit {RUNS}")
    print(f"writes of one object a second   {most:>8}   limit {WRITES_PER_S}; {busiest.partition('/')[0]}/")
    print(f"batches written                 {batches:>8}   {events / batches:.1f} events each")
    print(f"median handling                 {median_ms:>5.1f} ms   limit {MEDIAN_MS:.0f} ms")
    print(f"99th percentile                 {1000 * burst.taken_s[math.ceil(0.99 * events) - 1]:>5.1f} ms")
    return burst.runs == RUNS and most <= WRITES_PER_S and median_ms < MEDIAN_MS


def simulated(seconds: int) -> None:
    print(f"\nsimulation: 1000 events a second for {seconds} s, a tick a minute")
    print("instances   operations of an event   most writes of one name a second   runs")
    for instances in (1, 2, 4, 8):
        world = MeteredWorld()
        watched = {"new_data": {"objects": "gs://data-1/stream/**", "min_objects": 1000, "quiet_s": 60}}
        world.drop_rule(rule(watched, request=SMALL))
        world.wait(1)
        simulation = Simulation(world=world, events_per_s=1000, seconds=seconds, instances=instances)
        simulation.run()
        operations = sum(world.meter.operations.values()) / simulation.events
        most = world.meter.most_writes_in_a_second
        print(f"{instances:>9}   {operations:>22.3f}   {most:>33}   {len(world.records()):>4}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--deliverers", type=int, default=8)
    parser.add_argument("--simulated", type=int, default=180, help="seconds that are simulated")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        kept = timed_burst(Path(name), arguments.events, arguments.deliverers)
    simulated(arguments.simulated)
    print("Every limit is kept." if kept else "A limit is NOT kept.")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
