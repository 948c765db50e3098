"""A time limit for a whole call over `requests`, whose own timeouts are per connection or read.

The call runs in a separate thread, and its caller waits no longer than the limit. A thread that is left behind cannot
send anything: its connection checks the limit before each send. All that it can still do is read a response that is
no longer needed.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from trainmaster.partial_import import IMPORTING

if TYPE_CHECKING:
    import requests

_Answer = TypeVar("_Answer")
_call = threading.local()


class LimitPassed(Exception):
    """The call took too long. What was sent before may have taken effect."""


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """A moment of the monotonic clock, which keeps running while the process is suspended."""

    at_s: float
    limit_s: float

    @classmethod
    def after(cls, limit_s: float) -> "Deadline":
        return cls(at_s=time.monotonic() + limit_s, limit_s=limit_s)

    @property
    def left_s(self) -> float:
        """The remaining seconds.

        Raises:
            LimitPassed: none remain.
        """
        left = self.at_s - time.monotonic()
        if left <= 0:
            raise LimitPassed(f"no answer within {self.limit_s:g} s")
        return left


def within(deadline: Deadline, call: Callable[[], _Answer]) -> _Answer:
    """The result of the call.

    Raises:
        LimitPassed: it has not ended in time. Its thread ends when the service lets it.
        Exception: whatever the call raises.
    """
    answered: Future[_Answer] = Future()

    def work() -> None:
        _call.deadline = deadline
        try:
            answered.set_result(call())
        except BaseException as error:  # raised again in the caller's thread
            answered.set_exception(error)

    left_s = deadline.left_s
    # Daemon: a response that is no longer needed must not keep the process from exiting.
    threading.Thread(target=work, name="within-limit", daemon=True).start()
    try:
        return answered.result(timeout=left_s)
    except NotDone:
        if answered.done():
            raise  # the call's own TimeoutError
        raise LimitPassed(f"no answer within {deadline.limit_s:g} s") from None


def limit_connections(session: "requests.Session") -> None:
    """Make every connection of the session check the time limit of its thread's call before it sends."""
    with IMPORTING:
        from requests.adapters import HTTPAdapter
        from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

    adapter = HTTPAdapter()
    adapter.poolmanager.pool_classes_by_scheme = {
        "http": _looking(HTTPConnectionPool),
        "https": _looking(HTTPSConnectionPool),
    }
    session.mount("http://", adapter)
    session.mount("https://", adapter)


def _looking(pool: Any) -> Any:  # Any: classes made of the library's own at run time
    plain: Any = pool.ConnectionCls

    class Connection(plain):  # type: ignore[misc]  # see above
        def connect(self) -> None:
            super().connect()
            _look(self.sock)

        def send(self, data: Any) -> None:
            _look(self.sock)
            super().send(data)

    return type(pool.__name__, (pool,), {"ConnectionCls": Connection})


def _look(sock: Any) -> None:  # Any: a socket, one of ssl's, or None before the connection
    """Set the socket's timeout to the time that the call has left.

    Raises:
        LimitPassed: no time is left.
    """
    deadline: Deadline | None = getattr(_call, "deadline", None)
    if deadline is None:
        return
    left_s = deadline.left_s
    if sock is not None:
        sock.settimeout(left_s)
