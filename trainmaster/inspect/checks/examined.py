"""The input of the checks."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from trainmaster.inspect.finding import ProgramFinding
from trainmaster.inspect.program import ProgramSource
from trainmaster.inspect.request import ProgramRequest
from trainmaster.inspect.start import ProgramStart, start_of
from trainmaster.inspect.surroundings import Surroundings

Check = Iterator[ProgramFinding]


@dataclass(frozen=True, kw_only=True, eq=False)
class Examined:
    """`request` is None if none was given; the number of replicas is then unknown."""

    source: ProgramSource
    surroundings: Surroundings
    request: ProgramRequest | None = None

    @cached_property
    def start(self) -> ProgramStart:
        return start_of(self.request, self.surroundings)
