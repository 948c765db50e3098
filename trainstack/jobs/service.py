"""Custom jobs: checks of capacity, preemption of machines, and the jobs of trials."""

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.injections.active import JOBS, InjectionKind
from trainstack.jobs.capacity import Capacity
from trainstack.jobs.collection import Collection, JobStore, ServiceContext
from trainstack.jobs.replicas.isolation import ReplicaHost
from trainstack.jobs.resource.job import ResourceState, VertexJob
from trainstack.jobs.runners.custom_job import CustomJobRunner
from trainstack.jobs.runners.log import JobLog


class JobService(Collection[VertexJob]):
    """Custom jobs, including those of trials, which no list shows."""

    def __init__(
        self, store: JobStore[VertexJob], shared: ServiceContext, *, machine: ReplicaHost, capacity: Capacity
    ) -> None:
        super().__init__(VertexJob, store, shared)
        self._machine, self._capacity = machine, capacity

    def _runner_of(self, job: VertexJob, log: JobLog) -> CustomJobRunner:
        return CustomJobRunner(
            job,
            machine=self._machine,
            capacity=self._capacity,
            supply=self._shared.supply,
            save=self._save_progress,
            log=log,
        )

    def _as_kept_first(self, job: VertexJob) -> VertexJob:
        may_hold = self._shared.supply.injections.concerns(JOBS, InjectionKind.HOLD_QUEUED)
        has_room = self._capacity.has_room_for(len(job.replicas))
        return job if has_room and not may_hold else job.begun(job.create_time, ResourceState.QUEUED)

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

        Raises:
            ApiError: RESOURCE_EXHAUSTED.
        """
        if len(job.replicas) > self._capacity.replicas:
            raise ApiError(
                Status.RESOURCE_EXHAUSTED,
                "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus "
                f"(this machine runs at most {self._capacity.replicas} replicas at once, but the job has "
                f"{len(job.replicas)}; raise the limit with `up --capacity`)",
            )
        # A job that has ended may still be writing its terminal line.
        running = (other for job_id in self._runners if (other := self._jobs.get(job_id)))
        self._shared.supply.refuse_over_quota(
            job, going=[other for other in running if not other.state.is_terminal]
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
