"""One job's life: waits for room, runs its replicas, ends in a terminal state with its last line written.

The order that readers of the log rely on: every line of a replica, then the terminal state in the API,
then the service's terminal line.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict

from emulators.jobs import service_log as lines
from emulators.jobs.capacity import Capacity
from emulators.jobs.cluster import Cluster, Replica
from emulators.jobs.images import Image, ImageError, read_image, repository_of
from emulators.jobs.lifecycle import (
    MAX_INTERNAL_ATTEMPTS,
    CarryOn,
    Fail,
    JobState,
    RestartJob,
    RestartReplica,
    Restarts,
    Succeed,
)
from emulators.jobs.messages import internal_error, non_zero_exit
from emulators.jobs.replica import Machine, Team, addresses_of
from emulators.jobs.resource import CANCELLED_CODE, INTERNAL_CODE, USER_CODE, Job, TrialPlace
from emulators.jobs.service_log import JobLog

_LAST_LINE = {
    JobState.SUCCEEDED: lines.SUCCEEDED,
    JobState.FAILED: lines.FAILED,
    JobState.CANCELLED: lines.CANCELLED,
}
_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class _CancelledError(Exception):
    """The job is to end as CANCELLED; the reason is the error's message on the job."""


class _FailedError(Exception):
    """The job has failed."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What the runs of one stack share."""

    machine: Machine
    capacity: Capacity
    save: Callable[[Job], None]


class Run:
    """Takes one job from where it stands to its end. Start it once; `job` is where it stands now."""

    def __init__(self, job: Job, *, around: Surroundings, log: JobLog) -> None:
        self.job = job
        self._around = around
        self._log = log
        self._cancelled = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, *, on_end: Callable[[], object]) -> None:
        """Begin, in the running event loop; `on_end` is called when nothing of the run is left."""
        self._task = asyncio.create_task(self._live(), name=f"job {self.job.job_id}")
        self._task.add_done_callback(lambda _task: on_end())

    def cancel(self) -> None:
        """Ask the job to end; it is CANCELLING at once. Nothing happens to one that is ending already."""
        if self.job.state not in {JobState.CANCELLING, *(state for state in JobState if state.is_terminal)}:
            self._move(JobState.CANCELLING)
            self._cancelled.set()

    async def wait(self) -> None:
        """Return when the job has ended and its last line is written."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def abandon(self) -> None:
        """End the replicas and leave the job as it stands, for the next stack to take up."""
        if self._task is not None:
            if not self.job.state.is_terminal:  # else only its last line is missing
                self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _live(self) -> None:
        try:
            await self._to_its_end()
        except Exception:  # whatever broke here, the job must not stay RUNNING for ever
            _log.exception("job %s: the local JobService failed", self.job.job_id)
            if not self.job.state.is_terminal:
                self._move(JobState.FAILED, code=INTERNAL_CODE, reason=internal_error(self.job))
            await self._announce()
        finally:
            await self._log.close()

    async def _to_its_end(self) -> None:
        if self.job.state.is_terminal:  # the last stack was killed between the state and its line
            await self._announce()
            return
        try:
            await self._train_when_there_is_room()
        except _FailedError as failure:
            self._move(JobState.FAILED, code=failure.code, reason=str(failure))
        except _CancelledError as cancelled:
            if self.job.state is not JobState.CANCELLING:
                self._move(JobState.CANCELLING)
            self._move(JobState.CANCELLED, code=CANCELLED_CODE, reason=str(cancelled))
        else:
            self._move(JobState.SUCCEEDED)
        await self._announce()

    async def _announce(self) -> None:
        """Write the terminal line. At least once: after a kill just here, the next stack writes it again."""
        await self._log.service(_LAST_LINE[self.job.state])
        self._keep(replace(self.job, announced=True))

    async def _train_when_there_is_room(self) -> None:
        if self.job.state is JobState.CANCELLING:  # the stack ended while it was being cancelled
            raise _CancelledError("CANCELED")
        if self.job.state is JobState.RUNNING:
            await self._recover()
        await self._log.service(lines.WAITING)
        places = len(self.job.replicas)
        await self._unless_cancelled(self._around.capacity.acquire(places))
        try:
            if self.job.state is JobState.QUEUED:
                self._move(JobState.PENDING)
            await self._train()
        finally:
            self._around.capacity.release(places)

    async def _recover(self) -> None:
        """A stack that ended under a running job is what an internal error is to the service."""
        disabled = self.job.message.job_spec.scheduling.disable_retries
        if disabled or self.job.attempts >= MAX_INTERNAL_ATTEMPTS:
            await self._log.service(internal_error(self.job), "ERROR")
            raise _FailedError(INTERNAL_CODE, internal_error(self.job))
        await self._log.service(lines.INTERNAL_ERROR, "WARNING")

    async def _train(self) -> None:
        for text in (lines.PROVISIONING, lines.SETTING_UP):
            await self._log.service(text)
        team = await self._team()
        try:
            self._keep(replace(self.job, attempts=self.job.attempts + 1))
            await self._log.service(lines.WAITING_FOR_PROGRAM)
            await self._log.service(lines.PREPARING)
            await team.start_all()
            if self.job.state is JobState.PENDING:
                self._move(JobState.RUNNING)
            await self._log.service(lines.RUNNING)
            await self._until_decided(team)
            await self._log.service(lines.TEARING_DOWN)
        finally:
            await team.stop()
            team.close()
            task = asyncio.current_task()
            if task is None or not task.cancelling():  # an abandoned job is not over
                await self._log.service(lines.TORN_DOWN)

    async def _until_decided(self, team: Team) -> None:
        scheduling = self.job.message.job_spec.scheduling
        restarts = Restarts(
            with_the_job=scheduling.restart_job_on_worker_restart, retries_disabled=scheduling.disable_retries
        )
        while True:
            replica, status = await self._unless_cancelled(team.next_exit(), within=self._time_left())
            match restarts.decide(replica, status):
                case Succeed():
                    return
                case CarryOn():
                    pass
                case RestartReplica(replica=again):
                    await team.start(again)
                case RestartJob():
                    await team.stop()
                    await team.start_all()
                case Fail(replica=failed, status=last):
                    await self._report_failure(failed, last)

    async def _report_failure(self, replica: Replica, status: int) -> None:
        reason = non_zero_exit(self.job, replica, status)
        await self._log.service(reason, "ERROR")
        raise _FailedError(USER_CODE, reason)

    def _time_left(self) -> timedelta:
        started: datetime = self.job.message.start_time.ToDatetime(tzinfo=UTC)
        return started + self.job.timeout - datetime.now(UTC)

    async def _unless_cancelled(
        self, work: Coroutine[Any, Any, _Result], *, within: timedelta | None = None
    ) -> _Result:
        """The result of `work`.

        Raises:
            _CancelledError: the job was cancelled, or the time is over, before `work` was done.
        """
        working = asyncio.ensure_future(work)
        cancelled = asyncio.ensure_future(self._cancelled.wait())
        try:
            done, _ = await asyncio.wait(
                {working, cancelled},
                timeout=None if within is None else max(0.0, within.total_seconds()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if (
                working in done
            ):  # even when it was cancelled at the same moment: what `work` took must be given back
                return working.result()
            if cancelled in done:
                raise _CancelledError("CANCELED")
            raise _CancelledError(f"CANCELED: the job ran longer than its timeout of {self.job.timeout}.")
        finally:
            for task in (working, cancelled):
                if not task.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task

    async def _team(self) -> Team:
        spec = self.job.message.job_spec
        try:
            containers = {
                replica.pool: (
                    await self._image_of(replica.pool),
                    spec.worker_pool_specs[replica.pool].container_spec,
                )
                for replica in self.job.replicas
            }
        except ImageError as error:
            await self._log.service(str(error), "ERROR")
            raise _FailedError(USER_CODE, str(error)) from error
        common = Cluster(
            job_id=self.job.job_id,
            project_number=self.job.project,
            addresses=addresses_of(self.job.replicas),
            job_spec=MessageToDict(spec, preserving_proto_field_name=True),
            output_uri=spec.base_output_directory.output_uri_prefix,
            **await asyncio.to_thread(_trial_part, self.job.trial),
        )
        return Team(machine=self._around.machine, log=self._log, containers=containers, common=common)

    async def _image_of(self, pool: int) -> Image:
        spec = self.job.message.job_spec.worker_pool_specs[pool]
        if spec.WhichOneof("task") == "python_package_spec":
            raise ImageError(
                f"Worker pool {pool} asks for a Python package (pythonPackageSpec), which this local JobService "
                "does not run; give it a containerSpec."
            )
        uri = spec.container_spec.image_uri
        tree: Path | None = self._around.machine.images.get(repository_of(uri))
        if tree is None:
            raise ImageError(
                f"Failed to read the container uri [{uri}]. Please make sure that the image exists."
            )
        return await asyncio.to_thread(read_image, tree)

    def _move(self, state: JobState, *, code: int = 0, reason: str = "") -> None:
        self._keep(self.job.moved(state, at=datetime.now(UTC), code=code, reason=reason))

    def _keep(self, job: Job) -> None:
        self._around.save(job)
        self.job = job


def _trial_part(trial: TrialPlace | None) -> dict[str, str]:
    if trial is None:
        return {}
    Path(trial.metrics_dir).mkdir(parents=True, exist_ok=True)
    return {
        "trial_id": trial.trial_id,
        "metrics_dir": trial.metrics_dir,
        "metric_tag": trial.metric_tag,
    }
