"""The tuning jobs of one stack on disk, each trial a row of its own, so that a long study costs no more per change."""

from pathlib import Path

from google.cloud.aiplatform_v1.types import HyperparameterTuningJob
from google.cloud.aiplatform_v1.types import Trial as TrialMessage

from trainmaster.local.sqlite import opened
from trainmaster.local.tuning.ledger import TuningJob
from trainmaster.local.tuning.trial import Trial

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tuning_jobs (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, job_id TEXT NOT NULL UNIQUE, project TEXT NOT NULL,
    location TEXT NOT NULL, message BLOB NOT NULL, announced INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS trials (
    job_id TEXT NOT NULL, number INTEGER NOT NULL, message BLOB NOT NULL, PRIMARY KEY (job_id, number)
);
"""


class TuningStore:
    """Tuning jobs by order of creation. Each write is durable when the call returns, also when the process is killed then."""

    def __init__(self, path: Path) -> None:
        self._database = opened(path, _SCHEMA)

    def put(self, job: TuningJob) -> None:
        """Keep `job` as it now is, without its trials; a new one becomes the latest."""
        self._database.execute(
            "INSERT INTO tuning_jobs (job_id, project, location, message, announced) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (job_id) DO UPDATE SET message = excluded.message, announced = excluded.announced",
            (job.job_id, job.project, job.location, job.message.SerializeToString(), job.announced),
        )

    def put_trial(self, job: TuningJob, trial: Trial) -> None:
        """Keep one trial of `job` as it now is."""
        self._database.execute(
            "INSERT OR REPLACE INTO trials VALUES (?, ?, ?)",
            (job.job_id, int(trial.id), trial.message.SerializeToString()),
        )

    def jobs(self) -> list[TuningJob]:
        """Every tuning job with its trials, oldest first."""
        trials: dict[str, dict[str, Trial]] = {}
        rows = self._database.execute("SELECT job_id, message FROM trials ORDER BY job_id, number")
        for job_id, message in rows:
            trial = Trial(TrialMessage.pb(TrialMessage.deserialize(message)))
            trials.setdefault(job_id, {})[trial.id] = trial
        rows = self._database.execute(
            "SELECT job_id, project, location, message, announced FROM tuning_jobs ORDER BY sequence"
        )
        return [
            TuningJob(
                job_id=job_id,
                project=project,
                location=location,
                announced=bool(announced),
                message=HyperparameterTuningJob.pb(HyperparameterTuningJob.deserialize(message)),
                trials=trials.get(job_id, {}),
            )
            for job_id, project, location, message, announced in rows
        ]

    def delete(self, job_id: str) -> None:
        """Forget a job and its trials."""
        self._database.execute("DELETE FROM tuning_jobs WHERE job_id = ?", (job_id,))
        self._database.execute("DELETE FROM trials WHERE job_id = ?", (job_id,))

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
