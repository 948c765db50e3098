"""What may befall a delivery at one of the calls that leave its process."""

from collections import Counter
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeVar

from tests.contract.world import Boundary, Killed
from trainmaster.orchestrator.core.errors import ServiceFailed, SubmissionUnknown, TrainmasterError

_Answer = TypeVar("_Answer")

SUBMIT = "submit"
WRITES = ("write ", "delete ", "publish", SUBMIT, "cancel")
"""Calls that change something, by the beginnings of their names."""
READS_OF_JOBS = ("find jobs", "read job")


class Accident(StrEnum):
    """Names of faults, for the account of them."""

    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    KILLED_IN_FLIGHT = "killed in flight"
    """The process is gone, and what it had asked for is done some time later."""
    FAILED_BEFORE = "error before"
    FAILED_AFTER = "error after"
    """Done, but not told."""
    REPEATED = "repeated by the client"
    """The answer was lost, and the client library asked again."""
    PAUSED_BEFORE = "paused before"
    PAUSED_AFTER = "paused after"


PAUSES = frozenset({Accident.PAUSED_BEFORE, Accident.PAUSED_AFTER})


def changes(call_name: str) -> bool:
    return call_name.startswith(WRITES)


def failure(call_name: str) -> TrainmasterError:
    """The error that an adapter raises for a call whose answer did not come."""
    if call_name == SUBMIT:
        return SubmissionUnknown("the connection was cut")
    return ServiceFailed("The service", call_name, "injected by the simulation")


class AccidentBoundary(Boundary):
    """The edge of one delivery's process: at the numbered calls something befalls it.

    Args:
        plan: what happens at which call, counted from 0.
        operations: counts every call that was made, by name; shared by all deliveries.
        struck: counts every accident that came to pass.
        pause: called where the process is paused; it returns when the process goes on, or raises its death.
        land: takes a change that a dead process had asked for, to be done some time later.
    """

    def __init__(
        self,
        *,
        plan: Mapping[int, Accident],
        operations: Counter[str],
        struck: Counter[str],
        pause: Callable[[str], None],
        land: Callable[[Callable[[], object]], None],
    ) -> None:
        super().__init__()
        self._plan = plan
        self._operations = operations
        self._struck = struck
        self._pause = pause
        self._land = land
        self._number = 0

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        accident = self._plan.get(self._number)
        self._number += 1
        if accident is None or (accident is Accident.KILLED_IN_FLIGHT and not changes(name)):
            self._operations[name] += 1
            return call()
        self._struck[accident] += 1
        return self._befallen(accident, name, call)

    def _befallen(self, accident: Accident, name: str, call: Callable[[], _Answer]) -> _Answer:
        match accident:
            case Accident.KILLED_BEFORE:
                raise Killed(f"before {name}")
            case Accident.FAILED_BEFORE:
                raise failure(name)
            case Accident.KILLED_IN_FLIGHT:
                self._operations[name] += 1
                self._land(call)
                raise Killed(f"during {name}")
            case Accident.PAUSED_BEFORE:
                self._pause(name)
        self._operations[name] += 1
        try:
            answer = call()
        finally:  # whatever the service answered, nobody hears it
            if accident is Accident.KILLED_AFTER:
                raise Killed(f"after {name}")
            if accident is Accident.FAILED_AFTER:
                raise failure(name)
        match accident:
            case Accident.REPEATED if name != SUBMIT:  # the adapter never repeats a submission
                self._operations[name] += 1
                return call()
            case Accident.PAUSED_AFTER:
                self._pause(name)
        return answer
