"""A thousand weeks of weather over six regions: `python bench/weather.py --weeks 1000 --seed 1`.

Weather decides when a region has machines, and what a job meets while it has none: no quota (refused when it is
created), a queue (QUEUED until the end), or a stockout (FAILED some minutes after its creation). Once a day a
run begins, and each policy brings it to its first step:

- `wait` names one region, and waits there, as every launcher does that submits a job and looks at it later;
- `fallbacks` names five regions more, and moves on after a refusal or a stockout, but has no deadline for a start;
- `deadline` is the same with `scheduling.start_within_s`, in several lengths; 7200 is the default;
- `oracle` knows the weather, and submits to the region that starts first.

All but the oracle are the real flows (intake, admission, submission, the tick) on the adapters in memory and a clock that
jumps to what comes next; where a run could only be refused again and again for an hour, to a time at random within the
longest back-off after that. A cancelled job that waits ends after half a minute to two minutes, and has started if its turn
came in that time.

The time to the first step is from the arrival of the request to the start of the job that is kept. The cost is the
region's price, from functions/prices.yaml, times the run's hours (2 to 24) and what it does twice: each time the machines
are lost it repeats up to 15 minutes. A job that waits or is preempted costs nothing
(https://cloud.google.com/vertex-ai/docs/predictions/use-spot-vms, "Billing").

How long machines are there and away, of each region in each week, is a pair of lognormal distributions with the median
and the 90th percentile of one of nine traces, none longer than the longest of the trace: V100 Spot machines, each zone
asked every 195 s for 45 days (https://github.com/skypilot-org/spot-traces, availability/1-node/aws-02-15-2023; of "Can't
Be Late", NSDI 24). Machines are there 17 to 90 % of the time in the traces and 12 to 90 % here, away for half an hour at
the median, for 2 to 11 hours at the 90th percentile and for 80 at most; a request at a random moment waits 2.3 hours on average
in the traces, and 3.2 here. Assumed, for want of public data: that a region of Vertex AI is like such a zone, that
regions are independent, and what share of the times without machines is refused, queued or ended (SHARES).

Exits with 1 if the deadline of 7200 s is not at least twice as quick as waiting, by the mean and by the 95th percentile,
or costs more than 1.1 times as much.
"""

import argparse
import math
import multiprocessing
import os
import statistics
import sys
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # run as a file, from anywhere

from tests.contract.rooms import full  # noqa: E402  # needs the line above
from tests.contract.world import PROJECT, START, World, request_rules_with  # noqa: E402
from tests.memory import ManualClock, MemoryJobs  # noqa: E402
from trainmaster.orchestrator.core.admission.prices import prices_from  # noqa: E402
from trainmaster.orchestrator.core.admission.waiting import WAIT_MOST  # noqa: E402
from trainmaster.orchestrator.core.job_names import job_region, location_region  # noqa: E402
from trainmaster.orchestrator.core.policy.admission import Admission  # noqa: E402
from trainmaster.orchestrator.core.requests.request import RequestRules  # noqa: E402
from trainmaster.orchestrator.core.requests.submission import Submission  # noqa: E402
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState  # noqa: E402
from trainmaster.orchestrator.core.runs.states import RunState  # noqa: E402
from trainmaster.orchestrator.flows.scheduled import take_tick  # noqa: E402

HOUR, WEEK = 3600.0, 7 * 86400.0
REGIONS = ("us-central1", "us-east1", "us-east5", "us-west1", "us-west4", "europe-west4")
MACHINE = "a2-highgpu-1g"
TRACES = (
    ((0.54, 11.05, 80.2), (0.33, 1.57, 8.1)),
    ((0.54, 4.22, 23.3), (0.49, 3.68, 30.2)),
    ((0.70, 4.71, 56.2), (0.54, 4.60, 41.8)),
    ((0.49, 4.77, 23.9), (0.54, 5.74, 34.9)),
    ((0.38, 4.71, 20.9), (0.87, 14.79, 115.6)),
    ((0.70, 4.88, 20.8), (1.08, 13.97, 49.2)),
    ((0.38, 1.79, 8.1), (1.03, 14.90, 126.1)),
    ((0.38, 2.98, 7.2), (1.41, 19.61, 135.7)),
    ((0.38, 2.11, 8.5), (0.92, 16.30, 143.4)),
)
"""Hours away and hours there in each of the nine traces: the median, the 90th percentile and the longest."""
SHARES = {"quota": 0.2, "queue": 0.5, "stockout": 0.3}
"""What a time without machines means for the jobs of a region."""
PROVISIONING_S = (120, 360)
STOCKOUT_S = (60, 900)
CANCEL_S = (30, 120)
RETRIES_S = WAIT_MOST.total_seconds()
BETWEEN_RUNS_S = 24 * HOUR
"""See the module's docstring. Provisioning takes some minutes in the service's documentation and users' logs."""
WAIT, ORACLE, DEFAULT = "wait", "oracle", "deadline 7200"
WITH_FALLBACKS = {
    "fallbacks": 0,
    **{f"deadline {within_s}": within_s for within_s in (7200, 3600, 1800, 900)},
}
"""The policies that have fallbacks, with the seconds within which a job must start; 0 for no limit."""


@dataclass(frozen=True, kw_only=True)
class Spell:
    """A time from `begin_s` of the week, in which the region has machines, or what `SHARES` names."""

    begin_s: float
    end_s: float
    kind: str


class Region:
    """The weather of one region in one week and the days after it, in seconds since the week began."""

    def __init__(self, random: Random) -> None:
        away, there = random.choice(TRACES)
        self._spells: list[Spell] = []
        now_s, is_there = -2 * WEEK, True  # so early that the week begins anywhere in a spell
        while now_s < 5 * WEEK:
            end_s = now_s + length_s(random, *(there if is_there else away))
            (kind,) = random.choices(list(SHARES), list(SHARES.values()))
            self._spells.append(Spell(begin_s=now_s, end_s=end_s, kind="there" if is_there else kind))
            now_s, is_there = end_s, not is_there
        self._begins = [spell.begin_s for spell in self._spells]

    def at(self, now_s: float) -> Spell:
        """The spell of that moment."""
        return self._spells[bisect_right(self._begins, now_s) - 1]

    def opens(self, now_s: float) -> float:
        """When the region has machines, from that moment on."""
        spell = self.at(now_s)
        return now_s if spell.kind == "there" else spell.end_s

    def accepts(self, now_s: float) -> float:
        """From when on a job that is created gets a place, in a queue or at once."""
        return now_s if self.at(now_s).kind == "queue" else self.opens(now_s)

    def works(self, start_s: float, work_s: float) -> tuple[int, float]:
        """How often a job that starts then loses its machines, and when its work is done: it continues when they are back."""
        lost = 0
        while True:
            spell = self.at(self.opens(start_s))
            start_s = max(start_s, spell.begin_s)
            if start_s + work_s <= spell.end_s:
                return lost, start_s + work_s
            work_s -= spell.end_s - start_s
            lost, start_s = lost + 1, spell.end_s


def length_s(random: Random, median_h: float, p90_h: float, longest_h: float) -> float:
    """Drawn from the lognormal distribution with these percentiles, and not longer than the longest."""
    sigma = math.log(p90_h / median_h) / statistics.NormalDist().inv_cdf(0.9)
    return HOUR * min(random.lognormvariate(math.log(median_h), sigma), longest_h)


class WeatherJobs(MemoryJobs):
    """Jobs that start and end as the weather of their region has it. `settle` brings them up to the clock."""

    def __init__(self, clock: ManualClock, weather: Mapping[str, Region], random: Random) -> None:
        super().__init__(clock, project=PROJECT)
        self._manual, self._weather, self._random = clock, weather, random
        self._due: dict[str, tuple[float, JobState]] = {}
        self.started: list[tuple[float, str]] = []

    @property
    def now_s(self) -> float:
        return (self._manual.now() - START).total_seconds()

    @property
    def next_s(self) -> float:
        """When the next job changes."""
        return min((at_s for at_s, _ in self._due.values()), default=math.inf)

    def submit(self, submission: Submission) -> Job:
        region = self._weather[location_region(submission.parent)]
        spell = region.at(self.now_s)
        if spell.kind == "quota":
            raise full()
        job = super().submit(submission)
        if spell.kind == "stockout":
            self._due[job.name] = (self.now_s + self._random.uniform(*STOCKOUT_S), JobState.FAILED)
            return job
        start_s = region.opens(self.now_s) + self._random.uniform(*PROVISIONING_S)
        self._due[job.name] = (start_s, JobState.RUNNING)
        return self.become(job.name, JobState.QUEUED) if spell.kind == "queue" else job

    def cancel(self, name: str) -> None:
        """A job whose turn comes before the cancellation has its effect starts, and runs on."""
        at_s, state = self._due.get(name, (math.inf, JobState.CANCELLED))
        cancelled_s = self.now_s + self._random.uniform(*CANCEL_S)
        if state is JobState.RUNNING and cancelled_s < at_s:
            self._due[name] = (cancelled_s, JobState.CANCELLED)

    def settle(self) -> None:
        for name, (at_s, state) in sorted(self._due.items(), key=lambda item: item[1][0]):
            if at_s > self.now_s:
                return
            del self._due[name]
            if state is JobState.RUNNING:
                self.started.append((at_s, job_region(name)))
            no_room = Failure(code=8, message=f"Resources are insufficient in region: {job_region(name)}.")
            error = no_room if state is JobState.FAILED else None
            self.become(name, state, error=error, ran=state is JobState.RUNNING)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one policy did with one run."""

    wait_s: float
    end_s: float
    """From the arrival to the start, and to the end of the work."""
    cost: float


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run that arrives in a week. Its work, and what it loses with its machines, is the same for every policy."""

    arrival_s: float
    work_s: float
    repeated_s: Sequence[float]
    weather: Mapping[str, Region]
    regions: Sequence[str]
    """Its own region, and the others by price."""

    def start(self, start_s: float, region: str) -> Outcome:
        """What becomes of the run if it starts there and then."""
        lost, end_s = self.weather[region].works(start_s, self.work_s)
        repeated_s = sum(self.repeated_s[number % len(self.repeated_s)] for number in range(lost))
        return Outcome(
            wait_s=start_s - self.arrival_s,
            end_s=end_s - self.arrival_s,
            cost=(self.work_s + repeated_s) / HOUR * hourly_prices()[region],
        )

    def oracle(self) -> Outcome:
        provisioning_s = statistics.mean(PROVISIONING_S)
        opens = [(self.weather[region].opens(self.arrival_s), region) for region in self.regions]
        start_s, region = min(opens, key=lambda found: found[0])
        return self.start(start_s + provisioning_s, region)

    def play(self, random: Random, fallbacks: bool, start_within_s: int) -> Outcome:
        """The real flows with these candidates, until the job that is kept has started."""
        world = World(rules())
        world.clock.advance(timedelta(seconds=self.arrival_s))
        jobs = world.jobs = WeatherJobs(world.clock, self.weather, random)
        regions = self.regions if fallbacks else self.regions[:1]
        run_id = world.drop_and_launch(request(regions, start_within_s)).run_id
        while True:
            jobs.settle()
            list(take_tick(world.services()))
            record = world.record(run_id)
            if record.state is RunState.RUNNING:
                break
            assert record.state in (RunState.SUBMITTED, RunState.WAITING), record
            due_s = jobs.next_s
            if record.admission.waiting is not None:
                retry_s = seconds_of(record.admission.waiting.not_before)
                accepts_s = min(self.weather[region].accepts(jobs.now_s) for region in regions)
                is_long = accepts_s - retry_s > RETRIES_S * 6  # none of its tries until then finds room
                due_s = min(due_s, accepts_s + random.uniform(0, RETRIES_S) if is_long else retry_s)
            elif record.job is not None and record.job.create_time and start_within_s:
                due_s = min(due_s, seconds_of(record.job.create_time) + start_within_s)
            # The next tick after what is due; a minute is the schedule's.
            minutes = max(math.ceil((due_s - jobs.now_s) / 60), 1) if math.isfinite(due_s) else 60
            world.clock.advance(timedelta(minutes=minutes))
        assert len(jobs.started) == 1, jobs.started
        return self.start(*jobs.started[0])


def seconds_of(moment: datetime) -> float:
    return (moment - START).total_seconds()


@cache
def rules() -> RequestRules:
    return request_rules_with(regions=REGIONS, admission=Admission())


@cache
def request(regions: tuple[str, ...], start_within_s: int) -> bytes:
    document = {
        "model_name": "weather",
        "image": "us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest",
        "region": regions[0],
        "cluster": {"chief": {"machine": MACHINE, "accelerator": {"type": "NVIDIA_TESLA_A100", "count": 1}}},
        "scheduling": {"spot": True, "timeout_s": 600_000, "start_within_s": start_within_s},
        "fallbacks": [{"region": region} for region in regions[1:]],
    }
    return yaml.safe_dump(document).encode()


@cache
def hourly_prices() -> Mapping[str, float]:
    prices = prices_from(yaml.safe_load((ROOT / "functions" / "prices.yaml").read_bytes()))
    found = {region: prices.table(region, spot=True).machine(MACHINE) for region in REGIONS}
    return {region: float(price) for region, price in found.items() if price is not None}


def play_week(week: int, *, seed: int) -> list[Mapping[str, Outcome]]:
    """The outcomes of every policy for each run of the week."""
    random = Random(f"{seed}/{week}")  # to be repeated, not to be secret
    weather = {region: Region(Random(f"{seed}/{week}/{region}")) for region in REGIONS}
    home = REGIONS[week % len(REGIONS)]
    others = sorted((region for region in REGIONS if region != home), key=hourly_prices().__getitem__)
    runs: list[Mapping[str, Outcome]] = []
    for number in range(int(WEEK / BETWEEN_RUNS_S)):
        run = Run(
            arrival_s=(number + random.random()) * BETWEEN_RUNS_S,
            work_s=random.uniform(2, 24) * HOUR,
            repeated_s=[random.uniform(0, 900) for _ in range(100)],
            weather=weather,
            regions=(home, *others),
        )
        draw = partial(Random, f"{seed}/{week}/{number}")
        outcomes = {WAIT: run.play(draw(), fallbacks=False, start_within_s=0), ORACLE: run.oracle()}
        for name, within_s in WITH_FALLBACKS.items():
            # A job that finds its machines starts before any deadline, with the same request and draws.
            is_there = weather[home].at(run.arrival_s).kind == "there"
            outcomes[name] = (
                outcomes[WAIT] if is_there else run.play(draw(), fallbacks=True, start_within_s=within_s)
            )
        runs.append(outcomes)
    return runs


def play_weeks(weeks: int, *, seed: int, processes: int) -> list[Mapping[str, Outcome]]:
    with multiprocessing.get_context("spawn").Pool(processes, maxtasksperchild=20) as pool:
        played = pool.imap(partial(play_week, seed=seed), range(weeks))
        return [outcomes for week in played for outcomes in week]


def p95(values: Iterable[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


class Summary(NamedTuple):
    """One policy's hours and US dollars."""

    median: float
    mean: float
    late: float
    longest: float
    end: float
    middle_cost: float
    late_cost: float
    cost: float


def summary_of(outcomes: Sequence[Outcome]) -> Summary:
    waits = [one.wait_s / HOUR for one in outcomes]
    end = statistics.mean(one.end_s / HOUR for one in outcomes)
    costs = [one.cost for one in outcomes]
    mean, median = statistics.mean, statistics.median
    return Summary(
        median(waits), mean(waits), p95(waits), max(waits), end, median(costs), p95(costs), mean(costs)
    )


def table(title: str, runs: Sequence[Mapping[str, Outcome]]) -> Mapping[str, Summary]:
    """Print the policies beside each other."""
    found = {name: summary_of([run[name] for run in runs]) for name in (WAIT, *WITH_FALLBACKS, ORACLE)}
    base, best = found[WAIT], found[ORACLE]
    print(f"\n{title}: {len(runs):,} runs")
    print(
        "                first step, hours             end    cost, USD       of waiting          of the oracle"
    )
    print(
        "                median   mean    p95 longest  mean  median    p95    mean   p95  cost    mean    p95   end"
    )
    for name, one in found.items():
        print(
            f"{name:<15} {one.median:>6.2f} {one.mean:>6.2f} {one.late:>6.2f} {one.longest:>7.1f} {one.end:>5.1f}"
            f" {one.middle_cost:>7.2f} {one.late_cost:>6.2f} {one.mean / base.mean:>7.2f} {one.late / base.late:>5.2f}"
            f" {one.cost / base.cost:>5.2f} {one.mean / best.mean:>7.1f} {one.late / best.late:>6.1f} {one.end / best.end:>5.2f}"
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weeks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    began = time.perf_counter()
    runs = play_weeks(arguments.weeks, seed=arguments.seed, processes=arguments.processes)
    found = table("All runs", runs)
    ours, base = found[DEFAULT], found[WAIT]
    mean, late, cost = ours.mean / base.mean, ours.late / base.late, ours.cost / base.cost
    table(
        f"Those that waited longer than {PROVISIONING_S[1]} s in their own region",
        [run for run in runs if run[WAIT].wait_s > PROVISIONING_S[1]],
    )
    print(f"\n{arguments.weeks:,} weeks, seed {arguments.seed}, in {time.perf_counter() - began:,.0f} s")
    is_good = mean <= 0.5 and late <= 0.5 and cost <= 1.1
    print(
        f"{DEFAULT}: {1 / mean:.1f} times as quick as waiting, {1 / late:.1f} times at the 95th percentile; limit 2.0\n"
        f"{DEFAULT}: {cost:.2f} of its cost; limit 1.10; limits {'kept' if is_good else 'broken'}"
    )
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
