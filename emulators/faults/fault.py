"""What a fault is, and how a plan of faults is read from JSON or YAML values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase

SERVICES = ("storage", "pubsub", "vertex", "logging", "functions")

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
"""HTTP statuses a fault may answer, with the canonical code of each.

Source: https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto; 412 and 502 are Cloud Storage's own.
"""

DEFAULT_CODE = 503


class Kind(Enum):
    """What happens to a call or a message that a fault strikes."""

    ERROR_BEFORE = "error_before"
    ERROR_AFTER = "error_after"
    DELAY = "delay"
    DUPLICATE = "duplicate"
    REORDER = "reorder"
    DROP = "drop"
    KILL = "kill"
    KILL_AFTER = "kill_after"


EVERY_KIND = frozenset(Kind)
SENDING_KINDS = EVERY_KIND - {Kind.REORDER, Kind.KILL, Kind.KILL_AFTER}
DELIVERY_KINDS = frozenset({Kind.DELAY, Kind.DUPLICATE, Kind.REORDER, Kind.DROP})
OPENING_KINDS = frozenset({Kind.ERROR_BEFORE, Kind.DELAY})

KINDS_AT: Mapping[str, frozenset[Kind]] = {
    "storage.notify": SENDING_KINDS,
    "logging.export": SENDING_KINDS,
    "pubsub.deliver": DELIVERY_KINDS,
    "pubsub.streamingPull": OPENING_KINDS,
}
"""Where not every kind has a meaning. A glob reaches these places with the kinds they know."""


class BadFaultsError(Exception):
    """A document is no plan of faults; the message has a line for each thing wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One fault. `at` and `match` are globs (`*`, `?`, `[…]`), letters count as written.

    The fault is asked at every call that it fits. The first `skip` of them pass; of the others it strikes with
    `probability` (0 to 1), at most `times` times, or for ever when None.
    `code` is the HTTP status of an error. `seconds` is how long a delay takes, the longest that a reordered call
    waits to be overtaken, and how long after it was given an event its function is killed.
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
    """Faults in the order they are asked; their names are distinct. `seed` decides every probability."""

    faults: tuple[Fault, ...] = ()
    seed: int = 0


@dataclass(kw_only=True)
class _Reading:
    """A document being read; every fault found goes to `wrong`."""

    wrong: list[str] = field(default_factory=list)

    def fault(self, value: object, path: str) -> Fault | None:
        if not isinstance(value, dict):
            self.wrong.append(f'{path}: expected a fault like {{"name", "at", "kind"}}, found {value!r:.80}.')
            return None
        before = len(self.wrong)
        fields = {key: value[key] for key in value if key in _FIELDS}
        self.wrong += [
            f"{path}.{key}: there is no such field; a fault has {', '.join(_FIELDS)}."
            for key in value
            if key not in _FIELDS
        ]
        for key in ("name", "at", "kind"):
            if key not in value:
                self.wrong.append(f"{path}.{key}: missing; every fault has a name, a place and a kind.")
        for key, found in fields.items():
            if complaint := _FIELDS[key](found):
                self.wrong.append(f"{path}.{key}: {complaint}")
        if len(self.wrong) > before:
            return None
        fault = Fault(**{**fields, "kind": Kind(fields["kind"])})
        known = KINDS_AT.get(fault.at, EVERY_KIND)
        if fault.kind not in known:
            self.wrong.append(
                f"{path}.kind: {fault.at} knows only {_kinds(known)}, found {fault.kind.value!r}."
            )
        return fault


def plan_from(document: object) -> Plan:
    """A plan from `{"seed": …, "faults": […]}`, from a list of faults, or from one fault.

    Raises:
        BadFaultsError: with everything that is wrong, each thing with its path.
    """
    reading = _Reading()
    seed: object = 0
    if isinstance(document, dict) and "faults" in document:
        seed, items = document.get("seed", 0), document["faults"]
        reading.wrong += [
            f"$.{key}: there is no such field; a plan has seed and faults."
            for key in document.keys() - {"seed", "faults"}
        ]
    else:
        items = document if isinstance(document, list) else [document]
    if not isinstance(items, list):
        reading.wrong.append(f"$.faults: expected a list, found {items!r:.80}.")
        items = []
    if isinstance(seed, bool) or not isinstance(seed, int):
        reading.wrong.append(f"$.seed: expected a whole number, found {seed!r:.80}.")
        seed = 0
    read = [reading.fault(item, f"$.faults[{index}]") for index, item in enumerate(items)]
    faults = tuple(fault for fault in read if fault is not None)
    names = [fault.name for fault in faults]
    reading.wrong += [
        f"$.faults: the name {name!r} is there {names.count(name)} times; accounts are kept by name, so each has its own."
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if reading.wrong:
        raise BadFaultsError("\n".join(reading.wrong))
    return Plan(faults=faults, seed=seed)


def _kinds(kinds: frozenset[Kind]) -> str:
    return ", ".join(kind.value for kind in Kind if kind in kinds)


def _name(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        return ""
    return f"expected up to 100 letters, digits, '.', '_' and '-', found {value!r:.120}."


def _place(value: object) -> str:
    service = value.partition(".")[0] if isinstance(value, str) else ""
    if (
        isinstance(value, str)
        and ("." in value or "*" in value)
        and any(fnmatchcase(one, service) for one in SERVICES)
    ):
        return ""
    return (
        f"expected SERVICE.METHOD or a glob of it, like storage.objects.insert or functions.*, found {value!r:.80}; "
        f"the services are {', '.join(SERVICES)}."
    )


def _kind(value: object) -> str:
    known = [kind.value for kind in Kind]
    return "" if value in known else f"expected one of {', '.join(known)}, found {value!r:.80}."


def _code(value: object) -> str:
    return (
        ""
        if _is_number(value, whole=True) and value in CODES
        else f"expected one of {sorted(CODES)}, found {value!r:.80}."
    )


def _seconds(value: object) -> str:
    good = isinstance(value, int | float) and _is_number(value) and 0 <= value <= 600  # noqa: PLR2004  # no client waits longer
    return "" if good else f"expected seconds from 0 to 600, found {value!r:.80}."


def _probability(value: object) -> str:
    good = isinstance(value, int | float) and _is_number(value) and 0 <= value <= 1
    return "" if good else f"expected a number from 0 to 1, found {value!r:.80}."


def _count(value: object) -> str:
    good = isinstance(value, int) and _is_number(value, whole=True) and value >= 0
    return "" if good else f"expected a whole number from 0 on, found {value!r:.80}."


def _times(value: object) -> str:
    return "" if value is None else _count(value)


def _glob(value: object) -> str:
    return "" if isinstance(value, str) and value else f"expected a glob, found {value!r:.80}."


def _is_number(value: object, *, whole: bool = False) -> bool:
    return isinstance(value, int if whole else int | float) and not isinstance(value, bool)


_FIELDS = {
    "name": _name,
    "at": _place,
    "kind": _kind,
    "code": _code,
    "seconds": _seconds,
    "probability": _probability,
    "skip": _count,
    "times": _times,
    "match": _glob,
}
