"""Answers and objects that several requests share, such as the monitor of a run: bounded, and dropped when unused."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

_Kept = TypeVar("_Kept")
_Answer = TypeVar("_Answer")


@dataclass
class _Place(Generic[_Kept]):
    """One object, and its last answer. `lock`: one thread uses the object, and others wait for its answer."""

    expires_at: float = 0.0
    """When it is dropped, unless it is used before."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: _Kept | None = None
    read_at: float | None = None
    answer: Any = None  # Any: of each object's own type


class Shared:
    """Safe for threads."""

    def __init__(self, *, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`most` objects are kept; `clock` counts seconds."""
        self._most, self._clock = most, clock
        self._places: OrderedDict[Hashable, _Place[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def ask(
        self,
        key: Hashable,
        *,
        make: Callable[[], _Kept],
        look: Callable[[_Kept], _Answer],
        age_s: float,
        idle_s: float,
    ) -> _Answer:
        """What `look` returns of the object of this key, which `make` makes first: now, or up to `age_s` ago.

        Without another request within `idle_s` seconds, the object is dropped. Errors are raised, and not kept.
        """
        place = self._place(key, idle_s)
        with place.lock:
            if place.read_at is None or self._clock() - place.read_at > age_s:
                if place.made is None:
                    place.made = make()
                place.answer = look(cast(_Kept, place.made))
                place.read_at = self._clock()
            return cast(_Answer, place.answer)

    def expire(self) -> None:
        """Let every object look again when it is asked next."""
        with self._lock:
            for place in self._places.values():
                place.read_at = None

    def forget(self) -> None:
        """Drop every object."""
        with self._lock:
            self._places.clear()

    def __len__(self) -> int:
        return len(self._places)

    def _place(self, key: Hashable, idle_s: float) -> _Place[Any]:
        now = self._clock()
        with self._lock:
            for name, place in list(self._places.items()):
                if place.expires_at < now and not place.lock.locked():
                    del self._places[name]
            place = self._places.setdefault(key, _Place())
            place.expires_at = now + idle_s
            self._places.move_to_end(key)
            while len(self._places) > self._most:
                self._places.popitem(last=False)
            return place
