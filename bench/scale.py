"""What breaks first at 10, 1,000 and 100,000 runs a day, with Vertex AI's quotas: `python bench/scale.py`.

The real flows on the adapters in memory and a virtual clock. A quarter of the runs arrive at full hours, as schedules
fire; each starts after a minute and trains for 45 minutes, on average. In a tick, a call of Cloud Storage takes 30 ms,
one of Vertex AI 200 ms. The largest size is simulated for half an hour, the others for a day. For each deployment, what
broke how often, and when first; and what its storage cost.
"""

import heapq
import itertools
import json
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # run as a file, from anywhere

from tests.contract.boundaries import CountedJobs  # noqa: E402
from tests.contract.data_stream import MeteredObjects  # noqa: E402
from tests.contract.rooms import too_fast  # noqa: E402
from tests.contract.world import MODELS, REGION, START, World, shipped_request_rules  # noqa: E402
from tests.memory import ManualClock  # noqa: E402
from tests.narrowing import instance_of, present  # noqa: E402
from trainmaster.orchestrator.core.admission.prices import prices_from  # noqa: E402
from trainmaster.orchestrator.core.documents.document import parse_document  # noqa: E402
from trainmaster.orchestrator.core.errors import ServiceFailed, TrainmasterError  # noqa: E402
from trainmaster.orchestrator.core.names import RUN_LABEL  # noqa: E402
from trainmaster.orchestrator.core.policy.admission import Admission  # noqa: E402
from trainmaster.orchestrator.core.requests.submission import Submission  # noqa: E402
from trainmaster.orchestrator.core.runs.job import Job, JobState  # noqa: E402
from trainmaster.orchestrator.flows.intake import take_and_admit  # noqa: E402
from trainmaster.orchestrator.flows.queue_pass import complete_and_admit  # noqa: E402
from trainmaster.orchestrator.flows.scheduled import take_tick  # noqa: E402
from trainmaster.orchestrator.flows.services import FlowResult, Services  # noqa: E402
from trainmaster.orchestrator.log_events import LogEvent  # noqa: E402

REGIONS = (REGION, "europe-west4", "us-east1", "us-west1", "asia-east1", "europe-west1")
SUBMISSIONS, CALLS = 60, 600
"""A minute and region; a list costs a call a page. https://cloud.google.com/vertex-ai/docs/quotas (read 2026-11)"""
CLASS_A, CLASS_B = 0.005, 0.0004
"""USD for 1,000 operations, Standard storage in one region; deletions are free. https://cloud.google.com/storage/pricing-examples (read 2026-11)"""
STORAGE_S, VERTEX_S = 0.03, 0.2
AT_FULL_HOURS, QUEUE_S, WORK_S, LOG_S = 0.25, 60, 2700, 2
TICK_S, TICK_TIMEOUT_S = 60, 300
MIDNIGHT = START + timedelta(hours=0.52)
REQUEST = {
    "model_name": "cassava",
    "image": "${region}-docker.pkg.dev/${project}/trainmaster/trainer:latest",
    "cluster": {
        "chief": {"machine": "n1-standard-4", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}
    },
}


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """What is simulated: the load, and what the policy allows."""

    runs: int
    hours: float = 24
    regions: int = 1
    caps: bool = False

    def __str__(self) -> str:
        caps = "the shipped caps" if self.caps else "no caps"
        return f"{self.runs:,} runs a day, {self.regions} region(s), {caps}"


DEPLOYMENTS = (
    Deployment(runs=10, caps=True),
    Deployment(runs=1000, caps=True),
    Deployment(runs=1000),
    Deployment(runs=100_000, hours=0.5),
    Deployment(runs=100_000, hours=0.5, regions=3),
)


class QuotaJobs(CountedJobs):
    """Refuses what exceeds a minute's quota of a region; `refused` is called with its name."""

    def __init__(self, world: World, created: Callable[[Job], None], refused: Callable[[str], None]) -> None:
        super().__init__(world)
        self._on_created, self._refused = created, refused
        self.minutes: Counter[tuple[str, str, int]] = Counter()

    def count(self, region: str, method: str, calls: int = 1) -> None:
        super().count(region, method, calls)
        quota, most = ("submissions", SUBMISSIONS) if method == "create" else ("calls", CALLS)
        minute = region, quota, int(self._clock.now().timestamp()) // 60
        self.minutes[minute] += calls
        if self.minutes[minute] > most:
            self._refused(f"{quota} over quota")
            raise too_fast() if quota == "submissions" else ServiceFailed("Vertex AI", method, "429")

    def submit(self, submission: Submission) -> Job:
        job = super().submit(submission)
        self._on_created(job)
        return job


class TickClock(ManualClock):
    """The time within a tick: its calls take time. Other deliveries do not wait for it."""

    def __init__(self, day: "Day") -> None:
        super().__init__(day.world.clock.now())
        self._day, self._before_s = day, day.spent_s()

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._day.spent_s() - self._before_s)


class Day:
    """One deployment's simulation."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.random = deployment, Random(1)
        rules = shipped_request_rules()
        policy = replace(present(rules.policy), regions=REGIONS[: deployment.regions])
        policy = policy if deployment.caps else replace(policy, admission=Admission())
        table = parse_document((ROOT / "functions" / "prices.yaml").read_bytes(), as_json=False).value
        prices = prices_from(instance_of(dict, table))
        self.world = World(replace(rules, policy=policy), lambda: prices)
        self.world.clock.advance(MIDNIGHT - START)  # caps count days of UTC
        self.objects = self.world.objects = MeteredObjects(self.world.clock)
        self.jobs = self.world.jobs = QuotaJobs(self.world, self._begin, self.note)
        self.agenda: list[tuple[datetime, int, Callable[[], object]]] = []
        self.order = itertools.count()
        self.dropped_at: dict[str, datetime] = {}
        self.waits_s: list[float] = []
        self.ticks_s: list[float] = []
        self.noted: dict[str, list[datetime]] = {}
        self.most_active = 0

    def note(self, what: str) -> None:
        self.noted.setdefault(what, []).append(self.world.clock.now())

    def spent_s(self) -> float:
        return self.objects.meter.operations.total() * STORAGE_S + self.jobs.calls.total() * VERTEX_S

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        heapq.heappush(
            self.agenda, (self.world.clock.now() + timedelta(seconds=seconds), next(self.order), act)
        )

    def run(self) -> None:
        until_s = int(self.deployment.hours * 3600)
        for number in range(int(self.deployment.runs * self.deployment.hours / 24)):
            hour = self.random.randrange(0, until_s, 3600)
            at_s = hour if self.random.random() < AT_FULL_HOURS else self.random.random() * until_s
            self.later(at_s, partial(self._drop, number))
        for at_s in range(TICK_S, until_s + 1, TICK_S):
            self.later(at_s, self._tick)
        until = MIDNIGHT + timedelta(seconds=until_s)
        while self.agenda and self.agenda[0][0] <= until:
            at, _, act = heapq.heappop(self.agenda)
            self.world.clock.advance(at - self.world.clock.now())
            act()

    def _drop(self, number: int) -> None:
        request = {**REQUEST, "region": REGIONS[number % self.deployment.regions]}
        incoming = self.world.drop(json.dumps(request).encode(), f"requests/{number}.json")
        self.objects.meter.operations.subtract(
            {(verb, "requests"): 1 for verb in ("read", "write")}
        )  # the user's
        self.dropped_at[incoming.run_id] = self.world.clock.now()
        self._deliver(lambda services: take_and_admit(services, incoming))

    def _deliver(self, flow: Callable[[Services], Iterable[FlowResult]], attempt: int = 0) -> None:
        try:
            for result in flow(self.world.services()):
                if "rejected" in result.message:
                    self.note("rejected by caps")
        except TrainmasterError:
            self.note("redelivered")
            self.later(min(600, 10 * 2**attempt), lambda: self._deliver(flow, attempt + 1))

    def _begin(self, job: Job) -> None:
        asked_at = self.dropped_at[job.labels[RUN_LABEL]]
        self.waits_s.append((self.world.clock.now() - asked_at).total_seconds())
        self.later(self.random.expovariate(1 / QUEUE_S), lambda: self._train(job))

    def _train(self, job: Job) -> None:
        self._move(job, JobState.RUNNING)
        self.later(self.random.expovariate(1 / WORK_S), lambda: self._end(job))

    def _end(self, job: Job) -> None:
        self.objects.put(MODELS, f"{job.output_uri.removeprefix(f'gs://{MODELS}/')}/model/model.keras", b"x")
        self._move(job, JobState.SUCCEEDED)

    def _move(self, job: Job, state: JobState) -> None:
        self.jobs.become(job.name, state)
        hint = self.world.hint(job, tells_end=state is JobState.SUCCEEDED)
        self.later(LOG_S, lambda: self._deliver(lambda services: complete_and_admit(services, hint)))

    def _tick(self) -> None:
        services, clock = self.world.services(), TickClock(self)
        services.clock, services.timeout = clock, timedelta(seconds=TICK_TIMEOUT_S)
        results = list(take_tick(services))
        self.ticks_s.append((clock.now() - self.world.clock.now()).total_seconds())
        self.most_active = max(self.most_active, len(self.jobs.going()))
        for event in {result.event for result in results} & {
            LogEvent.RECONCILE_BEHIND,
            LogEvent.RUN_NOT_RECONCILED,
        }:
            self.note(f"ticks with {event}")

    def report(self) -> None:
        operations, jobs = self.objects.meter, len(self.waits_s)
        writes, reads = operations.of("write") + operations.of("list"), operations.of("read")
        usd = (writes * CLASS_A + reads * CLASS_B) / 1000
        waits = sorted(self.waits_s)
        peak = {
            quota: max((n for (_, kind, _), n in self.jobs.minutes.items() if kind == quota), default=0)
            for quota in ("submissions", "calls")
        }
        print(
            f"\n{self.deployment}: {len(self.dropped_at):,} requests in {self.deployment.hours} h, {jobs:,} jobs"
        )
        print(
            f"  active jobs {self.most_active:,}; most in a minute and region: {peak['submissions']} submissions, {peak['calls']} other calls"
        )
        print(
            f"  wait for a job: median {statistics.median(waits):.0f} s, 95th percentile {waits[int(jobs * 0.95)]:.0f} s; without one at the end {len(self.dropped_at) - jobs:,}"
        )
        print(f"  a tick takes {statistics.median(self.ticks_s):.1f} s, at most {max(self.ticks_s):.0f} s")
        print(
            f"  storage for a run: {writes / jobs:.0f} class A, {reads / jobs:.0f} class B, ${usd / jobs:.6f}; ${usd * 24 / self.deployment.hours:.2f} a day"
        )
        for what, times in sorted(self.noted.items(), key=lambda item: item[1][0]):
            print(f"  {what}: {len(times):,}, first after {times[0] - MIDNIGHT}")


def main() -> int:
    for deployment in DEPLOYMENTS:
        day = Day(deployment)
        day.run()
        day.report()
    return 0


if __name__ == "__main__":
    sys.exit(main())
