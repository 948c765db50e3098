"""Boundaries that run a function at the calls of one name, and buckets that count what they list."""

import itertools
from collections.abc import Callable, Iterator
from typing import TypeVar

from tests.contract.world import Boundary, Killed
from tests.memory import MemoryObjects
from trainmaster.orchestrator.ports.objects import Listed

_Answer = TypeVar("_Answer")


def nothing() -> None:
    """What happens by default."""


class At(Boundary):
    """`before` and `after` happen at each call of that name; what they raise is raised there."""

    def __init__(
        self, name: str, *, before: Callable[[], object] = nothing, after: Callable[[], object] = nothing
    ) -> None:
        super().__init__()
        self.name = name
        self.before = before
        self.after = after

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        if name != self.name:
            return super().cross(name, call)
        self.before()
        answer = super().cross(name, call)
        self.after()
        return answer


def raising(error: BaseException) -> Callable[[], object]:
    def raised() -> None:
        raise error

    return raised


def dies_before(name: str) -> Boundary:
    return At(name, before=raising(Killed(f"before {name}")))


def dies_after(name: str) -> Boundary:
    return At(name, after=raising(Killed(f"after {name}")))


def only_at(nth: int, act: Callable[[], object]) -> Callable[[], object]:
    """`act`, but only at the nth call."""
    calls = itertools.count(1)
    return lambda: act() if next(calls) == nth else None


class CountedObjects(MemoryObjects):
    """Counts the objects that listings gave."""

    listed = 0

    def listing(self, bucket: str, prefix: str) -> Iterator[Listed]:
        for each in super().listing(bucket, prefix):
            self.listed += 1
            yield each
