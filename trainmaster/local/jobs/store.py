"""The jobs of one stack on disk: one SQLite file, so that they survive the stack."""

import json
from dataclasses import asdict
from pathlib import Path

from google.cloud.aiplatform_v1.types import CustomJob

from trainmaster.local.jobs.resource.job import Job, TrialPlace
from trainmaster.local.sqlite import opened

_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    job_id TEXT PRIMARY KEY, project TEXT NOT NULL, location TEXT NOT NULL,
    message BLOB NOT NULL, attempts INTEGER NOT NULL, announced INTEGER NOT NULL, sequence INTEGER NOT NULL UNIQUE
);
CREATE INDEX IF NOT EXISTS jobs_by_parent ON jobs (project, location, sequence);
CREATE TABLE IF NOT EXISTS trials (job_id TEXT PRIMARY KEY, place TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS operations (name TEXT PRIMARY KEY, parent TEXT NOT NULL, body TEXT NOT NULL);
"""


class Store:
    """Jobs by id and by order of creation, and operations by name.

    Each write is durable when the call returns, also when the process is killed then;
    a power failure may take the last ones.
    """

    def __init__(self, path: Path) -> None:
        self._database = opened(path, _SCHEMA)

    def put(self, job: Job) -> None:
        """Keep `job` as it now is; a new one becomes the latest."""
        if job.trial is not None:  # first: a job whose place is lost would run as no trial
            self._database.execute(
                "INSERT OR IGNORE INTO trials VALUES (?, ?)", (job.job_id, json.dumps(asdict(job.trial)))
            )
        self._database.execute(
            "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, (SELECT COALESCE(MAX(sequence), 0) + 1 FROM jobs)) "
            "ON CONFLICT (job_id) DO UPDATE SET message = excluded.message, attempts = excluded.attempts, "
            "announced = excluded.announced",
            (
                job.job_id,
                job.project,
                job.location,
                job.message.SerializeToString(),
                job.attempts,
                job.announced,
            ),
        )

    def jobs(self) -> list[Job]:
        """Every job, oldest first."""
        rows = self._database.execute(
            "SELECT job_id, project, location, message, attempts, announced, place "
            "FROM jobs LEFT JOIN trials USING (job_id) ORDER BY sequence"
        )
        return [
            Job(
                job_id=job_id,
                project=project,
                location=location,
                message=CustomJob.pb(CustomJob.deserialize(message)),
                attempts=attempts,
                announced=bool(announced),
                trial=TrialPlace(**json.loads(place)) if place else None,
            )
            for job_id, project, location, message, attempts, announced, place in rows
        ]

    def delete(self, job: Job) -> None:
        """Forget a job. Its operations stay."""
        self._database.execute("DELETE FROM jobs WHERE job_id = ?", (job.job_id,))
        self._database.execute("DELETE FROM trials WHERE job_id = ?", (job.job_id,))

    def put_operation(self, name: str, parent: str, body: dict[str, object]) -> None:
        """Keep a long-running operation; `parent` is `projects/NUMBER/locations/REGION`."""
        self._database.execute("INSERT INTO operations VALUES (?, ?, ?)", (name, parent, json.dumps(body)))

    def operation(self, name: str) -> dict[str, object] | None:
        """The operation of that full name."""
        row = self._database.execute("SELECT body FROM operations WHERE name = ?", (name,)).fetchone()
        return json.loads(row[0]) if row else None

    def operations(self, parent: str) -> list[dict[str, object]]:
        """Every operation below `parent`: a location, or one job."""
        rows = self._database.execute(
            "SELECT body FROM operations WHERE parent = ?1 OR name LIKE ?1 || '/operations/%' ORDER BY rowid",
            (parent,),
        )
        return [json.loads(body) for (body,) in rows]

    def delete_operation(self, name: str) -> None:
        """Forget an operation."""
        self._database.execute("DELETE FROM operations WHERE name = ?", (name,))

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()
