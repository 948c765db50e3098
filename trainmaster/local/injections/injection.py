"""What an injection is, what it sees of a call, and the decision whether it strikes. Values in, values out."""

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
"""HTTP statuses an injection may answer, with the canonical code of each.

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
"""What can happen to a request, and to whatever is sent on."""

FUNCTION_KINDS = CALL_KINDS | {Kind.KILL, Kind.KILL_AFTER}
DELIVERY_KINDS = frozenset({Kind.DELAY, Kind.DUPLICATE, Kind.REORDER, Kind.DROP})
OPENING_KINDS = frozenset({Kind.ERROR_BEFORE, Kind.DELAY})


@dataclass(frozen=True, kw_only=True)
class Injection:
    """One injection. `at` and `match` are globs (`*`, `?`, `[…]`), letters count as written.

    The injection is asked at every call that it fits. The first `skip` of them pass; of the others it strikes with
    `probability` (0 to 1), at most `times` times, or for ever when None.
    `code` is the HTTP status of an error. `seconds` is how long a delay takes, and how long after it was given an event
    its function is killed.
    """

    name: str
    at: str
    kind: Kind
    code: int = DEFAULT_CODE
    seconds: float = 1.0
    probability: float = 1.0
    skip: int = 0
    times: int | None = None
    match: str = "*"

    def to_json(self) -> dict[str, object]:
        """As `plan_from` reads it, every field written out."""
        return {**vars(self), "kind": self.kind.value}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Injections in the order they are asked; their names are distinct. `seed` decides every probability."""

    injections: tuple[Injection, ...] = ()
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Call:
    """`at` is the place (`storage.objects.insert`); `subjects` are the names that `match` may name.

    The first subject stands for the call in accounts. `kinds` are those that make sense here.
    """

    at: str
    subjects: tuple[str, ...] = ()
    kinds: frozenset[Kind] = CALL_KINDS

    @property
    def shown(self) -> str:
        return f"{self.at} {self.subjects[0]}" if self.subjects else self.at


def fits(injection: Injection, call: Call) -> bool:
    """Whether the injection is asked at this call."""
    return (
        injection.kind in call.kinds
        and fnmatchcase(call.at, injection.at)
        and (
            injection.match == "*" or any(fnmatchcase(subject, injection.match) for subject in call.subjects)
        )
    )


def strikes(injection: Injection, *, seed: int, asked: int, struck: int) -> bool:
    """Whether the injection strikes, having been asked `asked` times before and having struck `struck` of them.

    The same seed, name and number always decide alike, whatever other injections there are and whatever was between.
    """
    if asked < injection.skip or (injection.times is not None and struck >= injection.times):
        return False
    if injection.probability >= 1:
        return True
    roll = random.Random(f"{seed}/{injection.name}/{asked}").random()  # noqa: S311  # to be repeated, not to be secret
    return roll < injection.probability
