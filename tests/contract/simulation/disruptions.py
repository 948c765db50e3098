"""Disruptions of a delivery at a call that leaves its process."""

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from tests.contract.world import Boundary, Killed
from trainmaster.orchestrator.core.errors import ServiceFailed, SubmissionUnknown, TrainmasterError

_Answer = TypeVar("_Answer")

SUBMIT = "submit"
WRITES = ("write ", "delete ", "publish", SUBMIT, "cancel", "upload", "move alias")
"""Prefixes of the names of calls that change something."""


class Disruption(StrEnum):
    """The kinds of disruption, as tallies name them."""

    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    KILLED_IN_FLIGHT = "killed in flight"
    """The process is gone; its request takes effect later."""
    FAILED_BEFORE = "error before"
    FAILED_AFTER = "error after"
    """The call took effect, but its response was lost."""
    REPEATED = "repeated by the client"
    """The response was lost, and the client library repeated the call."""
    PAUSED_BEFORE = "paused before"
    PAUSED_AFTER = "paused after"


PAUSES = frozenset({Disruption.PAUSED_BEFORE, Disruption.PAUSED_AFTER})


def changes(call_name: str) -> bool:
    return call_name.startswith(WRITES)


def failure(call_name: str) -> TrainmasterError:
    """The error that an adapter raises for a call without a response."""
    if call_name == SUBMIT:
        return SubmissionUnknown("the connection was cut")
    return ServiceFailed("The service", call_name, "injected by the simulation")


class DisruptedBoundary(Boundary):
    """The boundary of one delivery's process, which disrupts the calls that the plan names.

    Args:
        plan: the disruption of each disrupted call, by its number from 0.
        operations: counts the calls made, by name; shared by all deliveries.
        disruptions: counts the disruptions that occurred.
        pause: called where the process pauses; it returns when the process continues, or raises its crash.
        land: takes a call that a crashed process had in flight, to be made later.
    """

    def __init__(
        self,
        *,
        plan: Mapping[int, Disruption],
        operations: Counter[str],
        disruptions: Counter[str],
        pause: Callable[[str], None],
        land: Callable[[Callable[[], object]], None],
    ) -> None:
        super().__init__()
        self._plan = plan
        self._operations = operations
        self._disruptions = disruptions
        self._pause = pause
        self._land = land
        self._number = 0

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        disruption = self._plan.get(self._number)
        self._number += 1
        if disruption is None or (disruption is Disruption.KILLED_IN_FLIGHT and not changes(name)):
            self._operations[name] += 1
            return call()
        self._disruptions[disruption] += 1
        return self._disrupt(disruption, name, call)

    def _disrupt(self, disruption: Disruption, name: str, call: Callable[[], _Answer]) -> _Answer:
        match disruption:
            case Disruption.KILLED_BEFORE:
                raise Killed(f"before {name}")
            case Disruption.FAILED_BEFORE:
                raise failure(name)
            case Disruption.KILLED_IN_FLIGHT:
                self._operations[name] += 1
                self._land(call)
                raise Killed(f"during {name}")
            case Disruption.PAUSED_BEFORE:
                self._pause(name)
        self._operations[name] += 1
        try:
            answer = call()
        finally:  # the response is lost, even an error
            if disruption is Disruption.KILLED_AFTER:
                raise Killed(f"after {name}")
            if disruption is Disruption.FAILED_AFTER:
                raise failure(name)
        match disruption:
            case Disruption.REPEATED if name != SUBMIT:  # the adapter never repeats a submission
                self._operations[name] += 1
                return call()
            case Disruption.PAUSED_AFTER:
                self._pause(name)
        return answer
