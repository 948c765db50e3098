"""The attempts of this process that ended and left no job, whose leases keep no other attempt away."""

import threading
from collections import OrderedDict

KEPT = 10_000
"""The lease of an attempt that is dropped from this list lasts until it expires, like that of another process."""


class EndedAttempts:
    """What this process knows about its own attempts beside the records. Thread-safe.

    A lease keeps other attempts away, because its attempt may still submit, or may have submitted a job that is not
    visible yet. Of an attempt that has failed here before it submitted anything, or that was refused, neither is so: the
    redelivery of its event continues at once, also where the lease could not be given back, for example because no
    write succeeds on a full disk.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended: OrderedDict[tuple[str, str], None] = OrderedDict()

    def add(self, run_id: str, attempt: str) -> None:
        with self._lock:
            self._ended[run_id, attempt] = None
            if len(self._ended) > KEPT:
                self._ended.popitem(last=False)

    def has(self, run_id: str, attempt: str) -> bool:
        with self._lock:
            return (run_id, attempt) in self._ended
