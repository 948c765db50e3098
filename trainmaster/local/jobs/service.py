"""The JobService itself: what each call does, whichever way it came."""

import asyncio
import builtins
import logging
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from trainmaster.local.jobs.capacity.line import Capacity
from trainmaster.local.jobs.capacity.supply import Supply
from trainmaster.local.jobs.listing.catalogue import Catalogue
from trainmaster.local.jobs.listing.paging import page_of
from trainmaster.local.jobs.replicas.machine import Machine
from trainmaster.local.jobs.resource.errors import ApiError, Status
from trainmaster.local.jobs.resource.job import InvalidJobError, Job, Message, parse_job
from trainmaster.local.jobs.resource.lifecycle import JobState
from trainmaster.local.jobs.resource.operations import brief, delete_operation_of
from trainmaster.local.jobs.runs.log import Entry, JobLog, WriteLog, audit_entry
from trainmaster.local.jobs.runs.run import Run, Surroundings
from trainmaster.local.jobs.store import Store
from trainmaster.local.project import project_number

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Parent:
    """Where a job lives. `project` is the number."""

    project: str
    location: str

    @property
    def name(self) -> str:
        """`projects/NUMBER/locations/REGION`."""
        return f"projects/{self.project}/locations/{self.location}"


class JobService:
    """Custom jobs: created, read, listed, cancelled, deleted. All calls are made from one event loop."""

    def __init__(
        self,
        *,
        project: str,
        store: Store,
        machine: Machine,
        capacity: Capacity,
        write_log: WriteLog,
        supply: Supply | None = None,
    ) -> None:
        self._project_id = project
        self._project_number = project_number(project)
        self._store = store
        self._write_log = write_log
        self._capacity = capacity
        self.supply = supply or Supply()
        self._around = Surroundings(machine=machine, capacity=capacity, supply=self.supply, save=self._save)
        self._jobs = Catalogue(store.jobs())
        self._runs: dict[str, Run] = {}

    def resume(self) -> None:
        """Take up the jobs that the last stack left unfinished or ended without saying so in the log, oldest first."""
        for job in list(self._jobs):
            if not job.state.is_terminal or not job.announced:
                self._run(job)

    async def stop(self) -> None:
        """End every replica; unfinished jobs stay as they stand, for `resume`."""
        # All at once: what one leaves would be another's, who is to end too.
        abandoned = (run.abandon() for run in self._runs.values())
        for outcome in await asyncio.gather(*abandoned, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    def parent(self, project: str, location: str) -> Parent:
        """The parent that an address names by project id or number."""
        return Parent(project=project_number(project), location=location)

    def state_of(self, job_id: str) -> JobState:
        """Where a job stands.

        Raises:
            KeyError: there is no job with that id.
        """
        if job := self._jobs.get(job_id):
            return job.state
        raise KeyError(job_id)

    async def create(self, parent: Parent, body: object) -> Job:
        """Accept a job and start it as soon as there is room.

        Raises:
            ApiError: INVALID_ARGUMENT with every fault; RESOURCE_EXHAUSTED when it could never run here,
                or the region's quota or rate of requests leaves no room for it.
        """
        self.supply.count_request(parent.location, parent.project)
        job_id = str(10**18 + secrets.randbelow(8 * 10**18))
        try:
            job = parse_job(
                body, project=parent.project, location=parent.location, job_id=job_id, at=datetime.now(UTC),
                state=JobState.PENDING,
            )  # fmt: skip
        except InvalidJobError as error:
            raise ApiError(Status.INVALID_ARGUMENT, str(error)) from error
        self.refuse_what_never_fits(job)
        self.refuse_over_quota(job, job.message.job_spec)
        job = self._accept(job)
        await self.audit(
            "CreateCustomJob", job.name, {"parent": parent.name, "customJob": brief(job)}, {"name": job.name}
        )
        return job

    def begin_trial(self, job: Job) -> None:
        """Start the job of a trial; one that is known already is left alone."""
        if self._jobs.get(job.job_id) is None:
            self._accept(job)

    def find(self, job_id: str) -> Job | None:
        """The job with that id."""
        return self._jobs.get(job_id)

    def stop_trial(self, job_id: str) -> None:
        """Begin to end the job of a trial; nothing happens to one that has ended."""
        if run := self._runs.get(job_id):
            run.cancel()

    async def forget_trial(self, job_id: str) -> None:
        """Forget the job of a trial that has ended."""
        if run := self._runs.get(job_id):  # its last line is still being written
            await run.wait()
        if job := self._jobs.pop(job_id):
            self._store.delete(job)

    def project_id_of(self, job: Job) -> str:
        """The project as the log names it."""
        return self._project_id if job.project == self._project_number else job.project

    def refuse_what_never_fits(self, job: Job) -> None:
        """Refuse a job that asks for more than the whole machine.

        Raises:
            ApiError: RESOURCE_EXHAUSTED.
        """
        if len(job.replicas) > self._capacity.replicas:
            raise ApiError(
                Status.RESOURCE_EXHAUSTED,
                "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus "
                f"(this machine runs at most {self._capacity.replicas} replicas at once, the job asks for "
                f"{len(job.replicas)}; the stack's capacity is a flag)",
            )

    def refuse_over_quota(self, job: Job, spec: Message, *, copies: int = 1) -> None:
        """Refuse a job for which the region's quota leaves too little; of `spec` so many copies run at once.

        Raises:
            ApiError: RESOURCE_EXHAUSTED.
        """
        # One that has ended may still have a run, which writes its last line.
        runs = (each for job_id in self._runs if (each := self._jobs.get(job_id)))
        going = [(each.location, each.message.job_spec) for each in runs if not each.state.is_terminal]
        self.supply.refuse_over_quota(job.location, spec, copies=copies, going=going)

    def _accept(self, job: Job) -> Job:
        if not self._capacity.has_room_for(len(job.replicas)):
            job = job.queued()
        self._save(job)
        self._run(job)
        return job

    def get(self, parent: Parent, job_id: str) -> Job:
        """The job as it stands.

        Raises:
            ApiError: NOT_FOUND.
        """
        job = self._jobs.get(job_id)
        if job is None or job.parent != parent.name:
            raise ApiError(
                Status.NOT_FOUND, f"The CustomJob {parent.name}/customJobs/{job_id} does not exist."
            )
        return job

    def list(self, parent: Parent, *, filter_: str, page_size: int, page_token: str) -> tuple[list[Job], str]:
        """One page of jobs, newest first, and the token of the next page; empty after the last.

        Raises:
            ApiError: INVALID_ARGUMENT for a filter, size or token that cannot be.
        """
        return page_of(self._jobs, parent.name, filter_=filter_, page_size=page_size, page_token=page_token)

    async def cancel(self, parent: Parent, job_id: str) -> None:
        """Begin to end a job; best effort, as the service says.

        Raises:
            ApiError: NOT_FOUND; FAILED_PRECONDITION when it has ended already.
        """
        job = self.get(parent, job_id)
        if job.state.is_terminal:
            raise ApiError(
                Status.FAILED_PRECONDITION,
                f"The CustomJob {job.name} is in state {job.state.api_name} and cannot be cancelled.",
            )
        self._runs[job_id].cancel()
        await self.audit("CancelCustomJob", job.name, {"name": job.name}, {})

    async def preempt(self, parent: Parent, job_id: str, replica_name: str) -> None:
        """Take the machine of one replica away, as a spot machine is: the local stack's own verb.

        Returns when its SIGTERM is sent. What follows is as the service has it for a lost machine.

        Raises:
            ApiError: NOT_FOUND; INVALID_ARGUMENT for a replica that the job does not have;
                FAILED_PRECONDITION when the replica does not run at this moment.
        """
        job = self.get(parent, job_id)
        replicas = {replica.name: replica for replica in job.replicas}
        if replica_name not in replicas:
            raise ApiError(
                Status.INVALID_ARGUMENT,
                f"replica: the job {job.name} has no {replica_name!r}; it has {', '.join(replicas)}.",
            )
        run = self._runs.get(job_id)
        if run is None or not await run.preempt(replicas[replica_name]):
            raise ApiError(
                Status.FAILED_PRECONDITION,
                f"The replica {replica_name} of {job.name} does not run at this moment "
                f"(the job is in state {self.state_of(job_id).api_name}); only one that runs can be preempted.",
            )

    async def delete(self, parent: Parent, job_id: str) -> dict[str, object]:
        """Forget a job that has ended; the finished operation.

        Raises:
            ApiError: NOT_FOUND; FAILED_PRECONDITION while it has not ended.
        """
        job = self.get(parent, job_id)
        if not job.state.is_terminal:
            raise ApiError(
                Status.FAILED_PRECONDITION,
                f"The CustomJob {job.name} is in state {job.state.api_name}; only a job that has ended can be deleted.",
            )
        if run := self._runs.get(job_id):  # its last line is still being written
            await run.wait()
        self._jobs.pop(job_id)
        self._store.delete(job)
        operation = delete_operation_of(job)
        self._store.put_operation(str(operation["name"]), job.parent, operation)
        await self.audit("DeleteCustomJob", job.name, {"name": job.name}, {"name": operation["name"]})
        return operation

    def operation(self, name: str) -> dict[str, object]:
        """The operation of that full name (with the project's number).

        Raises:
            ApiError: NOT_FOUND.
        """
        found = self._store.operation(name)
        if found is None:
            raise ApiError(Status.NOT_FOUND, f"The operation {name} does not exist.")
        return found

    def operations(self, owner: str) -> builtins.list[dict[str, object]]:
        """Every operation of a location or of one job."""
        return self._store.operations(owner)

    def delete_operation(self, name: str) -> None:
        """Forget an operation.

        Raises:
            ApiError: NOT_FOUND.
        """
        self.operation(name)
        self._store.delete_operation(name)

    def _save(self, job: Job) -> None:
        self._store.put(job)
        self._jobs.put(job)

    def _run(self, job: Job) -> None:
        place = job.trial
        log = JobLog(
            self._write_log,
            project_id=self.project_id_of(job),
            job_id=place.tuning_job_id if place else job.job_id,
            trial_id=place.trial_id if place else "",
        )
        run = Run(job, around=self._around, log=log)
        self._runs[job.job_id] = run
        run.start(on_end=lambda: self._runs.pop(job.job_id, None))

    async def audit(self, method: str, name: str, request: Entry, response: Entry) -> None:
        """Write the activity entry of a call. A log that refuses it does not fail the call."""
        entry = audit_entry(
            method, project_id=self._project_id, resource_name=name, request=request, response=response
        )
        try:
            waiting = self._write_log([entry])
            if waiting is not None:
                await waiting
        except Exception:  # a log that fails must not fail the call
            _log.exception("the audit entry of %s %s is lost", method, name)
