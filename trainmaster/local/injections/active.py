"""The active injections and their accounts, shared by every emulator of a process. Thread-safe."""

import threading
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from trainmaster.local.injections.injection import Call, Injection, Plan, fits, strikes

KEPT_SUBJECTS = 1000
"""The maximum number of struck calls that an account lists; counts have no limit."""


@dataclass(kw_only=True)
class Account:
    """How often an injection was evaluated, how often it struck, and what it struck, in order."""

    asked: int = 0
    struck: int = 0
    on: list[str] = field(default_factory=list)


class Injections:
    """Consulted at every boundary. Without injections, `active` is False and nothing else needs to be called."""

    def __init__(self, plan: Plan | None = None) -> None:
        self._lock = threading.Lock()
        self._use(plan or Plan())
        self._accounts = {injection.name: Account() for injection in self._plan.injections}

    @property
    def active(self) -> bool:
        return bool(self._plan.injections)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the active injections, in the order of evaluation."""
        return tuple(injection.name for injection in self._plan.injections)

    def concerns(self, at: str) -> bool:
        """Whether any injection applies to this place: cheap, and counts nothing."""
        return bool(self._at(at))

    def strike(self, call: Call) -> Injection | None:
        """The injection that strikes this call; its account is updated.

        Injections that fit are evaluated in order until one strikes; those after it are not evaluated.
        """
        with self._lock:
            for injection in self._at(call.at):
                if not fits(injection, call):
                    continue
                account = self._accounts[injection.name]
                struck = strikes(injection, seed=self._plan.seed, asked=account.asked, struck=account.struck)
                account.asked += 1
                if struck:
                    account.struck += 1
                    if len(account.on) < KEPT_SUBJECTS:
                        account.on.append(call.shown)
                    return injection
        return None

    def put(self, plan: Plan) -> None:
        """Append the plan's injections, with new accounts.

        One with the name of an active injection replaces it. The plan's seed applies to all injections from
        then on.
        """
        with self._lock:
            new = {injection.name: injection for injection in plan.injections}
            kept = [injection for injection in self._plan.injections if injection.name not in new]
            self._use(Plan(injections=(*kept, *plan.injections), seed=plan.seed))
            self._accounts.update({name: Account() for name in new})

    def remove(self, name: str | None = None) -> bool:
        """Remove the injection of that name, or all for None; return whether there was one."""
        with self._lock:
            kept = tuple(
                injection
                for injection in self._plan.injections
                if name is not None and injection.name != name
            )
            found = len(kept) < len(self._plan.injections)
            self._use(Plan(injections=kept, seed=self._plan.seed))
            self._accounts = {injection.name: self._accounts[injection.name] for injection in kept}
        return found

    def account(self, name: str) -> Account:
        """A copy. Raises `KeyError` if there is no such injection."""
        with self._lock:
            found = self._accounts[name]
            return Account(asked=found.asked, struck=found.struck, on=list(found.on))

    def to_json(self) -> dict[str, object]:
        """The active plan, each injection with its account."""
        with self._lock:
            return {
                "seed": self._plan.seed,
                "injections": [self._shown(injection) for injection in self._plan.injections],
            }

    def _use(self, plan: Plan) -> None:
        self._plan = plan
        self._by_place: dict[str, tuple[Injection, ...]] = {}

    def _at(self, place: str) -> tuple[Injection, ...]:
        by_place = self._by_place  # of one plan, even if another thread replaces it now
        found = by_place.get(place)
        if found is None:
            found = tuple(each for each in self._plan.injections if fnmatchcase(place, each.at))
            by_place[place] = found
        return found

    def _shown(self, injection: Injection) -> dict[str, object]:
        account = self._accounts[injection.name]
        return {**injection.to_json(), **vars(account), "on": list(account.on)}
