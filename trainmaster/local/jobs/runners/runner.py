"""What every runner of a job does: save each change, and announce the end in the log last."""

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Generic

from trainmaster.local.jobs.listing.catalogue import AnyJob
from trainmaster.local.jobs.resource.job import INTERNAL_CODE
from trainmaster.local.jobs.resource.lifecycle import JobState
from trainmaster.local.jobs.runners import log as lines
from trainmaster.local.jobs.runners import messages
from trainmaster.local.jobs.runners.log import JobLog

_log = logging.getLogger(__name__)


class JobRunner(ABC, Generic[AnyJob]):
    """Takes one job from where it stands to its end. Start it once; `job` is where it stands now."""

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
        """Begin to end what runs: the job was cancelled, or something here broke."""

    def _release(self) -> None:
        """Give up what the job holds: it has ended, though its last line is not written."""

    def start(self, *, on_end: Callable[[], object]) -> None:
        """Begin, in the running event loop; `on_end` is called when nothing of the run is left."""

        def over(_task: asyncio.Task[None]) -> None:
            self._release()  # here too, for a task that was cancelled before its first step
            on_end()

        self._task = asyncio.create_task(self._live(), name=f"{self.job.kind} {self.job.job_id}")
        self._task.add_done_callback(over)

    def cancel(self) -> None:
        """Ask the job to end; it is CANCELLING at once. Nothing happens to one that is ending already."""
        if self.job.state is not JobState.CANCELLING and not self.job.state.is_terminal:
            self._move(JobState.CANCELLING)
            self._end_early()

    async def wait(self) -> None:
        """Return when the job has ended and its last line is written."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def abandon(self) -> None:
        """Stop the work and leave the job as it stands, for the next stack to take up."""
        if self._task is not None:
            if not self.job.state.is_terminal:  # else only its last line is missing
                self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _live(self) -> None:
        try:
            # One that has ended lacks its last line: the last stack was killed between the two.
            if not self.job.state.is_terminal:
                await self._to_its_end()
            await self._announce()
        except Exception:  # whatever broke here, the job must not stay RUNNING for ever
            _log.exception("job %s: the local JobService failed", self.job.job_id)
            self._end_early()
            if not self.job.state.is_terminal:
                self._move(JobState.FAILED, code=INTERNAL_CODE, reason=messages.internal_error(self.job))
            await self._announce()
        finally:
            await self._log.close()

    async def _announce(self) -> None:
        """Write the terminal line. At least once: after a kill just here, the next stack writes it again."""
        self._release()  # the last line may take its time
        await self._log.service(lines.LAST[self.job.state])
        self._keep(replace(self.job, announced=True))

    def _move(self, state: JobState, *, code: int = 0, reason: str = "") -> None:
        self._keep(self.job.moved(state, at=datetime.now(UTC), code=code, reason=reason))

    def _keep(self, job: AnyJob) -> None:
        self._save(job)
        self.job = job
