"""Persists the jobs of one kind in an SQLite file, so that they survive the stack."""

import json
from dataclasses import asdict
from typing import Generic

from trainstack.jobs.listing.catalogue import AnyJob
from trainstack.jobs.resource.job import TrialAssignment
from trainstack.sqlite import Database

SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, collection TEXT NOT NULL, job_id TEXT NOT NULL UNIQUE,
    project TEXT NOT NULL, location TEXT NOT NULL, message BLOB NOT NULL,
    attempts INTEGER NOT NULL, announced INTEGER NOT NULL, trial TEXT
);
"""


class JobStore(Generic[AnyJob]):
    """Jobs of one kind in order of creation; all kinds may share a file.

    Each write survives a kill of the process once the call has returned; a power failure may lose the last
    ones.
    """

    def __init__(self, database: Database, kind: type[AnyJob]) -> None:
        """`database` has the table of SCHEMA; it is not closed here."""
        self._database, self._kind = database, kind

    def put(self, job: AnyJob) -> None:
        """Save `job`; a new one becomes the latest.

        Raises:
            DiskFullError: no room is left; nothing changed.
        """
        trial = json.dumps(asdict(job.trial)) if job.trial else None
        self._database.execute(
            "INSERT INTO jobs (collection, job_id, project, location, message, attempts, announced, trial) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (job_id) DO UPDATE SET "
            "message = excluded.message, attempts = excluded.attempts, announced = excluded.announced",
            (job.collection, job.job_id, job.project, job.location, job.message.SerializeToString(),
             job.attempts, job.announced, trial),
        )  # fmt: skip

    def jobs(self) -> list[AnyJob]:
        """Every job, oldest first."""
        resource = self._kind.resource
        rows = self._database.rows(
            "SELECT job_id, project, location, message, attempts, announced, trial "
            "FROM jobs WHERE collection = ? ORDER BY sequence",
            (self._kind.collection,),
        )
        return [
            self._kind(
                job_id=job_id,
                project=project,
                location=location,
                message=resource.pb(resource.deserialize(message)),
                attempts=attempts,
                announced=bool(announced),
                trial=TrialAssignment(**json.loads(trial)) if trial else None,
            )
            for job_id, project, location, message, attempts, announced, trial in rows
        ]

    def delete(self, job: AnyJob) -> None:
        self._database.execute("DELETE FROM jobs WHERE job_id = ?", (job.job_id,))
