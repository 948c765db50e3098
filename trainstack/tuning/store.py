"""Persists the tuning jobs of one stack. Each trial is a row, so that a change in a long study costs no more."""

from dataclasses import replace

from google.cloud.aiplatform_v1.types.study import Trial as TrialMessage

from trainstack.jobs.store import JobStore
from trainstack.sqlite import Database
from trainstack.tuning.trial import TuningTrial
from trainstack.tuning.tuning_job import TuningJob

TRIALS = """
CREATE TABLE IF NOT EXISTS trials (
    job_id TEXT NOT NULL, number INTEGER NOT NULL, message BLOB NOT NULL, PRIMARY KEY (job_id, number)
);
"""


class TuningStore(JobStore[TuningJob]):
    """Tuning jobs, stored without their trials, and the trials of each."""

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
