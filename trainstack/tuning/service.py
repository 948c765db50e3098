"""Tuning jobs: what their calls do beyond those of all jobs."""

import asyncio
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from google.cloud.aiplatform_v1.types.study import Trial as TrialMessage

from trainstack.jobs.collection import Collection, JobStore, ServiceContext
from trainstack.jobs.resource.job import VertexJob
from trainstack.jobs.runners.log import JobLog
from trainstack.jobs.service import JobService
from trainstack.sqlite import Database
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
        self._saved: dict[str, Mapping[str, TuningTrial]] = {}

    def put(self, job: TuningJob) -> None:
        """Save `job`, and of its trials those that have changed since they were last saved.

        Raises:
            DiskFullError: no room is left; what is not saved is saved with the next call.
        """
        saved = self._saved.get(job.job_id, {})
        for trial in job.trials.values():
            if saved.get(trial.id) is not trial:
                self._database.execute(
                    "INSERT OR REPLACE INTO trials VALUES (?, ?, ?)",
                    (job.job_id, int(trial.id), trial.message.SerializeToString()),
                )
        super().put(job)
        self._saved[job.job_id] = job.trials

    def jobs(self) -> list[TuningJob]:
        """Every tuning job with its trials, oldest first."""
        trials: dict[str, dict[str, TuningTrial]] = {}
        rows = self._database.rows("SELECT job_id, message FROM trials ORDER BY job_id, number")
        for job_id, message in rows:
            trial = TuningTrial(TrialMessage.pb(TrialMessage.deserialize(message)))
            trials.setdefault(job_id, {})[trial.id] = trial
        self._saved |= trials
        return [replace(job, trials=trials.get(job.job_id, {})) for job in super().jobs()]

    def delete(self, job: TuningJob) -> None:
        super().delete(job)
        self._saved.pop(job.job_id, None)
        self._database.execute("DELETE FROM trials WHERE job_id = ?", (job.job_id,))


class TuningService(Collection[TuningJob]):
    """Tuning jobs, whose trials are jobs of the JobService: resume this service after it, stop it before."""

    def __init__(
        self, store: TuningStore, shared: ServiceContext, *, jobs: JobService, metrics: Path
    ) -> None:
        """`metrics` is the folder of the trials' metric files."""
        super().__init__(TuningJob, store, shared)
        self._custom_jobs, self._metrics = jobs, metrics

    def refuse_without_room(self, job: VertexJob) -> None:
        """As for a custom job with the replicas of all parallel trials."""
        self._custom_jobs.refuse_without_room(job)

    def _runner_of(self, job: TuningJob, log: JobLog) -> TuningJobRunner:
        return TuningJobRunner(
            job, jobs=self._custom_jobs, save=self._save_progress, log=log, metrics=self._metrics
        )

    async def _forget(self, job: TuningJob) -> None:
        await super()._forget(job)
        for trial in job.trials.values():
            await self._custom_jobs.forget_trial(trial.job_id)
        await asyncio.to_thread(shutil.rmtree, self._metrics / job.job_id, ignore_errors=True)
