"""The threads that read the buckets' folders: each bucket has its own, so that none waits for another's files."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from trainstack.storage.drops.scanner import DropScanner
from trainstack.storage.objects.errors import RefusedError

THREADS_EACH = 4
HINTS_MAX = 10_000
"""Paths of a bucket that wait for a look; more become one scan of all its folders."""
_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class BucketThreads:
    """Runs a scanner's work in threads of the bucket that it is about. Safe to call from several threads.

    A job decides what is in its buckets: deep trees, huge files, files that change all the time. Here they can only
    delay who reads the same bucket.

    The watch calls `hint` and `hint_lost`. On a full disk, what they lead to is not recorded; a later rescan finds it
    again.
    """

    def __init__(self, scanner: DropScanner, *, hints_max: int = HINTS_MAX) -> None:
        """`hints_max`: how many paths of a bucket may wait for a look."""
        self._scanner, self._hints_max = scanner, hints_max
        self._lock = threading.RLock()
        self._pools: dict[str, ThreadPoolExecutor] = {}
        self._refreshes: dict[tuple[str, str], Future[None]] = {}
        self._hints: dict[str, dict[str, None]] = {}
        self._is_closed = False

    async def run(self, bucket: str, work: Callable[..., _Result], *args: object) -> _Result:
        """The result of `work` in a thread of the bucket. Cancelling the caller does not stop it."""
        context = contextvars.copy_context()
        future = self._pool(bucket).submit(lambda: context.run(work, *args))
        return await asyncio.wrap_future(future)

    async def wait_for_look(self, bucket: str, name: str) -> bool:
        """`DropScanner.look`."""
        return await self.run(bucket, self._scanner.look, bucket, name)

    async def wait_for_refresh(self, bucket: str, prefix: str = "") -> None:
        """Return when a refresh of the prefix that began after this call has ended; equal calls share one.

        Raises:
            RefusedError: as `DropScanner.refresh`.
        """
        key = (bucket, prefix)
        with self._lock:
            if key not in self._refreshes:
                self._refreshes[key] = self._pool(bucket).submit(self._refresh, key)
            future = self._refreshes[key]
        shared = asyncio.wrap_future(future)
        # All its callers may be gone.
        shared.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        await asyncio.shield(shared)

    def _refresh(self, key: tuple[str, str]) -> None:
        with self._lock:
            del self._refreshes[key]  # from now on, files may be written that this refresh does not see
        self._scanner.refresh(*key)

    def hint_lost(self) -> None:
        """Rescan every bucket soon: hints were lost."""
        for bucket in self._scanner.buckets():
            self.hint(bucket, "")

    def close(self) -> None:
        """Stop the work at the next file or megabyte, and wait for that."""
        self._scanner.stop()
        with self._lock:
            self._is_closed = True
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.shutdown(cancel_futures=True)

    def _pool(self, bucket: str) -> ThreadPoolExecutor:
        with self._lock:
            if bucket not in self._pools:
                self._pools[bucket] = ThreadPoolExecutor(THREADS_EACH, thread_name_prefix=f"bucket {bucket}")
            return self._pools[bucket]

    def hint(self, bucket: str, name: str) -> None:
        """Look soon at the file of this name, unless the store wrote it, or below the folder of one that is empty or ends in a slash."""
        if self._scanner.is_own_change(bucket, name):
            return
        with self._lock:
            if self._is_closed:
                return
            names = self._hints.get(bucket)
            if names is None:
                self._hints[bucket] = {name: None}
                self._pool(bucket).submit(self._follow, bucket)
                return
            if len(names) >= self._hints_max:
                names.clear()
                name = ""
            names.pop(name, None)
            names[name] = None

    def _follow(self, bucket: str) -> None:
        with self._lock:
            names = self._hints.pop(bucket)
        for name in names:
            try:
                if not name:  # also in place of hints that were lost
                    self._scanner.forget(bucket)
                if not name or name.endswith("/"):
                    self._scanner.refresh(bucket, name)
                else:
                    self._scanner.look(bucket, name)
            except RefusedError as refused:  # the bucket is gone, or has more files than are listed
                _log.info("cannot check %s/%s: %s", bucket, name, refused.message)
            except OSError:
                _log.exception("cannot check %s/%s", bucket, name)
