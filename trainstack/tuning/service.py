"""Tuning jobs: what their calls do beyond those of all jobs."""

import asyncio
import contextlib
import shutil
from dataclasses import replace
from pathlib import Path

from google.cloud.aiplatform_v1.types.study import Trial as TrialMessage

from trainstack.jobs.collection import Collection, JobStore, ServiceContext
from trainstack.jobs.resource.job import VertexJob
from trainstack.jobs.runners.log import JobLog
from trainstack.jobs.service import JobService
from trainstack.sqlite import Database, DiskFullError
from trainstack.tuning.runner import TuningJobRunner
from trainstack.tuning.tuning_job import TuningJob, TuningTrial

TRIALS = """
CREATE TABLE IF NOT EXISTS trials (
    job_id TEXT NOT NULL, number INTEGER NOT NULL, message BLOB NOT NULL, PRIMARY KEY (job_id, number)
);
"""


class TuningStore(JobStore[TuningJob]):
    """Tuning jobs, stored without their trials, and the trials of each, in rows, so that a change in a long study costs no more."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, TuningJob)

    def put_trial(self, job: TuningJob, trial: TuningTrial) -> None:
        """Save one trial of `job`."""
        self._database.execute(
            "INSERT OR REPLACE INTO trials VALUES (?, ?, ?)",
            (job.job_id, int(trial.id), trial.message.SerializeToString()),
        )

    def jobs(self) -> list[TuningJob]:
        """Every tuning job with its trials, oldest first."""
        trials: dict[str, dict[str, TuningTrial]] = {}
        rows = self._database.rows("SELECT job_id, message FROM trials ORDER BY job_id, number")
        for job_id, message in rows:
            trial = TuningTrial(TrialMessage.pb(TrialMessage.deserialize(message)))
            trials.setdefault(job_id, {})[trial.id] = trial
        return [replace(job, trials=trials.get(job.job_id, {})) for job in super().jobs()]

    def delete(self, job: TuningJob) -> None:
        super().delete(job)
        self._database.execute("DELETE FROM trials WHERE job_id = ?", (job.job_id,))


class TuningService(Collection[TuningJob]):
    """Tuning jobs, whose trials are jobs of the JobService: resume this service after it, stop it before."""

    def __init__(
        self, store: TuningStore, shared: ServiceContext, *, jobs: JobService, metrics: Path
    ) -> None:
        """`metrics` is the folder of the trials' metric files."""
        super().__init__(TuningJob, store, shared)
        self._trials, self._unsaved_trials = store, set[str]()
        self._custom_jobs, self._metrics = jobs, metrics

    def refuse_without_room(self, job: VertexJob) -> None:
        """As for a custom job with the replicas of all parallel trials."""
        self._custom_jobs.refuse_without_room(job)

    def _runner_of(self, job: TuningJob, log: JobLog) -> TuningJobRunner:
        return TuningJobRunner(
            job,
            jobs=self._custom_jobs,
            save=self._save_progress,
            save_trial=self._save_trial,
            log=log,
            metrics=self._metrics,
        )

    async def _forget(self, job: TuningJob) -> None:
        await super()._forget(job)
        for trial in job.trials.values():
            await self._custom_jobs.forget_trial(trial.job_id)
        await asyncio.to_thread(shutil.rmtree, self._metrics / job.job_id, ignore_errors=True)

    def _save_trial(self, job: TuningJob, trial: TuningTrial) -> None:
        self._unsaved_trials.add(job.job_id)
        with contextlib.suppress(DiskFullError):
            self._trials.put_trial(job, trial)
            self._unsaved_trials.discard(job.job_id)
        self._jobs.put(job)

    def _save_progress(self, job: TuningJob) -> None:
        """With its trials, if one of them found no room on a full disk."""
        with contextlib.suppress(DiskFullError):
            for trial in job.trials.values() if job.job_id in self._unsaved_trials else ():
                self._trials.put_trial(job, trial)
            self._unsaved_trials.discard(job.job_id)
        super()._save_progress(job)
