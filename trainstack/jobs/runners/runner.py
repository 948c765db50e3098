"""The base of all runners: saves each change of a job, and logs its end last."""

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Generic

from trainstack.jobs.listing import AnyJob
from trainstack.jobs.resource.job import INTERNAL_CODE, ResourceState
from trainstack.jobs.runners import log as lines
from trainstack.jobs.runners import messages
from trainstack.jobs.runners.log import JobLog

_log = logging.getLogger(__name__)


class JobRunner(ABC, Generic[AnyJob]):
    """Runs one job from its current state to its end. Start it once; `job` has the current state."""

    def __init__(self, job: AnyJob, *, save: Callable[[AnyJob], None], log: JobLog) -> None:
        self.job = job
        self._save = save
        self._log = log
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    async def _to_its_end(self) -> None:
        """Return when the job has ended."""

    @abstractmethod
    def _end_early(self) -> None:
        """Start ending what runs: the job was cancelled, or an internal error occurred."""

    def _release(self) -> None:
        """Release what the job holds: it has ended, though its terminal line is not written yet."""

    def start(self, *, on_end: Callable[[], object]) -> None:
        """Start, in the running event loop; `on_end` is called when the run is completely over."""

        def over(_task: asyncio.Task[None]) -> None:
            self._release()  # here too, for a task cancelled before its first step
            on_end()

        self._task = asyncio.create_task(self._live(), name=f"{self.job.kind} {self.job.job_id}")
        self._task.add_done_callback(over)

    def cancel(self) -> None:
        """Cancel the job; it is CANCELLING at once. Does nothing to a job that is already ending."""
        if self.job.state is not ResourceState.CANCELLING and not self.job.state.is_terminal:
            self._move(ResourceState.CANCELLING)
            self._end_early()

    async def wait(self) -> None:
        """Return when the job has ended and its terminal line is written."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def abandon(self) -> None:
        """Stop running and leave the job in its current state, for the next stack to resume."""
        if self._task is not None:
            if not self.job.state.is_terminal:  # else only its terminal line is missing
                self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _live(self) -> None:
        try:
            # A job that has ended lacks only its terminal line: the last stack was killed between the two.
            if not self.job.state.is_terminal:
                await self._to_its_end()
            await self._announce()
        except Exception as fault:  # whatever broke, the job must not stay RUNNING indefinitely
            _log.exception("job %s: internal error of the local job service", self.job.job_id)
            self._end_early()
            if not self.job.state.is_terminal:
                reason = messages.internal_error(self.job, fault)
                self._move(ResourceState.FAILED, code=INTERNAL_CODE, reason=reason)
            await self._announce()
        finally:
            await self._log.close()

    async def _announce(self) -> None:
        """Write the terminal line, at least once: after a kill at this point, the next stack writes it again."""
        self._release()  # writing the terminal line may take long
        await self._log.service(lines.LAST[self.job.state])
        self._keep(replace(self.job, announced=True))

    def _move(self, state: ResourceState, *, code: int = 0, reason: str = "") -> None:
        self._keep(self.job.in_state(state, at=datetime.now(UTC), code=code, reason=reason))

    def _keep(self, job: AnyJob) -> None:
        self._save(job)
        self.job = job
