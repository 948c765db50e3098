"""Persists the jobs of one kind in an SQLite file, so that they survive the stack."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Generic

from trainstack.jobs.listing.catalogue import AnyJob
from trainstack.jobs.resource.job import TrialAssignment
from trainstack.sqlite import named_faults, open_database

_SCHEMA = """
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

    def __init__(self, path: Path, kind: type[AnyJob], *, schema: str = "") -> None:
        """Open the file; `schema` creates other tables kept in it.

        Raises:
            StateDamagedError: the file is damaged.
        """
        self._kind = kind
        self._path = path
        self._database = open_database(path, _SCHEMA + schema)

    def put(self, job: AnyJob) -> None:
        """Save `job`; a new one becomes the latest.

        Raises:
            DiskFullError: no room is left; nothing changed.
        """
        trial = json.dumps(asdict(job.trial)) if job.trial else None
        with named_faults(self._path):
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
        rows = self._database.execute(
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

    def close(self) -> None:
        self._database.close()
