"""Plans of injections, read from JSON or YAML values: where an injection can strike, and what is wrong with one that never could."""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fnmatch import fnmatchcase

from trainstack.iam.authorization import REQUIRED
from trainstack.injections.active import (
    FUNCTION_KINDS,
    JOBS,
    Injection,
    InjectionKind,
    InjectionPlan,
    kinds_of,
)
from trainstack.injections.answers import ANSWERS
from trainstack.reading import Reading, is_count, is_number_in

SERVICES = ("storage", "pubsub", "vertex", "logging", "monitoring", "functions")
PLACES = tuple(
    sorted(
        {
            "storage.notify",
            "pubsub.deliver",
            "logging.export",
            JOBS,
            *(m for m in REQUIRED if m.startswith(SERVICES)),
        }
    )
)
"""Every place except `functions.NAME`: functions are named by the topology, which a plan does not know."""

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

LONGEST_S = 600
"""The longest delay; no client waits longer."""
GLOB_MAX_CHARS = 1024
"""Of a glob. Python's takes time that grows with the square of its length."""
_NEAR_CHARS = 200
_KINDS = [kind.value for kind in InjectionKind]
_KNOWN = (*PLACES, *dict.fromkeys(f"{place.rpartition('.')[0]}.*" for place in PLACES), "functions.NAME")
_FUNCTION_GLOB = re.compile(r"[A-Za-z0-9_*?!\[\]-]+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_EXPECTED: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    "name": (
        "up to 100 letters, digits, '.', '_' and '-'",
        lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value)),
    ),
    "code": (f"one of {sorted(CODES)}", lambda value: is_count(value) and value in CODES),
    "answer": (f"one of {sorted(ANSWERS)}", lambda value: value is None or value in tuple(ANSWERS)),
    "seconds": (f"seconds from 0 to {LONGEST_S}", lambda value: is_number_in(value, 0, LONGEST_S)),
    "probability": ("a number from 0 to 1", lambda value: is_number_in(value, 0, 1)),
    "skip": ("an integer of at least 0", is_count),
    "times": ("an integer of at least 0", lambda value: value is None or is_count(value)),
    "match": (
        f"a glob of at most {GLOB_MAX_CHARS} characters",
        lambda value: isinstance(value, str) and 0 < len(value) <= GLOB_MAX_CHARS,
    ),
}
_FIELDS = tuple(field.name for field in fields(Injection))


class BadInjectionsError(Exception):
    """The document is not a valid plan of injections; the message has a line for each fault."""


def plan_from(document: object) -> InjectionPlan:
    """A plan from `{"seed": …, "injections": […]}`, from a list of injections, or from one injection.

    Raises:
        BadInjectionsError: with every fault, each with its path.
    """
    reading = Reading()
    seed: object = 0
    path, items = "$", document if isinstance(document, list) else [document]
    if isinstance(document, dict) and "injections" in document:
        path, items, seed = "$.injections", document["injections"], document.get("seed", 0)
        reading.mapping(document, "$", known=("seed", "injections"))
        if not reading.expect(isinstance(items, list), path, "a list", items):
            items = []
    is_one = path == "$" and not isinstance(document, list)
    is_whole = isinstance(seed, int) and not isinstance(seed, bool)
    reading.expect(is_whole, "$.seed", "an integer", seed)
    read = [
        injection_from(reading, item, path if is_one else f"{path}[{index}]")
        for index, item in enumerate(items)
    ]
    injections = tuple(injection for injection in read if injection is not None)
    names = [injection.name for injection in injections]
    reading.wrong += [
        f"{path}: duplicate name {name!r}, found {names.count(name)} times; use distinct names, because accounts are kept by name."
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if reading.wrong or not isinstance(seed, int):
        raise BadInjectionsError("\n".join(reading.wrong))
    return InjectionPlan(injections=injections, seed=seed)


def injection_from(reading: Reading, value: object, path: str) -> Injection | None:
    """An injection from a value at this path of a document; None if it is faulty."""
    if not isinstance(value, dict):
        reading.expect(False, path, 'an injection like {"name", "at", "kind"}', value)
        return None
    before = len(reading.wrong)
    for key in value:
        if key not in _FIELDS:
            reading.wrong.append(f"{path}.{key}: unknown field; an injection has {', '.join(_FIELDS)}.")
    for key in ("name", "at", "kind"):
        if key not in value:
            reading.wrong.append(f"{path}.{key}: missing; every injection needs a name, a place and a kind.")
    if "at" in value and (not isinstance(value["at"], str) or not kinds_at(value["at"])):
        reading.wrong.append(f"{path}.at: {_unknown_place(value['at'])}")
    if "kind" in value and value["kind"] not in _KINDS:
        near = "; ".join(filter(None, [repr(value["kind"])[:80], _nearest(value["kind"], _KINDS)]))
        known = f"expected one of {', '.join(_KINDS)}, found {near}"
        reading.wrong.append(f"{path}.kind: {known}" + ("" if known.endswith("?") else "."))
    for key, (expected, is_good) in _EXPECTED.items():
        if key in value:
            reading.expect(is_good(value[key]), f"{path}.{key}", expected, value[key])
    at, kind, answer = (value.get(key) for key in ("at", "kind", "answer"))
    known_kinds = kinds_at(at) if isinstance(at, str) else frozenset()
    if known_kinds and kind in _KINDS and InjectionKind(kind) not in known_kinds:
        listed = ", ".join(one.value for one in InjectionKind if one in known_kinds)
        reading.wrong.append(f"{path}.kind: {at:.80} supports only {listed}, found {kind!r}.")
    if answer in tuple(ANSWERS) and known_kinds and not str(at).startswith("vertex."):
        reading.wrong.append(f"{path}.answer: only Vertex AI gives it; use at: vertex.METHOD, or code.")
    if len(reading.wrong) > before:
        return None
    return Injection(**{**value, "kind": InjectionKind(kind)})


def kinds_at(glob: str) -> frozenset[InjectionKind]:
    """The kinds that at least one place named or matched by `glob` supports; none if it matches no place."""
    if len(glob) > GLOB_MAX_CHARS:
        return frozenset()
    kinds = [kinds_of(place) for place in PLACES if fnmatchcase(place, glob)]
    service, _, name = glob.partition(".")
    # A plan does not know which functions exist; a glob may match their service as any other.
    if glob == "*" or (_FUNCTION_GLOB.fullmatch(name) and fnmatchcase("functions", service)):
        kinds.append(FUNCTION_KINDS)
    return frozenset[InjectionKind]().union(*kinds)


def _unknown_place(at: object) -> str:
    """With the closest known place, and what its service has."""
    service = at.partition(".")[0] if isinstance(at, str) else ""
    known = [place.removeprefix(f"{service}.") for place in PLACES if place.startswith(f"{service}.")]
    there = f"{service} has {', '.join(known)}" if known else f"the services are {', '.join(SERVICES)}"
    hint = " ".join(filter(None, [f"found {at!r:.80};", _nearest(at, _KNOWN), f"{there}."]))
    return f"expected SERVICE.METHOD or a glob of it, like storage.objects.insert or functions.*, {hint}"


def _nearest(word: object, known: Sequence[str]) -> str:
    """`did you mean 'kill'?`, or nothing if no known word is close."""
    # difflib's cost is quadratic in the length.
    if not isinstance(word, str) or len(word) > _NEAR_CHARS:
        return ""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else ""
