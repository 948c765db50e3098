"""Checkpoints on their way to the bucket: copied by one thread while training continues."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Self

from trainer.replicas.ending import before_loss

LOSS_WITHIN_S = 20.0
"""An upload may delay the exit after an error, or the loss of a peer, by this long: what it saves need not be repeated.
With the 25 s in which a frozen peer is noticed, the exit stays within the 60 s that are promised."""


class Uploads:
    """Runs uploads in the order of `start`, one at a time. As a context, it ends when the last one has."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="upload")
        self._last: Future[bool] = Future()
        self._last.set_result(True)
        self._ended_at = time.monotonic()
        self._given_up_at: float | None = None
        before_loss(self._finish_soon)

    @property
    def idle_s(self) -> float:
        """Seconds since the last upload ended, or since the start; 0 during an upload."""
        return time.monotonic() - self._ended_at if self._last.done() else 0.0

    def start(self, upload: Callable[[], bool]) -> None:
        """Wait for the previous upload, then run this one in the background; it returns whether it succeeded."""
        self.finish()
        self._last = self._thread.submit(self._run_upload, upload)

    def finish(self, within_s: float | None = None) -> bool:
        """Wait for the upload, at most `within_s` seconds; whether it has succeeded. True if there was none."""
        wait([self._last], within_s)
        return self._last.done() and self._last.result()

    def _finish_soon(self) -> None:
        """Wait for the upload, at most LOSS_WITHIN_S seconds from the first call, whichever threads call."""
        self._given_up_at = self._given_up_at or time.monotonic() + LOSS_WITHIN_S
        self.finish(max(0.0, self._given_up_at - time.monotonic()))

    def _run_upload(self, upload: Callable[[], bool]) -> bool:
        try:
            return upload()
        finally:
            self._ended_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error is None:
            self.finish()
        else:
            self._finish_soon()
        self._thread.shutdown(wait=False)
