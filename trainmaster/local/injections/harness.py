"""The faults in force and their accounts, shared by every emulator of a process. Any thread may call."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from trainmaster.local.injections.fault import Fault, Kind, Plan
from trainmaster.local.injections.point import Call, fits, strikes

KEPT_SUBJECTS = 1000
"""How many struck calls an account names; the counts go on."""

Kill = Callable[[], None]

KILLS = frozenset({Kind.KILL, Kind.KILL_AFTER})


@dataclass(kw_only=True)
class Account:
    """How often a fault was asked, how often it struck, and what it struck, in order."""

    asked: int = 0
    struck: int = 0
    on: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class _Held:
    fault: Fault
    overtaken: "Future[None]"


class Faults:
    """Asked at every boundary. While there is no fault, `active` is False and nothing else need be called."""

    def __init__(self, plan: Plan | None = None) -> None:
        self._lock = threading.Lock()
        self._plan = plan or Plan()
        self._accounts = {fault.name: Account() for fault in self._plan.faults}
        self._held: list[_Held] = []
        self.killer_of: Callable[[int], Kill | None] = lambda _port: None
        """What kills the function whose connection comes from a local port; None when that is no function's.

        Until a host of functions says so, no process is anybody's to kill."""

    @property
    def active(self) -> bool:
        return bool(self._plan.faults)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the faults in force, in the order they are asked."""
        return tuple(fault.name for fault in self._plan.faults)

    def concerns(self, at: str) -> bool:
        """Whether any fault is about this place: cheap, and counts nothing."""
        return any(fnmatchcase(at, fault.at) for fault in self._plan.faults)

    def killer_at(self, at: str, port: int) -> Kill | None:
        """As `killer_of`, where a fault kills at this place; looks at no process where none does."""
        if any(fault.kind in KILLS and fnmatchcase(at, fault.at) for fault in self._plan.faults):
            return self.killer_of(port)
        return None

    def strike(self, call: Call) -> Fault | None:
        """The fault that strikes this call, with its account written.

        The faults that fit are asked in their order, until one strikes; those behind it are not asked.
        """
        with self._lock:
            for fault in self._plan.faults:
                if not fits(fault, call):
                    continue
                account = self._accounts[fault.name]
                struck = strikes(fault, seed=self._plan.seed, asked=account.asked, struck=account.struck)
                account.asked += 1
                if struck:
                    account.struck += 1
                    if len(account.on) < KEPT_SUBJECTS:
                        account.on.append(call.shown)
                    return fault
        return None

    def hold(self, fault: Fault) -> "Future[None]":
        """Done when another call that the fault fits has passed, or the fault is gone."""
        held = _Held(fault=fault, overtaken=Future())
        with self._lock:
            self._held.append(held)
        return held.overtaken

    def passed(self, call: Call) -> None:
        """Let the calls go on that were held back for this one to overtake them."""
        if self._held:
            self._release(lambda held: fits(held.fault, call))

    def put(self, plan: Plan) -> None:
        """Add the plan's faults behind those in force, each in the place of one of its name, with new accounts.

        The plan's seed holds for all from now on.
        """
        with self._lock:
            new = {fault.name: fault for fault in plan.faults}
            kept = [fault for fault in self._plan.faults if fault.name not in new]
            self._plan = Plan(faults=(*kept, *plan.faults), seed=plan.seed)
            self._accounts.update({name: Account() for name in new})

    def remove(self, name: str | None = None) -> bool:
        """Whether there was a fault of that name; it is gone, and what it held back goes on. None removes all."""
        with self._lock:
            kept = tuple(fault for fault in self._plan.faults if name is not None and fault.name != name)
            found = len(kept) < len(self._plan.faults)
            self._plan = Plan(faults=kept, seed=self._plan.seed)
            self._accounts = {fault.name: self._accounts[fault.name] for fault in kept}
        self._release(lambda held: name is None or held.fault.name == name)
        return found

    def account(self, name: str) -> Account:
        """A copy. Raises `KeyError` when there is no such fault."""
        with self._lock:
            found = self._accounts[name]
            return Account(asked=found.asked, struck=found.struck, on=list(found.on))

    def to_json(self) -> dict[str, object]:
        """The plan in force, each fault with its account."""
        with self._lock:
            return {
                "seed": self._plan.seed,
                "faults": [self._shown(fault) for fault in self._plan.faults],
            }

    def one_to_json(self, name: str) -> dict[str, object] | None:
        """The fault of that name with its account; None when there is none."""
        with self._lock:
            found = (fault for fault in self._plan.faults if fault.name == name)
            return next((self._shown(fault) for fault in found), None)

    def _shown(self, fault: Fault) -> dict[str, object]:
        account = self._accounts[fault.name]
        return {**fault.to_json(), **vars(account), "on": list(account.on)}

    def _release(self, which: Callable[[_Held], bool]) -> None:
        with self._lock:
            released = [held for held in self._held if held.overtaken.done() or which(held)]
            self._held = [held for held in self._held if held not in released]
        for held in released:
            with contextlib.suppress(InvalidStateError):  # its time was up a moment ago
                held.overtaken.set_result(None)
