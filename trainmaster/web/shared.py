"""Objects that several requests share, such as the monitor of a run: bounded, and dropped after a time without requests."""

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

    used_at: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: _Kept | None = None
    read_at: float | None = None
    answer: Any = None  # Any: of each object's own type


class Shared:
    """Safe for threads."""

    def __init__(self, *, most: int, idle_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        """`most` objects are kept, and each until it was not used for `idle_s` seconds of `clock`."""
        self._most, self._idle_s = most, idle_s
        self._clock = clock
        self._places: OrderedDict[Hashable, _Place[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def ask(
        self,
        key: Hashable,
        *,
        make: Callable[[], _Kept],
        look: Callable[[_Kept], _Answer],
        age_s: float,
    ) -> _Answer:
        """What `look` returns of the object of this key, which `make` makes first: now, or up to `age_s` ago.

        Errors are raised, and not kept.
        """
        place = self._place(key)
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

    def _place(self, key: Hashable) -> _Place[Any]:
        now = self._clock()
        with self._lock:
            place = self._places.setdefault(key, _Place(used_at=now))
            place.used_at = now
            self._places.move_to_end(key)
            while len(self._places) > self._most:
                self._places.popitem(last=False)
            while self._places and now - next(iter(self._places.values())).used_at > self._idle_s:
                self._places.popitem(last=False)
            return place
