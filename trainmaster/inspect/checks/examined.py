"""The input of the checks."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from trainmaster.inspect.finding import Finding
from trainmaster.inspect.program import Source
from trainmaster.inspect.request import Request
from trainmaster.inspect.start import Start, start_of
from trainmaster.inspect.surroundings import Surroundings

Check = Iterator[Finding]


@dataclass(frozen=True, kw_only=True, eq=False)
class Examined:
    """`request` is None if none was given; the number of replicas is then unknown."""

    source: Source
    surroundings: Surroundings
    request: Request | None = None

    @cached_property
    def start(self) -> Start:
        return start_of(self.request, self.surroundings)
