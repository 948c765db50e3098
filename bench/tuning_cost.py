"""What one more trial costs in a study of a thousand: `python bench/tuning_cost.py`.

First suggestions alone, of seven parameters of which three depend on a fourth, four trials pending.
Then a whole tuning job as the stack runs it, with everything it keeps and writes, but trials that end at once
with ten measurements each instead of processes; beside it a task that only wants to be woken every millisecond.
Exits with 1 when the 99th percentile of the last suggestions takes 50 ms of processor time or more.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.tuning_search import Json, body_of, discrete, double, under
from trainmaster.local.jobs.resource.job import Job
from trainmaster.local.jobs.resource.lifecycle import JobState
from trainmaster.local.jobs.runners.log import JobLog
from trainmaster.local.tuning.ledger import TuningJob
from trainmaster.local.tuning.runner import TuningJobRunner
from trainmaster.local.tuning.space import space_of
from trainmaster.local.tuning.store import TuningStore
from trainmaster.local.tuning.suggest import Algorithm, Suggestions
from trainmaster.local.tuning.trial import Trial

TRIALS, PENDING, LIMIT_MS = 1000, 4, 50
AT_ONCE, MEASUREMENTS = 10, 10

LAYERS: Json = {"parameterId": "layers", "integerValueSpec": {"minValue": 1, "maxValue": 9}}
PARAMETERS: list[Json] = [
    double("rate", 1e-5, 1, log=True),
    double("dropout", 0, 1),
    discrete("batch", [16, 32, 64, 128]),
    {
        "parameterId": "kind",
        "categoricalValueSpec": {"values": ["sgd", "tree"]},
        "conditionalParameterSpecs": [
            under("sgd", double("momentum", 0, 1)),
            under("sgd", double("decay", 1e-6, 1e-2, log=True)),
            under("tree", LAYERS),
        ],
    },
]


def new_job(at_once: int) -> TuningJob:
    body = body_of(PARAMETERS, "ALGORITHM_UNSPECIFIED", trials=TRIALS, at_once=at_once)
    return TuningJob.parse(body, project="1", location="us-central1", job_id="1", at=datetime.now(UTC))


def suggestions_ms() -> list[float]:
    """Processor milliseconds of each suggestion of a study."""
    job = new_job(PENDING)
    search = Suggestions(
        space_of(job.message.study_spec), algorithm=Algorithm.BAYESIAN, maximize=job.maximize, seed=1
    )
    times: list[float] = []
    pending: list[tuple[str, float]] = []
    for number in range(1, TRIALS + 1):
        began = time.thread_time()
        point = search.next(str(number))
        times.append((time.thread_time() - began) * 1000)
        assert point is not None
        pending.append((str(number), (float(point["dropout"]) - 0.3) ** 2))
        if len(pending) == PENDING:
            trial_id, value = pending.pop(0)
            search.tell(trial_id, [value])
    return times


class EndsAtOnce:
    """Runs no process: a trial's job has ended, and its metrics are written, when it has begun."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def begin_trial(self, job: Job) -> None:
        assert job.trial is not None
        now = datetime.now(UTC)
        folder = Path(job.trial.metrics_dir)
        folder.mkdir(parents=True)
        reports = [
            {"y": str(1 / step), "global_step": str(step), "timestamp": now.timestamp() + step}
            for step in range(1, MEASUREMENTS + 1)
        ]
        (folder / "workerpool0-0.metrics").write_text("\n".join(map(json.dumps, reports)))
        running = job.moved(JobState.RUNNING, at=now)
        self._jobs[job.job_id] = running.moved(JobState.SUCCEEDED, at=now)

    def find(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def stop_trial(self, job_id: str) -> None:
        raise AssertionError(f"the trial of {job_id} has ended already")


async def whole_job(directory: Path) -> tuple[TuningJob, list[float], list[float]]:
    """The ended job, the processor seconds at each new trial, and how late the loop woke a sleeper, in seconds."""
    store = TuningStore(directory / "tuning.sqlite")
    job, marks, late = new_job(AT_ONCE), [], []
    store.put(job)
    seen: set[str] = set()

    def save_trial(now: TuningJob, trial: Trial) -> None:
        store.put_trial(now, trial)
        if trial.id not in seen:
            seen.add(trial.id)
            marks.append(time.process_time())

    async def sleeper() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.001)
            late.append(time.perf_counter() - began - 0.001)

    log = JobLog(lambda _entries: None, project_id="p", job_id="1")
    run = TuningJobRunner(
        job,
        jobs=EndsAtOnce(),
        save=store.put,
        save_trial=save_trial,
        log=log,
        metrics=directory / "metrics",
        seed=1,
    )
    watching = asyncio.create_task(sleeper())
    run.start(on_end=watching.cancel)
    await run.wait()
    store.close()
    return run.job, marks, late


def shown(times: Sequence[float]) -> str:
    return f"median {statistics.median(times):6.1f} ms   99th percentile {sorted(times)[int(len(times) * 0.99)]:6.1f} ms"


def main() -> int:
    times = suggestions_ms()
    early, last = times[10:60], times[-50:]
    print(f"suggestion  11 to 60:    {shown(early)}")
    print(
        f"suggestion 951 to 1000:  {shown(last)}   {statistics.median(last) / statistics.median(early):.1f} times"
    )
    with tempfile.TemporaryDirectory() as folder:
        job, marks, late = asyncio.run(whole_job(Path(folder)))
    assert job.state is JobState.SUCCEEDED
    assert sum(len(trial.message.measurements) for trial in job.trials.values()) == TRIALS * MEASUREMENTS
    first = (marks[100] - marks[0]) * 10
    final = (marks[-1] - marks[-101]) * 10
    print(f"a trial in all, processor time:  first hundred {first:.1f} ms   last hundred {final:.1f} ms")
    print(
        f"the event loop was late by:      {shown([second * 1000 for second in late])}   most {max(late) * 1000:.1f} ms"
    )
    began = time.perf_counter()
    job.to_json(enums_as_integers=True)
    cold = time.perf_counter() - began
    began = time.perf_counter()
    job.to_json(enums_as_integers=True)
    warm = time.perf_counter() - began
    print(f"the job as JSON: {cold * 1000:.0f} ms, again {warm * 1000:.1f} ms (in a thread of its own)")
    over = sorted(last)[int(len(last) * 0.99)] >= LIMIT_MS
    print(f"limit at the 1,000th: {LIMIT_MS} ms: {'exceeded' if over else 'kept'}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
