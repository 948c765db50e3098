"""A delivery that goes on call by call, when it is told to, and may be killed between any two or fail at one."""

from collections.abc import Callable
from typing import TypeVar

from tests.contract.life.accidents import failure
from tests.contract.life.actors import Actor
from tests.contract.world import Boundary, Killed, World
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.flows.services import Services

_Answer = TypeVar("_Answer")


class Stepwise(Boundary):
    """Stops before every call beyond those it is allowed."""

    def __init__(self) -> None:
        super().__init__()
        self.actor: Actor | None = None
        self.allowed = 0
        self.fails_after: bool | None = None
        """The next call fails: before it is done, or after. None: it does not."""

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        while self.allowed == 0:
            assert self.actor is not None
            self.actor.stop()
        self.allowed -= 1
        fails_after, self.fails_after = self.fails_after, None
        if fails_after is None:
            return call()
        if fails_after:
            call()
        raise failure(name)


class Process:
    """One delivery to one process. `acknowledged` is None until it has ended."""

    def __init__(self, world: World, flow: Callable[[Services], object]) -> None:
        self.began_at = world.clock.now()
        self.acknowledged: bool | None = None
        self._boundary = Stepwise()
        services = world.services(self._boundary)
        self._actor = self._boundary.actor = Actor(lambda: flow(services))

    def go_on(self, calls: int, fails_after: bool | None = None) -> None:
        """Make so many calls more, if there are so many; the first may fail."""
        self._boundary.allowed = calls
        self._boundary.fails_after = fails_after
        self._resumed(None)

    def kill(self) -> None:
        if self.acknowledged is None:
            self._resumed(Killed("between two calls"))

    def _resumed(self, death: BaseException | None) -> None:
        try:
            if self._actor.resume(death):
                self.acknowledged = True
        except Killed:
            self.acknowledged = False
        except TrainmasterError as error:
            self.acknowledged = not error.retryable
        except BaseException:
            self.acknowledged = False  # a test that failed in it ends all its processes, and this one is over
            raise
