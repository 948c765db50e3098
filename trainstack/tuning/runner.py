"""The lifecycle of one tuning job: starts trials as capacity allows, reads their metrics, and evaluates them at their end."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trainstack.jobs.resource.job import CANCELLED_CODE, USER_CODE, ResourceState, VertexJob, new_job_id
from trainstack.jobs.runners.log import JobLog
from trainstack.jobs.runners.runner import JobRunner
from trainstack.jobs.service import JobService
from trainstack.tuning.measurements import Point, is_below_median, read_metric_file
from trainstack.tuning.tuning_job import (
    WITH_ITS_JOB,
    TuningJob,
    TuningTrial,
    TuningTrialState,
    custom_job_of,
    failed_of,
    next_trial,
    too_many_failed,
    values_of,
)
from trainstack.tuning.validation import warnings_of

if TYPE_CHECKING:
    from trainstack.tuning.suggest import TrialSuggestions

PERIOD_S = 0.1
"""The interval of checks of trials and their metric files."""


class TuningJobRunner(JobRunner[TuningJob]):
    """Runs a tuning job. If it is abandoned, its trials' jobs are left to the JobService."""

    def __init__(
        self,
        job: TuningJob,
        *,
        jobs: JobService,
        save: Callable[[TuningJob], None],
        log: JobLog,
        metrics: Path,
    ) -> None:
        super().__init__(job, save=save, log=log)
        self._jobs, self._metrics = jobs, metrics
        self._failed = False
        self._exhausted = False
        self._texts: dict[str, str] = {}
        self._curves: dict[str, list[Point]] = {}
        self._judged: dict[str, tuple[int, int]] = {}

    async def _to_its_end(self) -> None:
        if not self.job.trials:
            for text in warnings_of(self.job.message.study_spec):
                await self._log.service(text, "WARNING")
        suggestions = await asyncio.to_thread(self._search)
        self._take_up()
        while True:
            for trial in self.job.running:
                await self._look_at(trial, suggestions)
            ending = self.job.state is ResourceState.CANCELLING or self._fails()
            if ending:
                self._end_early()
            else:
                await self._begin_trials(suggestions)
            if not self.job.running and (ending or self._exhausted):
                return self._finish()
            await asyncio.sleep(PERIOD_S)

    def _search(self) -> "TrialSuggestions":
        """The search after all trials of earlier stacks."""
        # Optuna and numpy take a quarter of a stack's start, and most stacks run no study.
        from trainstack.tuning.suggest import Algorithm, SuggestedTrial, TrialSuggestions, space_of

        study = self.job.message.study_spec
        past = [
            SuggestedTrial(
                trial_id=trial.id,
                values=values_of(self.job, trial),
                has_ended=trial.has_ended,
                results=self.job.results_of(trial),
            )
            for trial in self.job.trials.values()
        ]
        return TrialSuggestions(
            space_of(study),
            algorithm=Algorithm(study.algorithm),
            maximize=self.job.maximize,
            past=past,
        )

    def _take_up(self) -> None:
        """Start the jobs of trials that were saved just before a kill."""
        if self.job.state is not ResourceState.CANCELLING:
            for trial in self.job.running:
                self._begin(trial)

    def _fails(self) -> bool:
        self._failed = self._failed or too_many_failed(self.job)
        return self._failed

    async def _begin_trials(self, suggestions: "TrialSuggestions") -> None:
        """Start as many trials as may run together, but at most one that must wait for capacity.

        So a study larger than the machine has only one place in the queue, and other jobs get their turn.
        """
        while len(self.job.running) < self.job.message.parallel_trial_count and not self._is_in_line():
            values = None
            if not self._exhausted and len(self.job.trials) < self.job.message.max_trial_count:
                values = await asyncio.to_thread(suggestions.next, str(len(self.job.trials) + 1))
            if values is None:
                self._exhausted = True
                return
            if self.job.state is ResourceState.CANCELLING:  # in the meantime
                return
            trial = next_trial(self.job, values, custom_job_id=new_job_id())
            self._keep_trial(trial)  # before its job, so that a trial never runs twice
            self._begin(trial)

    def _is_in_line(self) -> bool:
        jobs = (self._jobs.find(trial.job_id) for trial in self.job.running)
        return any(job is not None and job.state is ResourceState.QUEUED for job in jobs)

    def _begin(self, trial: TuningTrial) -> None:
        where = str(self._folder(trial))
        self._jobs.begin_trial(custom_job_of(self.job, trial, metrics_dir=where, at=datetime.now(UTC)))

    async def _look_at(self, trial: TuningTrial, suggestions: "TrialSuggestions") -> None:
        job = self._jobs.find(trial.job_id)
        if job is None:  # cancelled in a stack that stopped before the trial had a job
            self._end(trial, "The job was cancelled before the trial started.", suggestions)
            return
        now = trial
        if trial.state is TuningTrialState.REQUESTED and job.message.HasField("start_time"):
            now = trial.begun(job.message.start_time.ToDatetime(tzinfo=UTC))
            if self.job.state is ResourceState.PENDING:
                self._move(ResourceState.RUNNING)
        text = await asyncio.to_thread(read_metric_file, self._folder(trial) / "workerpool0-0.metrics")
        if now.state is not TuningTrialState.REQUESTED and text != self._texts.get(trial.id, ""):
            self._texts[trial.id] = text
            now = now.with_reports(text)
        if now is not trial:
            self._keep_trial(now)
        if job.state.is_terminal:
            self._end(now, self._with_its_job(job) or _failure(job, now), suggestions)
        elif now.state is TuningTrialState.ACTIVE and self._is_hopeless(now):
            self._keep_trial(now.stopping())
            self._jobs.stop_trial(now.job_id)

    def _with_its_job(self, job: VertexJob) -> str:
        """Why a trial that has not failed ended with the tuning job; empty for any other trial."""
        if job.state is not ResourceState.CANCELLED or job.message.error.message != "CANCELED":
            return ""
        if self.job.state is ResourceState.CANCELLING:
            return f"{WITH_ITS_JOB}its tuning job was cancelled."
        return f"{WITH_ITS_JOB}too many other trials failed." if self._fails() else ""

    def _is_hopeless(self, trial: TuningTrial) -> bool:
        if not self.job.message.study_spec.HasField("median_automated_stopping_spec"):
            return False
        done = [one for one in self.job.trials.values() if one.state is TuningTrialState.SUCCEEDED]
        count = len(trial.message.measurements), len(done)
        if self._judged.get(trial.id) == count:
            return False
        self._judged[trial.id] = count
        for one in done:
            if one.id not in self._curves:
                self._curves[one.id] = self._curve(one)
        return is_below_median(self._curve(trial), [self._curves[one.id] for one in done])

    def _curve(self, trial: TuningTrial) -> list[Point]:
        rule = self.job.message.study_spec.median_automated_stopping_spec
        return trial.curve(self.job.objectives[0], by_time=rule.use_elapsed_duration)

    def _end(self, trial: TuningTrial, failure: str, suggestions: "TrialSuggestions") -> None:
        text = self._texts.pop(trial.id, "")
        over = trial.with_end(self.job.message.study_spec, at=datetime.now(UTC), failure=failure, text=text)
        self._keep_trial(over)
        suggestions.tell(trial.id, self.job.results_of(over))

    def _end_early(self) -> None:
        for trial in self.job.running:
            self._jobs.stop_trial(trial.job_id)

    def _finish(self) -> None:
        if self.job.state is ResourceState.CANCELLING:
            return self._move(ResourceState.CANCELLED, code=CANCELLED_CODE, reason="CANCELED")
        if self.job.state is ResourceState.PENDING:  # no trial ever ran
            self._move(ResourceState.RUNNING)
        if not self._failed:
            return self._move(ResourceState.SUCCEEDED)
        failed = failed_of(self.job)
        first = min(failed, key=lambda trial: trial.message.end_time.ToNanoseconds()).message
        reason = (
            f"Too many trials failed ({len(failed)}). The first, trial {first.id}: {first.infeasible_reason}"
        )
        return self._move(ResourceState.FAILED, code=USER_CODE, reason=reason)

    def _folder(self, trial: TuningTrial) -> Path:
        return self._metrics / self.job.job_id / trial.id

    def _keep_trial(self, trial: TuningTrial) -> None:
        self._keep(self.job.with_trial(trial))


def _failure(job: VertexJob, trial: TuningTrial) -> str:
    stopped_early = trial.state is TuningTrialState.STOPPING
    if job.state is ResourceState.SUCCEEDED or (stopped_early and job.state is ResourceState.CANCELLED):
        return ""
    return str(job.message.error.message) or "The trial's job was cancelled."
