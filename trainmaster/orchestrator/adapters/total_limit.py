"""One limit of time for a whole call over `requests`, whose own timeouts are for one connection or one read.

The call goes on in a thread of its own, and whoever asked for it waits no longer than the limit. A thread that
is left behind can send nothing any more: its connection looks at the limit before every sending. All that it
can still do is read an answer that nobody waits for.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from trainmaster.orchestrator.adapters.importing import IMPORTING

if TYPE_CHECKING:
    import requests

_Answer = TypeVar("_Answer")
_call = threading.local()


class LimitPassed(Exception):
    """The call took too long; what was sent before may have been done."""


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """A moment of the monotonic clock, which goes on while a process is stopped."""

    at_s: float
    limit_s: float

    @classmethod
    def after(cls, limit_s: float) -> "Deadline":
        return cls(at_s=time.monotonic() + limit_s, limit_s=limit_s)

    @property
    def left_s(self) -> float:
        """The seconds that are left.

        Raises:
            LimitPassed: none are.
        """
        left = self.at_s - time.monotonic()
        if left <= 0:
            raise LimitPassed(f"no answer within {self.limit_s:g} s")
        return left


def within(deadline: Deadline, call: Callable[[], _Answer]) -> _Answer:
    """What the call gives.

    Raises:
        LimitPassed: it has not ended in time. Its thread ends when the service lets it.
        Exception: whatever the call raises.
    """
    answered: Future[_Answer] = Future()

    def work() -> None:
        _call.deadline = deadline
        try:
            answered.set_result(call())
        except BaseException as error:  # raised where it is waited for
            answered.set_exception(error)

    left_s = deadline.left_s
    # Daemon: an answer that nobody waits for must not keep a process that wants to end.
    threading.Thread(target=work, name="within-limit", daemon=True).start()
    try:
        return answered.result(timeout=left_s)
    except NotDone:
        if answered.done():
            raise  # the call's own TimeoutError
        raise LimitPassed(f"no answer within {deadline.limit_s:g} s") from None


def limited(session: "requests.Session") -> None:
    """Have every connection of the session look at the limit of its thread's call before it sends."""
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
    """Leave the socket no more time than the call has.

    Raises:
        LimitPassed: the call has none.
    """
    deadline: Deadline | None = getattr(_call, "deadline", None)
    if deadline is None:
        return
    left_s = deadline.left_s
    if sock is not None:
        sock.settimeout(left_s)
