"""A delivery that a test advances call by call, and may kill between calls or fail at one."""

from collections.abc import Callable
from typing import TypeVar

from tests.contract.simulation.disruptions import failure
from tests.contract.simulation.pausable import Pausable
from tests.contract.world import Boundary, Killed, World
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.flows.services import Services

_Answer = TypeVar("_Answer")


class Stepwise(Boundary):
    """Pauses before each call beyond the number allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.paused: Pausable | None = None
        self.allowed = 0
        self.fails_after: bool | None = None
        """Whether the next call fails after its effect (True) or before it (False); None: it succeeds."""

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        while self.allowed == 0:
            assert self.paused is not None
            self.paused.pause()
        self.allowed -= 1
        fails_after, self.fails_after = self.fails_after, None
        if fails_after is None:
            return call()
        if fails_after:
            call()
        raise failure(name)


class Process:
    """One delivery to one process. `acknowledged` is None until the process ends."""

    def __init__(self, world: World, flow: Callable[[Services], object]) -> None:
        self.began_at = world.clock.now()
        self.acknowledged: bool | None = None
        self._boundary = Stepwise()
        services = world.services(self._boundary)
        self._paused = self._boundary.paused = Pausable(lambda: flow(services))

    def advance(self, calls: int, fails_after: bool | None = None) -> None:
        """Make up to `calls` more calls; the first may fail."""
        self._boundary.allowed = calls
        self._boundary.fails_after = fails_after
        self._resume(None)

    def kill(self) -> None:
        if self.acknowledged is None:
            self._resume(Killed("between two calls"))

    def _resume(self, crash: BaseException | None) -> None:
        try:
            if self._paused.resume(crash):
                self.acknowledged = True
        except Killed:
            self.acknowledged = False
        except TrainmasterError as error:
            self.acknowledged = not error.retryable
        except BaseException:
            self.acknowledged = False  # it has ended: the failed test must not kill it again
            raise
