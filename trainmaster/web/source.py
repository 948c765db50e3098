"""The source that every page reads from: the clients of one context, and answers that are shared for a short time."""

import threading
import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from enum import Enum
from typing import TypeVar

from trainmaster.client.clients import Clients
from trainmaster.client.context import Context
from trainmaster.web.iap import IapDoor
from trainmaster.web.shared import Shared
from trainstack.find import is_open

FOLLOWED_MAX, FOLLOWED_IDLE_S = 16, 60.0
"""Runs and parts of logs that pages follow at once, and how long one is kept after it was last shown."""
INDEX, INDEX_IDLE_S = "index", 1800.0
"""The key of the rows that several pages follow, and how long they are kept: to read them again takes a second or more."""
ANSWERS_KEPT = 100
"""Each page needs a few; a list of 1,000 runs takes about 2 MiB."""
_Answer = TypeVar("_Answer")
_Followed = TypeVar("_Followed")


class AnswerAge(Enum):
    """How old an answer may be before it is read again, in seconds: on a local stack, and in the cloud."""

    NOW = (0.0, 0.0)
    LIVE = (0.3, 5.0)
    """What changes while someone watches: the newest runs, one run, the queue."""
    SLOW = (2.0, 60.0)
    """What costs many operations, or changes rarely: rules, champions, dead letters."""
    RARE = (30.0, 600.0)
    """What only a new deployment changes, such as policy and prices, or what is large and final."""


class ConsoleSource:
    """The context that the console shows. Safe for threads."""

    def __init__(
        self,
        choose: Callable[[], Context],
        *,
        writable: bool,
        door: IapDoor | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The context, chosen when it is first needed.

        Args:
            choose: returns the context, each time that the services could not be reached; it may raise NoContext.
            writable: whether pages may change something.
            door: that of a team's console: the policy says what the person may change who sent a request.
            clock: seconds, by which answers age.
        """
        self.writable, self.door = writable, door
        self._choose = choose
        self._clients: Clients | None = None
        self._calls_of_earlier = 0
        self._choosing = threading.Lock()
        self._answers = Shared(most=ANSWERS_KEPT, clock=clock)
        self._followed = Shared(most=FOLLOWED_MAX, clock=clock)

    @property
    def clients(self) -> Clients:
        """The clients of the context. Those of a stack that has stopped are not used: they would try again for minutes.

        Raises:
            NoContext: no stack runs.
        """
        clients = self._clients
        host = clients.context.storage_host if clients is not None else None
        if host is not None and not is_open(host):
            self.reconnect()
        with self._choosing:
            if self._clients is None:
                self._clients = Clients(self._choose())
                self._clients.__enter__()
            return self._clients

    @property
    def context(self) -> Context:
        """Raises: NoContext: no stack runs."""
        return self.clients.context

    @property
    def is_local(self) -> bool:
        """Whether the console shows a local stack, whose reads cost nothing."""
        return self.context.state is not None

    @property
    def storage_calls(self) -> int:
        """Billed storage operations since the console started."""
        return self._calls_of_earlier + (self._clients.storage_calls if self._clients else 0)

    def read(self, key: Hashable, age: AnswerAge, call: Callable[[Clients], _Answer]) -> _Answer:
        """What `call` returns, read now or, if that is younger than `age`, earlier. Errors are raised, and not kept.

        Threads that ask for the same key at once share one call.
        """
        clients, age_s = self.clients, self._seconds(age)
        return self._answers.ask(key, make=lambda: clients, look=call, age_s=age_s, idle_s=age_s)

    def follow(
        self,
        key: Hashable,
        age: AnswerAge,
        make: Callable[[Clients], _Followed],
        look: Callable[[_Followed], _Answer],
    ) -> _Answer:
        """As `read`, of an object that pages share: `make` makes it, and each `look` reads what is new."""
        clients, age_s = self.clients, self._seconds(age)
        idle_s = INDEX_IDLE_S if key == INDEX else FOLLOWED_IDLE_S
        return self._followed.ask(key, make=lambda: make(clients), look=look, age_s=age_s, idle_s=idle_s)

    def _seconds(self, age: AnswerAge) -> float:
        local_s, cloud_s = age.value
        return local_s if self.is_local else cloud_s

    def forget(self) -> None:
        """Read everything again: after a change."""
        self._followed.expire()
        self._answers.forget()

    def reconnect(self) -> None:
        """Choose the context again: a stack that was started again may have other addresses."""
        self.forget()
        self._followed.forget()
        with self._choosing:
            if self._clients is not None:
                self._calls_of_earlier += self._clients.storage_calls
                with suppress(Exception):  # a client whose service is gone
                    self._clients.__exit__(None, None, None)
                self._clients = None
