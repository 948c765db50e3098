"""Parses a plan of injections from JSON or YAML values."""

import re
from collections.abc import Callable

from trainmaster.local.injections.answers import ANSWERS
from trainmaster.local.injections.injection import CODES, Injection, Kind, Plan
from trainmaster.local.injections.places import GLOB_MAX_CHARS, kind_out_of_place, unknown_kind, unknown_place
from trainmaster.local.reading import Reading, is_count, is_number_in

LONGEST_S = 600
"""The longest delay; no client waits longer."""


def _is_answer(value: object) -> bool:
    return value is None or (isinstance(value, str) and value in ANSWERS)


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_EXPECTED: dict[str, tuple[str, Callable[[object], bool]]] = {
    "name": (
        "up to 100 letters, digits, '.', '_' and '-'",
        lambda value: isinstance(value, str) and bool(_NAME.fullmatch(value)),
    ),
    "code": (f"one of {sorted(CODES)}", lambda value: is_count(value) and value in CODES),
    "answer": (f"one of {sorted(ANSWERS)}", _is_answer),
    "seconds": (f"seconds from 0 to {LONGEST_S}", lambda value: is_number_in(value, 0, LONGEST_S)),
    "probability": ("a number from 0 to 1", lambda value: is_number_in(value, 0, 1)),
    "skip": ("an integer of at least 0", is_count),
    "times": ("an integer of at least 0", lambda value: value is None or is_count(value)),
    "match": (
        f"a glob of at most {GLOB_MAX_CHARS} characters",
        lambda value: isinstance(value, str) and 0 < len(value) <= GLOB_MAX_CHARS,
    ),
}
_FIELDS = ("name", "at", "kind", "code", "answer", "seconds", "probability", "skip", "times", "match")


class BadInjectionsError(Exception):
    """The document is not a valid plan of injections; the message has a line for each fault."""


def plan_from(document: object) -> Plan:
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
    reading.expect(_is_whole(seed), "$.seed", "an integer", seed)
    read = [
        _injection(reading, item, path if is_one else f"{path}[{index}]") for index, item in enumerate(items)
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
    return Plan(injections=injections, seed=seed)


def _injection(reading: Reading, value: object, path: str) -> Injection | None:
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
    for key, complaint_of in (("at", unknown_place), ("kind", unknown_kind)):
        if key in value and (complaint := complaint_of(value[key])):
            reading.wrong.append(f"{path}.{key}: {complaint}")
    for key, (expected, is_good) in _EXPECTED.items():
        if key in value:
            reading.expect(is_good(value[key]), f"{path}.{key}", expected, value[key])
    if len(reading.wrong) > before:
        return None
    injection = Injection(**{**value, "kind": Kind(value["kind"])})
    if injection.answer is not None and not injection.at.startswith("vertex."):
        reading.wrong.append(f"{path}.answer: only Vertex AI gives it; use at: vertex.METHOD, or code.")
    if complaint := kind_out_of_place(injection.at, injection.kind):
        reading.wrong.append(f"{path}.kind: {complaint}")
    return injection


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
