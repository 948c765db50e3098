"""An injection, the call it sees, and the decision whether it strikes. Pure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

CODES: Mapping[int, str] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""HTTP statuses of injected errors, with the canonical code of each.

Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto; 412 and 502 are Cloud Storage's own.
"""

DEFAULT_CODE = 503


class Kind(Enum):
    """What happens to a call or a message that an injection strikes."""

    ERROR_BEFORE = "error_before"
    ERROR_AFTER = "error_after"
    DELAY = "delay"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    DROP = "drop"
    KILL = "kill"
    KILL_AFTER = "kill_after"


CALL_KINDS = frozenset({Kind.ERROR_BEFORE, Kind.ERROR_AFTER, Kind.DELAY, Kind.DUPLICATE, Kind.DROP})
"""The kinds for a request and for anything forwarded."""

FUNCTION_KINDS = CALL_KINDS | {Kind.KILL, Kind.KILL_AFTER}
DELIVERY_KINDS = frozenset({Kind.DELAY, Kind.DUPLICATE, Kind.REORDER, Kind.DROP})
OPENING_KINDS = frozenset({Kind.ERROR_BEFORE, Kind.DELAY})


@dataclass(frozen=True, kw_only=True)
class Injection:
    """One injection. `at` and `match` are globs (`*`, `?`, `[…]`), case-sensitive.

    The injection is evaluated at every call that it fits. It lets the first `skip` calls pass and strikes
    each later one with `probability` (0 to 1), at most `times` times, or without limit for None. `code` is
    the HTTP status of an error; `answer` names one of Vertex AI's own in its place. `seconds` is the length of a delay, or the time from a function's receipt of
    an event to its kill.
    """

    name: str
    at: str
    kind: Kind
    code: int = DEFAULT_CODE
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
class Plan:
    """Injections in the order of evaluation; their names are distinct. `seed` seeds every random decision."""

    injections: tuple[Injection, ...] = ()
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Call:
    """`at` is the place (`storage.objects.insert`); `subjects` are the names that `match` is compared with.

    Accounts show the first subject. `kinds` are those that apply here.
    """

    at: str
    subjects: tuple[str, ...] = ()
    kinds: frozenset[Kind] = CALL_KINDS

    @property
    def shown(self) -> str:
        return f"{self.at} {self.subjects[0]}" if self.subjects else self.at


def fits(injection: Injection, call: Call) -> bool:
    """Whether the injection is evaluated at this call."""
    return (
        injection.kind in call.kinds
        and fnmatchcase(call.at, injection.at)
        and (
            injection.match == "*" or any(fnmatchcase(subject, injection.match) for subject in call.subjects)
        )
    )


def strikes(injection: Injection, *, seed: int, asked: int, struck: int) -> bool:
    """Whether the injection strikes, after `asked` earlier evaluations of which `struck` struck.

    The same seed, name and number always give the same decision, whatever else happened.
    """
    if asked < injection.skip or (injection.times is not None and struck >= injection.times):
        return False
    if injection.probability >= 1:
        return True
    roll = random.Random(f"{seed}/{injection.name}/{asked}").random()  # noqa: S311  # to be repeated, not to be secret
    return roll < injection.probability
