"""Injections, the calls that they strike, and what they have struck so far. Shared by every emulator of a process, thread-safe."""

import asyncio
import functools
import random
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # so that the command, which reads plans, starts without a service
    from trainstack.outbox import Send
    from trainstack.publisher import Message, Publish

KEPT_SUBJECTS = 1000
"""The maximum number of struck calls that an account lists; counts have no limit."""

_Answer = TypeVar("_Answer")


class InjectionKind(Enum):
    """What happens to a call or a message that an injection strikes."""

    ERROR_BEFORE = "error_before"
    ERROR_AFTER = "error_after"
    DELAY = "delay"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    DROP = "drop"
    KILL = "kill"
    KILL_AFTER = "kill_after"
    OVER_QUOTA = "over_quota"
    STOCKOUT = "stockout"
    HOLD_QUEUED = "hold_queued"
    HOLD_PENDING = "hold_pending"
    START_WHILE_CANCELLED = "start_while_cancelled"
    SLOW_CANCEL = "slow_cancel"
    INTERNAL_ERROR = "internal_error"
    PREEMPT = "preempt"


JOBS = "vertex.jobs"
"""The place of what happens to jobs themselves, from their creation to their end."""

CALL_KINDS = frozenset(map(InjectionKind, ("error_before", "error_after", "delay", "duplicate", "drop")))
"""The kinds for a request and for anything forwarded."""

FUNCTION_KINDS = CALL_KINDS | {InjectionKind.KILL, InjectionKind.KILL_AFTER}
JOB_KINDS = frozenset(InjectionKind) - FUNCTION_KINDS - {InjectionKind.REORDER}
_KINDS_AT: Mapping[str, frozenset[InjectionKind]] = {
    "pubsub.deliver": frozenset(
        {InjectionKind.DELAY, InjectionKind.DUPLICATE, InjectionKind.REORDER, InjectionKind.DROP}
    ),
    "pubsub.streamingPull": frozenset({InjectionKind.ERROR_BEFORE, InjectionKind.DELAY}),
    JOBS: JOB_KINDS,
}


def kinds_of(place: str) -> frozenset[InjectionKind]:
    """The kinds that this place supports. A glob reaches it with these alone."""
    return FUNCTION_KINDS if place.startswith("functions.") else _KINDS_AT.get(place, CALL_KINDS)


@dataclass(frozen=True, kw_only=True)
class Injection:
    """One injection. `at` and `match` are globs (`*`, `?`, `[…]`), case-sensitive.

    The injection is evaluated at every call that it fits. It lets the first `skip` calls pass and strikes
    each later one with `probability` (0 to 1), at most `times` times, or without limit for None. `code` is
    the HTTP status of an error; `answer` names one of Vertex AI's own in its place. `seconds` is the length
    of a delay or of a cancellation, or the time from a function's receipt of an event to its kill, or from a job's
    start to its end.
    """

    name: str
    at: str
    kind: InjectionKind
    code: int = 503
    answer: str | None = None
    seconds: float = 1.0
    probability: float = 1.0
    skip: int = 0
    times: int | None = None
    match: str = "*"

    def to_json(self) -> dict[str, object]:
        """The form that `plan_from` reads, with every field."""
        return {**vars(self), "kind": self.kind.value}


@dataclass(frozen=True, kw_only=True)
class InjectionPlan:
    """Injections in the order of evaluation; their names are distinct. `seed` seeds every random decision."""

    injections: tuple[Injection, ...] = ()
    seed: int = 0


class Struck(Exception):
    """An injection refused a call or lost it, before or after it was done."""

    def __init__(self, injection: Injection) -> None:
        super().__init__(f"The injection {injection.name!r} struck here ({injection.kind.value}).")
        self.injection = injection


@dataclass(kw_only=True)
class InjectionAccount:
    """How often an injection was evaluated, how often it struck, and what it struck, in order."""

    injection: Injection
    asked: int = 0
    struck: int = 0
    on: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """The injection with its account."""
        return {**self.injection.to_json(), "asked": self.asked, "struck": self.struck, "on": list(self.on)}

    def strike(self, at: str, subjects: Sequence[str], seed: int) -> bool:
        """Whether the injection of this place strikes; counted, where the call's subjects match.

        The same seed, name and number always give the same decision.
        """
        one, number = self.injection, self.asked
        if one.match != "*" and not any(fnmatchcase(subject, one.match) for subject in subjects):
            return False
        self.asked += 1
        if number < one.skip or (one.times is not None and self.struck >= one.times):
            return False
        roll = random.Random(f"{seed}/{one.name}/{number}").random()  # noqa: S311  # to be repeated, not to be secret
        if roll >= one.probability:
            return False
        self.struck += 1
        if len(self.on) < KEPT_SUBJECTS:
            self.on.append(" ".join((at, *subjects[:1])))
        return True


class Injections:
    """Consulted at every boundary. Without injections, `concerns` is False everywhere."""

    def __init__(self, plan: InjectionPlan | None = None) -> None:
        self._lock = threading.Lock()
        self._accounts: dict[str, InjectionAccount] = {}
        self._seed = 0
        self.put(plan or InjectionPlan())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the active injections, in the order of evaluation."""
        return tuple(self._accounts)

    def concerns(self, at: str, kind: InjectionKind | None = None) -> bool:
        """Whether any injection, or any of that kind, applies to this place: cheap, and counts nothing."""
        return any(kind in (None, account.injection.kind) for account in self._at(at))

    def has(self, injection: Injection) -> bool:
        """Whether this injection is still active, neither removed nor replaced."""
        account = self._accounts.get(injection.name)
        return account is not None and account.injection is injection

    def strike(
        self, at: str, subjects: Sequence[str] = (), kind: InjectionKind | None = None
    ) -> Injection | None:
        """The injection that strikes a call at this place (`storage.objects.insert`); its account is updated.

        `subjects` are the names that `match` is compared with; accounts show the first. Injections that fit, of that
        `kind` if it is given, are evaluated in order until one strikes; those after it are not evaluated.
        """
        with self._lock:
            for account in self._at(at):
                if kind in (None, account.injection.kind) and account.strike(at, subjects, self._seed):
                    return account.injection
        return None

    def put(self, plan: InjectionPlan) -> None:
        """Append the plan's injections, as `change`. The plan's seed applies to all injections from then on."""
        self._seed = plan.seed
        self.change(plan.injections)

    def change(self, added: Iterable[Injection], removed: Collection[str] = ()) -> None:
        """Remove injections by name and append others with new accounts, at once.

        One with the name of an active injection replaces it.
        """
        new = {injection.name: InjectionAccount(injection=injection) for injection in added}
        gone = {*new, *removed}
        with self._lock:
            kept = {name: account for name, account in self._accounts.items() if name not in gone}
            self._accounts = {**kept, **new}

    def remove(self, name: str | None = None) -> bool:
        """Remove the injection of that name, or all for None; return whether there was one."""
        removed = [key for key in self.names if name in (None, key)]
        self.change((), removed)
        return bool(removed)

    def to_json(self) -> dict[str, object]:
        """The active plan, each injection with its account."""
        with self._lock:
            return {
                "seed": self._seed,
                "injections": [account.to_json() for account in self._accounts.values()],
            }

    def _at(self, place: str) -> Iterator[InjectionAccount]:
        for account in self._accounts.values():  # of one plan, even if another thread replaces it now
            if account.injection.kind in kinds_of(place) and fnmatchcase(place, account.injection.at):
                yield account


async def apply_injections(
    injections: Injections, at: str, subjects: Sequence[str], do: Callable[[], Awaitable[_Answer]]
) -> _Answer:
    """The response of `do`, which performs the call, or what an injection turns it into.

    Raises:
        Struck: an error before or after, or the call is lost.
        Exception: what `do` raises.
    """
    injection = injections.strike(at, subjects) if injections.concerns(at) else None
    match injection.kind if injection else None:
        case InjectionKind.DELAY if injection:
            await asyncio.sleep(injection.seconds)
        case InjectionKind.DUPLICATE:
            await do()
        case InjectionKind.ERROR_AFTER if injection:
            await do()
            raise Struck(injection)
        case InjectionKind.ERROR_BEFORE | InjectionKind.DROP if injection:
            raise Struck(injection)
    return await do()


def injected_send(
    injections: Injections,
    at: str,
    send: "Publish",
    subjects: Callable[[str, "Sequence[Message]"], tuple[str, ...]],
) -> "Send":
    """`send` in a thread, with the injections at this place; what an injection drops counts as sent.

    It raises `Struck` for an error before or after.
    """

    async def send_one(key: str, messages: "Sequence[Message]") -> None:
        do = functools.partial(asyncio.to_thread, send, key, messages)
        try:
            await apply_injections(injections, at, subjects(key, messages), do)
        except Struck as struck:
            if struck.injection.kind is not InjectionKind.DROP:
                raise

    return send_one
