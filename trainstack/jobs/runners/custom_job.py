"""The lifecycle of one job: waits for capacity, runs its replicas, ends in a terminal state and writes the terminal log line.

Readers of the log rely on this order: every line of a replica, then the terminal state in the API, then the
service's terminal line.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn, TypeVar

from trainstack.injections.active import InjectionKind
from trainstack.jobs.capacity import Capacity, Supply
from trainstack.jobs.images.programs import PoolProgram, ProgramError, programs_of
from trainstack.jobs.replicas.isolation import ReplicaHost
from trainstack.jobs.replicas.team import ReplicaTeam
from trainstack.jobs.resource.job import (
    CANCELLED_CODE,
    EXHAUSTED_CODE,
    INTERNAL_CODE,
    USER_CODE,
    JobReplica,
    ResourceState,
    VertexJob,
)
from trainstack.jobs.runners import log as lines
from trainstack.jobs.runners import messages
from trainstack.jobs.runners.log import JobLog
from trainstack.jobs.runners.restarts import MAX_INTERNAL_ATTEMPTS, RestartAction, RestartPolicy
from trainstack.jobs.runners.runner import JobRunner
from trainstack.tasks import cancel_all

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)
HELD_S = 0.05
"""The interval at which a held job looks whether its injection was removed."""
_HOLDS = {
    ResourceState.QUEUED: InjectionKind.HOLD_QUEUED,
    ResourceState.PENDING: InjectionKind.HOLD_PENDING,
}


class _CancelledError(Exception):
    """The job must end as CANCELLED, with the reason as its error message."""


class _FailedError(Exception):
    """The job has failed; its log has the reason."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class CustomJobRunner(JobRunner[VertexJob]):
    """Runs a custom job, which queues for its slots from here on: `start` it at once."""

    def __init__(
        self,
        job: VertexJob,
        *,
        machine: ReplicaHost,
        capacity: Capacity,
        supply: Supply,
        save: Callable[[VertexJob], None],
        log: JobLog,
    ) -> None:
        super().__init__(job, save=save, log=log)
        self._machine, self._capacity, self._supply = machine, capacity, supply
        self._cancelled = asyncio.Event()
        self._turn = capacity.line_up(len(job.replicas))
        self._running: ReplicaTeam | None = None
        self._starts_now = False

    def cancel(self) -> None:
        """Cancel the job, unless an injection starts it first: then the order has no effect, as cancelling is best effort."""
        is_waiting = self.job.state in _HOLDS and self.job.trial is None
        if is_waiting and self._supply.strike(self.job, InjectionKind.START_WHILE_CANCELLED):
            self._starts_now = True
        else:
            super().cancel()

    def _end_early(self) -> None:
        self._cancelled.set()

    def _release(self) -> None:
        self._capacity.release(self._turn)

    async def preempt(self, replica: JobReplica) -> bool:
        """Preempt a replica's machine, as a spot machine is preempted; False if it is not running."""
        if self._running is None or not self._running.preempt(replica):
            return False
        await self._log.service(messages.preempts(replica, self._machine.grace_s), "WARNING")
        return True

    async def _to_its_end(self) -> None:
        try:
            await self._train_when_there_is_room()
        except _FailedError as failure:
            self._move(ResourceState.FAILED, code=failure.code, reason=str(failure))
        except _CancelledError as cancelled:
            if self.job.state is not ResourceState.CANCELLING:
                self._move(ResourceState.CANCELLING)
            if slow := self._supply.strike(self.job, InjectionKind.SLOW_CANCEL):
                self._release()
                await asyncio.sleep(slow.seconds)
            self._move(ResourceState.CANCELLED, code=CANCELLED_CODE, reason=str(cancelled))
        else:
            self._move(ResourceState.SUCCEEDED)

    async def _train_when_there_is_room(self) -> None:
        if self.job.state is ResourceState.CANCELLING:  # the stack stopped while the job was being cancelled
            raise _CancelledError("CANCELED")
        if self.job.state is ResourceState.RUNNING:
            await self._recover()
        await self._log.service(lines.WAITING)
        try:
            await self._unless_cancelled(self._wait_for_room(), within=self._wait_left())
        except TimeoutError:
            await self._fail(EXHAUSTED_CODE, messages.waited_too_long(self.job))
        if self.job.state is ResourceState.QUEUED:
            self._move(ResourceState.PENDING)
            await self._unless_cancelled(self._wait_for_room())
        is_new = self.job.state is ResourceState.PENDING
        if is_new and self._supply.strike(self.job, InjectionKind.STOCKOUT):
            await self._fail(EXHAUSTED_CODE, messages.out_of_stock(self.job))
        await self._train()

    async def _wait_for_room(self) -> None:
        """Return when the job has its slots and no injection holds it. Meanwhile other jobs may have its slots."""
        hold = _HOLDS.get(self.job.state)
        while hold and not self._starts_now and (held := self._supply.strike(self.job, hold)):
            self._release()
            # Any thread may remove it, so that no event of this loop could tell.
            while self._supply.injections.has(held) and not self._starts_now:  # noqa: ASYNC110
                await asyncio.sleep(HELD_S)
            self._turn = self._capacity.line_up(len(self.job.replicas))
        await self._turn.came.wait()

    async def _recover(self) -> None:
        """Handle the stop of a stack during a run as the service handles an internal error."""
        if self.job.spec.scheduling.disable_retries or self.job.attempts >= MAX_INTERNAL_ATTEMPTS:
            await self._fail(INTERNAL_CODE, messages.stack_ended(self.job))
        await self._log.service(lines.INTERNAL_ERROR, "WARNING")
        await self._log.service(lines.STACK_STOPPED, "WARNING")
        attempt = f"attempt {self.job.attempts + 1} of {MAX_INTERNAL_ATTEMPTS} begins"
        _log.warning(
            "%r was running when the stack stopped; %s",
            self.job.message.display_name or self.job.name,
            attempt if self.job.attempts else "it starts again",
        )

    async def _fail(self, code: int, reason: str) -> NoReturn:
        await self._log.service(reason, "ERROR")
        raise _FailedError(code, reason)

    async def _train(self) -> None:
        for text in (lines.PROVISIONING, lines.SETTING_UP):
            await self._log.service(text)
        try:
            programs = await self._unless_cancelled(self._programs())
        except ProgramError as error:
            await self._fail(USER_CODE, str(error))
        team = await asyncio.to_thread(
            ReplicaTeam, self.job, machine=self._machine, on_lines=self._log.worker, programs=programs
        )
        self._running = team
        try:
            self._keep(replace(self.job, attempts=self.job.attempts + 1))
            await self._log.service(lines.WAITING_FOR_PROGRAM)
            await self._log.service(lines.PREPARING)
            await team.start_all()
            if self.job.state is ResourceState.PENDING:
                self._move(ResourceState.RUNNING)
            await self._log.service(lines.RUNNING)
            await self._until_decided_or_struck(team)
            await self._log.service(lines.TEARING_DOWN)
        finally:
            self._running = None
            await team.stop()
            await team.close()
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                await self._log.service(lines.TORN_DOWN)
            else:  # abandoned: it has not ended, and a stack that stops in order uses up no attempt
                self._keep(replace(self.job, attempts=self.job.attempts - 1))

    async def _programs(self) -> Mapping[int, PoolProgram]:
        """The pools' programs, each with its environment."""
        pools = {replica.pool for replica in self.job.replicas}
        programs = await asyncio.to_thread(
            programs_of, self.job.spec, pools=pools, provided=self._machine.provided
        )
        return await self._machine.environments.prepare(programs, self._log.service)

    async def _until_decided_or_struck(self, team: ReplicaTeam) -> None:
        strike = self._supply.strike
        fault = strike(self.job, InjectionKind.INTERNAL_ERROR) or strike(self.job, InjectionKind.PREEMPT)
        try:
            async with asyncio.timeout(fault.seconds if fault else None):
                await self._until_decided(team)
        except TimeoutError:
            if fault is None:
                raise
            if fault.kind is InjectionKind.INTERNAL_ERROR:
                await self._fail(INTERNAL_CODE, messages.internal_error(self.job, fault))
            await self._fail(EXHAUSTED_CODE, messages.preemption_text(self.job))

    async def _until_decided(self, team: ReplicaTeam) -> None:
        scheduling = self.job.spec.scheduling
        restarts = RestartPolicy(
            with_the_job=scheduling.restart_job_on_worker_restart, retries_disabled=scheduling.disable_retries
        )
        while True:
            try:
                exits = await self._unless_cancelled(team.next_exits(), within=self._time_left())
            except TimeoutError as over:
                raise _CancelledError(messages.ran_too_long(self.job)) from over
            decision = restarts.decide(exits)
            match decision.action:
                case RestartAction.SUCCEED:
                    return
                case RestartAction.CARRY_ON:
                    pass
                case RestartAction.RESTART_REPLICAS:
                    for one in decision.causes:
                        await self._log.service(messages.restarts(one, everyone=False), "WARNING")
                        await team.start(one.replica)
                case RestartAction.RESTART_JOB:
                    await self._log.service(messages.restarts(decision.causes[0], everyone=True), "WARNING")
                    await team.stop()
                    await team.start_all()
                case RestartAction.FAIL:
                    await self._fail(USER_CODE, messages.non_zero_exit(self.job, decision.causes[0]))

    def _wait_left(self) -> timedelta | None:
        """The time that the job may still wait for capacity; None for no limit, and for a job that has run before."""
        if self.job.max_wait is None or self.job.state is not ResourceState.QUEUED:
            return None
        return self.job.create_time + self.job.max_wait - datetime.now(UTC)

    def _time_left(self) -> timedelta:
        started: datetime = self.job.message.start_time.ToDatetime(tzinfo=UTC)
        return started + self.job.timeout - datetime.now(UTC)

    async def _unless_cancelled(
        self, work: Coroutine[Any, Any, _Result], *, within: timedelta | None = None
    ) -> _Result:
        """The result of `work`.

        Raises:
            _CancelledError: the job was cancelled before `work` was done.
            TimeoutError: `work` was not done in time.
        """
        working = asyncio.ensure_future(work)
        cancelled = asyncio.ensure_future(self._cancelled.wait())
        try:
            done, _ = await asyncio.wait(
                {working, cancelled},
                timeout=None if within is None else max(0.0, within.total_seconds()),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if working in done:  # even if cancelled at the same time: exits are reported only once
                return working.result()
            if cancelled in done:
                raise _CancelledError("CANCELED")
            raise TimeoutError
        finally:
            await cancel_all(task for task in (working, cancelled) if not task.done())
