"""A flood of uploads on the local stack, with duplicates and injections: what is lost, what is doubled, and how long each took.

python bench/upload_flood.py [--uploads 10000] [--deliverers 16] [--seed 7] [--plain]

Real: the functions as functions-framework processes, Cloud Storage, Pub/Sub, JobService, Cloud Logging and its
sink as the stack's emulators, the official clients between all of them, and every job's replica, a process.
Not real: what the replica does (a shell script that leaves a file that looks like a model), and the pauses of
redelivery, which are shorter than the cloud's. Every fiftieth upload is not a valid request.

One in ten events is delivered twice at the same time. One in twenty calls at every boundary has an injected fault:
refused, done without an answer, cut off, delayed, delivered twice, or its function killed. With --plain, none of this.
Exits with 1 when a run is lost, doubled or unfinished, or has two jobs.
"""

import argparse
import json
import math
import signal
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from bench.reckoning import STUB, Upload, count_files, reckoning, stub_request, stub_uri  # noqa: E402
from tests.e2e.project import Project, running_project  # noqa: E402  # needs the line above

PROJECT = "bench-flood"
TAKER = "on-request-uploaded"
TIMEOUT_S = 20  # of every function; a lease outlasts it by a minute
FAULTY_EVERY = 50
PROGRESS_S = 400
"""After this time without progress, missing runs count as lost: the longest pause of a run is a lease, or the tenth wait."""
QUIET_S = 10
"""Longer than the pauses of redelivery: after this time without an event, none is pending."""
SAMPLE_S = 5


def injection(name: str, at: str, kind: str, probability: float, **more: object) -> dict[str, object]:
    return {"name": name, "at": at, "kind": kind, "probability": probability, **more}


def plan(seed: int, *, plain: bool) -> dict[str, object]:
    """Only one that counts events and strikes none if `plain`; otherwise duplicates of one event in ten, and a twentieth of all calls struck."""
    if plain:
        return {"injections": [injection("twice", f"functions.{TAKER}", "duplicate", 0.0)]}
    ledger, inbox = "bench-flood-ledger/*", "bench-flood-inbox/requests/*"
    injections = [
        injection("twice", f"functions.{TAKER}", "duplicate", 0.10),
        injection("killed", "functions.*", "kill", 0.001, seconds=0.1, times=20),
        injection("untaken", "functions.*", "error_before", 0.02),
        injection("untold", "functions.*", "error_after", 0.02, code=500),
        injection("late", "functions.*", "delay", 0.01, seconds=0.5),
        injection("unread", "storage.objects.get", "error_before", 0.05, match=inbox),
        injection("ledger-refuses", "storage.*", "error_before", 0.02, match=ledger),
        injection("ledger-done-untold", "storage.*", "error_after", 0.02, match=ledger),
        injection("ledger-cut", "storage.*", "drop", 0.01, match=ledger),
        # Makes all runs of its kind wait until one ends, for none may overtake.
        injection("no-room", "vertex.*.create", "error_before", 0.005, code=429),
        injection("overloaded", "vertex.*.create", "error_before", 0.01),
        injection("job-untold", "vertex.*.create", "error_after", 0.02, code=500),
        injection("job-cut", "vertex.*.create", "drop", 0.01),
        injection("jobs-unread", "vertex.customJobs.[gl]*", "error_before", 0.05),
        injection("not-notified", "storage.notify", "error_before", 0.02, match=inbox),
        injection("notified-untold", "storage.notify", "error_after", 0.02, match=inbox),
        injection("notified-twice", "storage.notify", "duplicate", 0.01, match=inbox),
        injection("not-exported", "logging.export", "error_before", 0.02),
        injection("exported-untold", "logging.export", "error_after", 0.02),
        injection("export-lost", "logging.export", "drop", 0.01),
        injection("unpublished", "pubsub.publish", "error_before", 0.02),
        injection("published-untold", "pubsub.publish", "error_after", 0.03),
        injection("delivered-late", "pubsub.deliver", "delay", 0.02, seconds=2),
        injection("delivered-twice", "pubsub.deliver", "duplicate", 0.02),
        injection("delivered-behind", "pubsub.deliver", "reorder", 0.01, seconds=2),
    ]
    return {"seed": seed, "injections": injections}


def topology(folder: Path, deliverers: int) -> Path:
    """The project's own options, with this number of concurrent events, and a policy that permits a flood."""
    read = yaml.safe_load((ROOT / "trainmaster" / "deploy" / "topology.yaml").read_text())
    for function in read["functions"].values():
        function["timeout_s"] = TIMEOUT_S
    read["functions"][TAKER]["concurrency"] = deliverers
    policy = yaml.safe_load((ROOT / "functions" / "policy.yaml").read_text())
    policy.pop("admission", None)  # its caps are what would stop a flood
    (folder / "policy.yaml").write_text(yaml.safe_dump(policy))
    read["environment"]["TRAINMASTER_POLICY"] = str(folder / "policy.yaml")
    for sink in read["sinks"].values():
        sink["filter_file"] = str(ROOT / "trainmaster" / "deploy" / sink["filter_file"])
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump(read))
    return path


@dataclass(kw_only=True)
class Memory:
    """The most resident memory that all processes of each function had at once, in bytes."""

    most: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def sample(self, project: Project) -> None:
        now: Counter[str] = Counter()
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                if environment.get("CURL_HOME", "").startswith(f"{project.state.resolve()}/"):
                    now[environment.get("K_SERVICE", "")] += process.memory_info().rss
            except psutil.Error:
                continue
        for function, size in now.items():
            self.most[function] = max(self.most[function], size)


@dataclass(kw_only=True)
class Processor:
    """The processor time of every kind of process, in seconds.

    Replicas are all that the stack started and that has ended, with their sandboxes. What a killed function spent after
    the last sample is missing.
    """

    functions: dict[tuple[int, float], tuple[str, float]] = field(default_factory=dict)
    stack: tuple[float, float] = (0.0, 0.0)
    began: dict[str, float] = field(default_factory=dict)

    def sample(self, project: Project) -> None:
        of_stack = psutil.Process(project.process.pid).cpu_times()
        own, ended = of_stack.user + of_stack.system, of_stack.children_user + of_stack.children_system
        self.stack = own, ended
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                if environment.get("CURL_HOME", "").startswith(f"{project.state.resolve()}/"):
                    times = process.cpu_times()
                    seen = environment.get("K_SERVICE", ""), times.user + times.system
                    self.functions[process.pid, process.create_time()] = seen
            except psutil.Error:
                continue
        self.began = self.began or self._totals()

    def spent(self) -> dict[str, float]:
        """Since the first sample."""
        return {kind: spent - self.began.get(kind, 0.0) for kind, spent in self._totals().items()}

    def _totals(self) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        found["stack's services"], found["replicas"] = self.stack
        for function, spent in self.functions.values():
            found[function or "others"] += spent
        return found


@contextmanager
def watched(project: Project) -> Iterator[tuple[Memory, Processor]]:
    memory, processor, over = Memory(), Processor(), threading.Event()

    def watch() -> None:
        while not over.wait(SAMPLE_S):
            memory.sample(project)
            processor.sample(project)

    processor.sample(project)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield memory, processor
    finally:
        over.set()
        thread.join()


def uploaded(project: Project, count: int, uploaders: int) -> list[Upload]:
    sound = stub_request(project.id)

    def upload(number: int) -> Upload:
        name = f"requests/flood-{number:06d}.json"
        is_faulty = number % FAULTY_EVERY == FAULTY_EVERY - 1
        generation = project.upload(name, sound[: len(sound) // 2] if is_faulty else sound)
        return Upload(name=name, generation=generation, ends=("rejected" if is_faulty else "succeeded",))

    with ThreadPoolExecutor(uploaders) as pool:
        return list(pool.map(upload, range(count)))


def until_all_ended(project: Project, count: int) -> None:
    """Return when every upload is on record and no run is active, or when nothing more moves."""
    last, since = (-1, -1), time.monotonic()
    while True:
        now = count_files(project, "runs"), count_files(project, "active")
        if now == (count, 0):
            return
        if now != last:
            last, since = now, time.monotonic()
            print(
                f"  {now[0]:>6} on record, {now[1]:>6} of them active", end="\r", file=sys.stderr, flush=True
            )
        if time.monotonic() - since > PROGRESS_S:
            return
        time.sleep(1)


def until_quiet(project: Project) -> None:
    """Return when no event has reached the taker for a while: no redelivery is out that could start anything."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < QUIET_S:
        now = accounts(project)["twice"]["asked"]  # the first of the injections there: asked of every event
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(2)


def answers(project: Project) -> list[tuple[int, float]]:
    """Status and seconds of everything brought to the taker, from the platform's request log."""
    name = f"projects/{project.id}/logs/run.googleapis.com%2Frequests"
    found = project.logging.list_entries(
        filter_=f'logName="{name}" AND resource.labels.service_name="{TAKER}"', page_size=1000
    )
    return [(each.http_request["status"], float(each.http_request["latency"].rstrip("s"))) for each in found]


def accounts(project: Project) -> Mapping[str, Mapping[str, Any]]:
    with urllib.request.urlopen(injections_url(project)) as answer:
        return {each["name"]: each for each in json.load(answer)["injections"]}


def accounts_at_the_end(project: Project) -> Mapping[str, Mapping[str, Any]]:
    """The same, with every injection removed: the final count must not be struck."""
    found = accounts(project)
    urllib.request.urlopen(urllib.request.Request(injections_url(project), method="DELETE")).close()
    return found


def injections_url(project: Project) -> str:
    return f"{project.env['STORAGE_EMULATOR_HOST']}/emulator/v1/injections"


def shown_accounts(found: Mapping[str, Mapping[str, Any]]) -> None:
    print(f"\n{'injection':<20}{'struck':>8} of {'asked':>8}")
    for name, each in found.items():
        print(f"{name:<20}{each['struck']:>8}    {each['asked']:>8}")


def shown_times(all_answers: Sequence[tuple[int, float]]) -> None:
    print(f"\n{'deliveries':<24}{'':>8}{'p50':>10}{'p99':>10}")
    done = [seconds for status, seconds in all_answers if status == 200]
    for what, each in (("answered 200", done), ("all answers", [seconds for _, seconds in all_answers])):
        p99 = sorted(each)[math.ceil(0.99 * len(each)) - 1]
        print(f"{what:<24}{len(each):>8}{1000 * statistics.median(each):>7.0f} ms{1000 * p99:>7.0f} ms")
    others = Counter(status for status, _ in all_answers if status != 200)
    print(f"answered otherwise      {sum(others.values()):>8}   {dict(sorted(others.items()))}")


def shown_processor(spent: Mapping[str, float], count: int) -> None:
    print(f"\n{'processor time':<24}{'an upload':>11}{'in all':>11}")
    for kind, seconds in [
        *sorted(spent.items(), key=lambda item: -item[1]),
        ("together", sum(spent.values())),
    ]:
        if seconds > 0:
            print(f"{kind:<24}{1000 * seconds / count:>8.0f} ms{seconds:>9.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--uploads", type=int, default=10_000)
    parser.add_argument(
        "--deliverers", type=int, default=16, help="events that are out to the function at once"
    )
    parser.add_argument("--seed", type=int, default=7, help="of the injections")
    parser.add_argument("--plain", action="store_true", help="no duplicates and no injections")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or the stack would outlive it
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "injections.yaml").write_text(yaml.safe_dump(plan(arguments.seed, plain=arguments.plain)))
        flags = (
            "--topology", str(topology(folder, arguments.deliverers)), "--injections", str(folder / "injections.yaml"),
            "--image", f"{stub_uri(PROJECT)}={STUB}", "--retry-min-s", "0.5", "--retry-max-s", "5", "--tick-s", "5",
        )  # fmt: skip
        with running_project(folder / "state", *flags, project=PROJECT) as project:
            return flooded(project, arguments.uploads, arguments.deliverers)


def flooded(project: Project, count: int, deliverers: int) -> int:
    """The flood and its report; the exit status."""
    began = time.monotonic()
    with watched(project) as (memory, processor):
        uploads = uploaded(project, count, deliverers)
        upload_s = time.monotonic() - began
        until_all_ended(project, count)
        wall_s = time.monotonic() - began
        until_quiet(project)
        memory.sample(project)
        processor.sample(project)
    struck = accounts_at_the_end(project)
    found = reckoning(project, uploads)
    print(
        f"uploads                 {count:>8}   in {upload_s:.0f} s; all ended after {wall_s:.0f} s, {count / wall_s:.1f} a second"
    )
    print(
        f"deliverers              {deliverers:>8}   and {struck['twice']['struck']} events brought twice at once"
    )
    print(f"lost                    {len(found.lost):>8}   limit 0")
    print(f"recorded twice          {len(found.recorded_twice):>8}   limit 0")
    print(f"runs with two jobs      {len(found.two_jobs):>8}   limit 0")
    shown_times(answers(project))
    shown_processor(processor.spent(), count)
    print("\nmost memory of a function's processes, both of them together")
    for function, size in sorted(memory.most.items()):
        print(f"{function or 'others':<24}{size / 2**20:>7.0f} MiB")
    shown_accounts(struck)
    print(f"\n{found}")
    return 0 if found.kept else 1


if __name__ == "__main__":
    sys.exit(main())
