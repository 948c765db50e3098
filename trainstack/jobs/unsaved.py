"""States of jobs that found no room on a full disk, and are written once there is some."""

import asyncio
import contextlib
from collections.abc import Callable

from trainstack.sqlite import DiskFullError

RETRY_S = 1.0


class Unsaved:
    """The writes that are left, the latest of each key. Call it from one event loop only.

    Programs that run on a full disk end all the same: their jobs show it at once, and their files follow. If the stack is
    killed before, it runs these jobs again.
    """

    def __init__(self) -> None:
        self._left: dict[tuple[str, str], Callable[[], None]] = {}
        self._trying: asyncio.Task[None] | None = None

    def write(self, job_id: str, what: str, put: Callable[[], None]) -> None:
        """Write now; without room, later."""
        try:
            put()
        except DiskFullError:
            self._left[job_id, what] = put
            if self._trying is None or self._trying.done():
                self._trying = asyncio.create_task(self._try(), name="unsaved jobs")
        else:
            self._left.pop((job_id, what), None)

    def forget(self, job_id: str) -> None:
        """The job was deleted."""
        for key in [key for key in self._left if key[0] == job_id]:
            del self._left[key]

    async def stop(self) -> None:
        """Try once more; what still finds no room stays in the file unchanged."""
        if self._trying is not None:
            self._trying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._trying
        with contextlib.suppress(DiskFullError):
            self._write_all()

    async def _try(self) -> None:
        while self._left:
            await asyncio.sleep(RETRY_S)
            with contextlib.suppress(DiskFullError):
                self._write_all()

    def _write_all(self) -> None:
        for key, put in list(self._left.items()):
            put()
            self._left.pop(key, None)
