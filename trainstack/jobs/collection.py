"""The jobs of one kind, and what every call on them does, over REST or gRPC."""

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Generic

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.iam.authorization import may_act_as
from trainstack.iam.service import Grants
from trainstack.jobs.capacity import Supply
from trainstack.jobs.listing import AnyJob, Catalogue
from trainstack.jobs.resource.job import TrialAssignment, VertexJob, new_job_id
from trainstack.jobs.resource.machines import Message
from trainstack.jobs.resource.validation import Surroundings
from trainstack.jobs.runners.log import JobLog, WriteLog
from trainstack.jobs.runners.runner import JobRunner
from trainstack.project import project_number
from trainstack.sqlite import Database, DiskFullError

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


@dataclass(frozen=True, kw_only=True)
class ServiceContext:
    """What the collections of one stack share.

    Attributes:
        project: the project's id.
        write_log: writes jobs' log entries.
        supply: each region's quotas, and the injections into jobs.
        grants: as which accounts a caller's jobs may run; None for any.
        here: what jobs may name, in any region.
    """

    project: str
    write_log: WriteLog
    supply: Supply
    grants: Grants | None = None
    here: Surroundings = Surroundings()  # noqa: RUF009 - it is frozen


class Collection(ABC, Generic[AnyJob]):
    """Jobs of one kind: created, read, listed, cancelled, deleted. Call it from one event loop only."""

    def __init__(self, kind: type[AnyJob], store: JobStore[AnyJob], shared: ServiceContext) -> None:
        self.kind = kind
        self._store = store
        self._shared = shared
        self._jobs = Catalogue(store.jobs())
        self._runners: dict[str, JobRunner[AnyJob]] = {}
        self._unsaved: set[str] = set()

    @abstractmethod
    def refuse_without_room(self, job: VertexJob) -> None:
        """Raises `ApiError`: RESOURCE_EXHAUSTED if the job could never run here, or the region's quota is used up."""

    @abstractmethod
    def _runner_of(self, job: AnyJob, log: JobLog) -> JobRunner[AnyJob]:
        """The job's runner, not yet started."""

    def _as_kept_first(self, job: AnyJob) -> AnyJob:
        return job

    async def _forget(self, job: AnyJob) -> None:
        """Remove everything kept for an ended job."""
        if runner := self._runners.get(job.job_id):  # its terminal log line is still being written
            await runner.wait()
        self._jobs.pop(job.job_id)
        self._unsaved.discard(job.job_id)
        self._store.delete(job)

    def resume(self) -> None:
        """Resume jobs that the last stack left unfinished, or that ended without their terminal log line, oldest first."""
        for job in list(self._jobs):
            if not job.announced:
                self._begin(job)

    async def stop(self) -> None:
        """Stop running jobs; unfinished ones keep their state, for `resume`."""
        # All at once: the slots that one job frees must not start another that is about to stop.
        abandoned = (runner.abandon() for runner in self._runners.values())
        for outcome in await asyncio.gather(*abandoned, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        for job in self._jobs:
            if job.job_id in self._unsaved:
                self._save_progress(job)

    def create(self, project: str, location: str, body: Message | Mapping[str, object]) -> AnyJob:
        """Accept a job, given as a message or as JSON, and start it as soon as there is capacity. `project` is the number.

        Raises:
            ApiError: INVALID_ARGUMENT with every fault, or if the caller may not act as the job's account, or it does not
                exist; RESOURCE_EXHAUSTED if the job could never run here, or would exceed the region's quota.
        """
        job = self.kind.parse(
            body,
            project=project,
            location=location,
            job_id=new_job_id(),
            at=datetime.now(UTC),
            here=replace(self._shared.here, location=location),
        )
        self._refuse_without_act_as(job.spec.service_account)
        self.refuse_without_room(job)
        return self._accept(job)

    def get(self, parent: str, job_id: str) -> AnyJob:
        """The job in its current state.

        Raises:
            ApiError: NOT_FOUND.
        """
        job = self._jobs.get(job_id)
        if job is None or job.parent != parent:
            name = f"{parent}/{self.kind.collection}/{job_id}"
            raise ApiError(Status.NOT_FOUND, f"The {self.kind.kind} {name} does not exist.")
        return job

    def page(self, parent: str, *, filter_: str, size: int, token: str) -> tuple[list[AnyJob], str]:
        """As `Catalogue.page`."""
        return self._jobs.page(parent, filter_=filter_, size=size, token=token)

    def cancel(self, parent: str, job_id: str) -> None:
        """Start cancelling a job; best effort, as the service documents.

        Raises:
            ApiError: NOT_FOUND; FAILED_PRECONDITION if it has ended already.
        """
        job = self.get(parent, job_id)
        if job.state.is_terminal:
            raise _wrong_state(job, " and cannot be cancelled")
        self._runners[job_id].cancel()

    async def delete(self, parent: str, job_id: str) -> None:
        """Delete a job that has ended.

        Raises:
            ApiError: NOT_FOUND; FAILED_PRECONDITION if it has not ended.
        """
        job = self.get(parent, job_id)
        if not job.state.is_terminal:
            raise _wrong_state(job, "; only a job that has ended can be deleted")
        await self._forget(job)

    def _refuse_without_act_as(self, email: str) -> None:
        grants = self._shared.grants
        is_unknown = email and grants is not None and not grants.knows(f"serviceAccount:{email}")
        if is_unknown or not may_act_as(grants, email):
            # The service's code and words, also for an account that does not exist: https://github.com/googleapis/python-aiplatform/issues/1073
            message = f"You do not have permission to act as service_account: {email}. (or it may not exist)."
            raise InvalidArgumentError(message)

    def _accept(self, job: AnyJob) -> AnyJob:
        job = self._as_kept_first(job)
        self._save(job)
        self._begin(job)
        return job

    def _save(self, job: AnyJob) -> None:
        self._store.put(job)
        self._jobs.put(job)

    def _save_progress(self, job: AnyJob) -> None:
        """The same for a job that runs, which a full disk does not stop: it is saved with its next change, or in `stop`.

        If the stack is killed before, the next one runs the job again.
        """
        self._unsaved.add(job.job_id)
        with contextlib.suppress(DiskFullError):
            self._store.put(job)
            self._unsaved.discard(job.job_id)
        self._jobs.put(job)

    def _begin(self, job: AnyJob) -> None:
        ours = job.project == project_number(self._shared.project)
        log = JobLog(
            self._shared.write_log,
            project_id=self._shared.project if ours else job.project,
            job_id=job.trial.tuning_job_id if job.trial else job.job_id,
            trial_id=job.trial.trial_id if job.trial else "",
        )
        runner = self._runners[job.job_id] = self._runner_of(job, log)
        runner.start(on_end=lambda: self._runners.pop(job.job_id, None))


def _wrong_state(job: VertexJob, what: str) -> ApiError:
    return ApiError(
        Status.FAILED_PRECONDITION, f"The {job.kind} {job.name} is in state {job.state.api_name}{what}."
    )
