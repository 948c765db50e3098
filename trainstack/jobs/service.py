"""Custom jobs: checks of capacity, persistent resources, preemption of machines, and the jobs of trials."""

from collections.abc import Iterator

from google.cloud.aiplatform_v1.types.persistent_resource import PersistentResource

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.injections.active import JOBS, InjectionKind
from trainstack.jobs.capacity import Capacity, Holder, MachinePool, resource_name
from trainstack.jobs.collection import Collection, JobStore, ServiceContext
from trainstack.jobs.replicas.isolation import ReplicaHost
from trainstack.jobs.resource.job import ResourceState, VertexJob
from trainstack.jobs.resource.machines import MachineTypes, Message
from trainstack.jobs.runners.custom_job import CustomJobRunner
from trainstack.jobs.runners.log import JobLog


class JobService(Collection[VertexJob]):
    """Custom jobs, including those of trials, which no list shows."""

    def __init__(
        self, store: JobStore[VertexJob], shared: ServiceContext, *, machine: ReplicaHost, capacity: Capacity
    ) -> None:
        super().__init__(VertexJob, store, shared)
        self._machine, self._capacity = machine, capacity
        self.pools: dict[str, MachinePool] = {}
        """Those of the persistent resources, by name."""

    @property
    def machine_types(self) -> MachineTypes:
        return self._shared.here.machines

    def refuse_machines(self, resource: Message) -> None:
        """Refuse a new persistent resource, or its new size, as a job with so many replicas.

        Raises:
            ApiError: RESOURCE_EXHAUSTED; FAILED_PRECONDITION if jobs run on more of its machines.
        """
        wanted, old = MachinePool(resource), self.pools.get(resource.name)
        if old is not None and old.capacity.slots_in_use > wanted.count:
            message = f"Jobs run on {old.capacity.slots_in_use} machines of {resource.name}."
            raise ApiError(Status.FAILED_PRECONDITION, message)
        self._refuse_without_slots(wanted.count)
        others = [holder for holder in self._holders() if holder is not old]
        self._shared.supply.refuse_over_quota(wanted, going=others)

    def hold_machines(self, resource: Message) -> None:
        """Queue for the machines of a persistent resource, all of them after its size has changed."""
        pool = self.pools.setdefault(resource.name, MachinePool(resource))
        self._capacity.release(pool.turn)
        pool.message = resource
        pool.capacity.resize(pool.count)
        pool.turn = self._capacity.line_up(pool.count)

    def release_machines(self, name: str) -> bool:
        """Cancel the jobs on a persistent resource, and take its machines; whether all of them have ended.

        Source: https://cloud.google.com/vertex-ai/docs/training/persistent-resource-delete
        """
        pool = self.pools[name]
        for job_id, runner in list(self._runners.items()):
            if (job := self._jobs.get(job_id)) and resource_name(job) == name:
                runner.cancel()
        if pool.capacity.slots_in_use:
            return False
        self._capacity.release(self.pools.pop(name).turn)
        return True

    def _capacity_of(self, job: VertexJob) -> Capacity:
        pool = self.pools.get(resource_name(job))
        return pool.capacity if pool is not None else self._capacity

    def _holders(self) -> Iterator[Holder]:
        """What uses quotas: unfinished jobs, and persistent resources instead of the jobs on them."""
        yield from self.pools.values()
        # A job that has ended may still be writing its terminal line.
        for job_id in self._runners:
            job = self._jobs.get(job_id)
            if job and not job.state.is_terminal and not resource_name(job):
                yield job

    def _runner_of(self, job: VertexJob, log: JobLog) -> CustomJobRunner:
        return CustomJobRunner(
            job,
            machine=self._machine,
            capacity=self._capacity_of(job),
            supply=self._shared.supply,
            save=self._save_progress,
            log=log,
        )

    def _as_kept_first(self, job: VertexJob) -> VertexJob:
        may_hold = self._shared.supply.injections.concerns(JOBS, InjectionKind.HOLD_QUEUED)
        has_room = self._capacity_of(job).has_room_for(len(job.replicas))
        return job if has_room and not may_hold else job.begun(job.create_time, ResourceState.QUEUED)

    async def _forget(self, job: VertexJob) -> None:
        await super()._forget(job)
        if self._machine.meter:
            self._machine.meter.samples.forget(job.job_id)

    def begin_trial(self, job: VertexJob) -> None:
        """Start the job of a trial, unless it is known already."""
        if self._jobs.get(job.job_id) is None:
            self._accept(job)

    def find(self, job_id: str) -> VertexJob | None:
        return self._jobs.get(job_id)

    def stop_trial(self, job_id: str) -> None:
        """Start ending the job of a trial; does nothing if it has ended."""
        if runner := self._runners.get(job_id):
            runner.cancel()

    async def forget_trial(self, job_id: str) -> None:
        """Delete the job of a trial that has ended."""
        if job := self._jobs.get(job_id):
            await self._forget(job)

    def refuse_without_room(self, job: VertexJob) -> None:
        """Refuse a job that needs more than the whole machine, or than the region's quota leaves.

        A job on a persistent resource uses neither.

        Raises:
            ApiError: RESOURCE_EXHAUSTED; NOT_FOUND, FAILED_PRECONDITION or INVALID_ARGUMENT for its persistent resource.
        """
        if name := resource_name(job):
            self._refuse_unfit(job, name)
            return
        self._refuse_without_slots(len(job.replicas))
        self._shared.supply.refuse_over_quota(job, going=list(self._holders()))

    def _refuse_unfit(self, job: VertexJob, name: str) -> None:
        pool = self.pools.get(name)
        if pool is None:
            raise ApiError(Status.NOT_FOUND, f"The PersistentResource {name} does not exist.")
        if pool.message.state != PersistentResource.State.RUNNING:
            state = PersistentResource.State(pool.message.state).name
            raise ApiError(Status.FAILED_PRECONDITION, f"The PersistentResource {name} is in state {state}.")
        if faults := list(pool.job_faults(job)):
            raise InvalidArgumentError(*faults)

    def _refuse_without_slots(self, count: int) -> None:
        if count > self._capacity.replicas:
            raise ApiError(
                Status.RESOURCE_EXHAUSTED,
                "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus "
                f"(this machine runs at most {self._capacity.replicas} replicas at once, but the job has "
                f"{count}; raise the limit with `up --capacity`)",
            )

    async def preempt(self, parent: str, job_id: str, replica_name: str) -> None:
        """Preempt the machine of one replica, as a spot machine is preempted.

        This method is the local stack's own.

        Returns when its SIGTERM is sent. The job then continues as the service documents for a lost machine.

        Raises:
            ApiError: NOT_FOUND; INVALID_ARGUMENT for a replica that the job does not have;
                FAILED_PRECONDITION if the replica is not running.
        """
        job = self.get(parent, job_id)
        replicas = {replica.name: replica for replica in job.replicas}
        if replica_name not in replicas:
            raise InvalidArgumentError(
                f"replica: the job {job.name} has no replica {replica_name!r}; it has {', '.join(replicas)}.",
            )
        runner = self._runners.get(job_id)
        if not isinstance(runner, CustomJobRunner) or not await runner.preempt(replicas[replica_name]):
            raise ApiError(
                Status.FAILED_PRECONDITION,
                f"The replica {replica_name} of {job.name} is not running "
                f"(the job is in state {self.get(parent, job_id).state.api_name}); only a running replica can be preempted.",
            )
