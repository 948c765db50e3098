"""One tuning job's life: trials begin as there is room, are read while they run, and are judged at their end."""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from emulators.jobs import service_log as lines
from emulators.jobs.lifecycle import JobState
from emulators.jobs.resource import CANCELLED_CODE, INTERNAL_CODE, USER_CODE, Job, Message, copied
from emulators.jobs.service import JobService
from emulators.jobs.service_log import JobLog
from emulators.tuning.ledger import (
    ENDED,
    TrialState,
    TuningJob,
    begun,
    curve_of,
    custom_job_of,
    ended,
    measured,
    new_trial,
    rule_of,
    too_many_failed,
    values_of,
)
from emulators.tuning.metrics import read_reports
from emulators.tuning.space import space_of
from emulators.tuning.stopping import Rule, should_stop
from emulators.tuning.suggest import Algorithm, Suggestions

PERIOD_S = 0.1
"""How often trials and their metric files are looked at."""

_LAST_LINE = {
    JobState.SUCCEEDED: lines.SUCCEEDED,
    JobState.FAILED: lines.FAILED,
    JobState.CANCELLED: lines.CANCELLED,
}
_log = logging.getLogger(__name__)


class TuningRun:
    """Takes one tuning job from where it stands to its end. Start it once; `job` is where it stands now."""

    def __init__(
        self,
        job: TuningJob,
        *,
        jobs: JobService,
        save: Callable[[TuningJob], None],
        log: JobLog,
        metrics: Path,
        seed: int | None,
    ) -> None:
        self.job = job
        self._jobs, self._save, self._log, self._metrics = jobs, save, log, metrics
        self._task: asyncio.Task[None] | None = None
        self._failed = False
        self._exhausted = False
        study = job.message.study_spec
        self._suggestions = Suggestions(
            space_of(study), algorithm=Algorithm(study.algorithm), maximize=job.maximize, seed=seed
        )

    def start(self, *, on_end: Callable[[], object]) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.create_task(self._live(), name=f"tuning job {self.job.job_id}")
        self._task.add_done_callback(lambda _task: on_end())

    def cancel(self) -> None:
        """Ask the job to end; it is CANCELLING at once, and so is every trial's job."""
        if self.job.state is not JobState.CANCELLING and not self.job.state.is_terminal:
            self._move(JobState.CANCELLING)
            self._end_trials()

    async def wait(self) -> None:
        """Return when the job has ended and its last line is written."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def abandon(self) -> None:
        """Leave the job as it stands, for the next stack. Its trials' jobs are left to the JobService."""
        if self._task is not None:
            if not self.job.state.is_terminal:
                self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _live(self) -> None:
        try:
            if not self.job.state.is_terminal:
                await self._to_its_end()
        except Exception:  # whatever broke here, the job must not stay RUNNING for ever
            _log.exception("tuning job %s: the local JobService failed", self.job.job_id)
            self._end_trials()
            self._move(JobState.FAILED, code=INTERNAL_CODE, reason="Internal error occurred.")
        finally:
            if self.job.state.is_terminal:
                await self._log.service(_LAST_LINE[self.job.state])
                self._keep(replace(self.job, announced=True))
            await self._log.close()

    async def _to_its_end(self) -> None:
        self._remember()
        while True:
            for trial in self.job.running:
                await self._look_at(trial)
            ending = self.job.state is JobState.CANCELLING or self._fails()
            if ending:
                self._end_trials()
            else:
                self._begin_trials()
            if not self.job.running and (ending or self._exhausted):
                return self._finish()
            await asyncio.sleep(PERIOD_S)

    def _remember(self) -> None:
        """Tell the library what earlier stacks learned, and start jobs that a kill came before."""
        for trial in self.job.message.trials:
            self._suggestions.know(trial.id, values_of(self.job, trial))
            if trial.state in ENDED:
                self._suggestions.tell(trial.id, self.job.results_of(trial))
            elif self.job.state is not JobState.CANCELLING:
                self._begin(trial)

    def _fails(self) -> bool:
        if not self._failed and too_many_failed(self.job):
            self._failed = True
        return self._failed

    def _begin_trials(self) -> None:
        while len(self.job.running) < self.job.message.parallel_trial_count:
            number = len(self.job.message.trials) + 1
            self._exhausted = self._exhausted or number > self.job.message.max_trial_count
            values = None if self._exhausted else self._suggestions.next(str(number))
            if values is None:
                self._exhausted = True
                return
            custom_job_id = str(10**18 + secrets.randbelow(8 * 10**18))
            trial = new_trial(self.job, str(number), values, custom_job_id=custom_job_id)
            self._keep(self.job.with_trial(trial))  # before its job: a trial is never run twice
            self._begin(trial)

    def _begin(self, trial: Message) -> None:
        where = str(self._folder(trial))
        self._jobs.begin_trial(custom_job_of(self.job, trial, metrics_dir=where, at=datetime.now(UTC)))

    async def _look_at(self, trial: Message) -> None:
        job = self._jobs.find(trial.custom_job.rpartition("/")[2])
        if job is None:  # cancelled by a stack that ended before the trial had a job
            self._end(trial, "The job was cancelled before the trial began.")
            return
        now = trial
        if trial.state == TrialState.REQUESTED.value and job.message.HasField("start_time"):
            now = begun(trial, job.message.start_time.ToDatetime(tzinfo=UTC))
            if self.job.state is JobState.PENDING:
                self._move(JobState.RUNNING)
        text = await asyncio.to_thread(_read, self._folder(trial) / "workerpool0-0.metrics")
        now = measured(now, read_reports(text))
        if now != trial:
            self._keep(self.job.with_trial(now))
        if job.state.is_terminal:
            self._end(now, _failure(job, now))
        elif now.state == TrialState.ACTIVE.value and self._hopeless(now):
            stopping = copied(now)
            stopping.state = TrialState.STOPPING.value
            self._keep(self.job.with_trial(stopping))
            self._jobs.stop_trial(job.job_id)

    def _hopeless(self, trial: Message) -> bool:
        rule, by_time = rule_of(self.job.message.study_spec)
        if rule is Rule.NEVER:
            return False
        done = [one for one in self.job.message.trials if one.state == TrialState.SUCCEEDED.value]
        return should_stop(
            rule,
            curve_of(self.job, trial, by_time=by_time),
            [curve_of(self.job, one, by_time=by_time) for one in done],
        )

    def _end(self, trial: Message, failure: str) -> None:
        over = ended(self.job, trial, at=datetime.now(UTC), failure=failure)
        self._suggestions.tell(trial.id, self.job.results_of(over))
        self._keep(self.job.with_trial(over))

    def _end_trials(self) -> None:
        for trial in self.job.running:
            self._jobs.stop_trial(trial.custom_job.rpartition("/")[2])

    def _finish(self) -> None:
        if self.job.state is JobState.CANCELLING:
            return self._move(JobState.CANCELLED, code=CANCELLED_CODE, reason="CANCELED")
        if self.job.state is JobState.PENDING:  # no trial ever ran
            self._move(JobState.RUNNING)
        if not self._failed:
            return self._move(JobState.SUCCEEDED)
        reasons = [trial.infeasible_reason for trial in self.job.message.trials if trial.infeasible_reason]
        first = f"Too many trials failed ({len(reasons)}). The first: {reasons[0]}"
        return self._move(JobState.FAILED, code=USER_CODE, reason=first)

    def _folder(self, trial: Message) -> Path:
        return self._metrics / self.job.job_id / str(trial.id)

    def _move(self, state: JobState, *, code: int = 0, reason: str = "") -> None:
        self._keep(self.job.moved(state, at=datetime.now(UTC), code=code, reason=reason))

    def _keep(self, job: TuningJob) -> None:
        self._save(job)
        self.job = job


def _failure(job: Job, trial: Message) -> str:
    stopped_early = trial.state == TrialState.STOPPING.value
    if job.state is JobState.SUCCEEDED or (stopped_early and job.state is JobState.CANCELLED):
        return ""
    return str(job.message.error.message) or "The trial's job was cancelled."


def _read(path: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
