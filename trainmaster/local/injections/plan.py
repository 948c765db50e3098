"""How a plan of injections is read from JSON or YAML values."""

import re
from dataclasses import dataclass, field

from trainmaster.local.injections.injection import CODES, Injection, Kind, Plan
from trainmaster.local.injections.places import kind_out_of_place, unknown_kind, unknown_place


class BadInjectionsError(Exception):
    """A document is no plan of injections; the message has a line for each thing wrong with it."""


@dataclass(kw_only=True)
class _Reading:
    """A document being read; every injection found goes to `wrong`."""

    wrong: list[str] = field(default_factory=list)

    def injection(self, value: object, path: str) -> Injection | None:
        if not isinstance(value, dict):
            self.wrong.append(
                f'{path}: expected an injection like {{"name", "at", "kind"}}, found {value!r:.80}.'
            )
            return None
        before = len(self.wrong)
        fields = {key: value[key] for key in value if key in _FIELDS}
        self.wrong += [
            f"{path}.{key}: there is no such field; an injection has {', '.join(_FIELDS)}."
            for key in value
            if key not in _FIELDS
        ]
        for key in ("name", "at", "kind"):
            if key not in value:
                self.wrong.append(f"{path}.{key}: missing; every injection has a name, a place and a kind.")
        for key, found in fields.items():
            if complaint := _FIELDS[key](found):
                self.wrong.append(f"{path}.{key}: {complaint}")
        if len(self.wrong) > before:
            return None
        injection = Injection(**{**fields, "kind": Kind(fields["kind"])})
        if complaint := kind_out_of_place(injection.at, injection.kind):
            self.wrong.append(f"{path}.kind: {complaint}")
        return injection


def plan_from(document: object) -> Plan:
    """A plan from `{"seed": …, "injections": […]}`, from a list of injections, or from one injection.

    Raises:
        BadInjectionsError: with everything that is wrong, each thing with its path.
    """
    reading = _Reading()
    seed: object = 0
    path = "$"
    if isinstance(document, dict) and "injections" in document:
        seed, items, path = document.get("seed", 0), document["injections"], "$.injections"
        reading.wrong += [
            f"$.{key}: there is no such field; a plan has seed and injections."
            for key in document.keys() - {"seed", "injections"}
        ]
    else:
        items = document
    if isinstance(items, list):
        found = [(f"{path}[{index}]", item) for index, item in enumerate(items)]
    elif path == "$":
        found = [(path, items)]
    else:
        reading.wrong.append(f"{path}: expected a list, found {items!r:.80}.")
        found = []
    if isinstance(seed, bool) or not isinstance(seed, int):
        reading.wrong.append(f"$.seed: expected a whole number, found {seed!r:.80}.")
        seed = 0
    read = [reading.injection(item, where) for where, item in found]
    injections = tuple(injection for injection in read if injection is not None)
    names = [injection.name for injection in injections]
    reading.wrong += [
        f"{path}: the name {name!r} is there {names.count(name)} times; accounts are kept by name, so each has its own."
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if reading.wrong:
        raise BadInjectionsError("\n".join(reading.wrong))
    return Plan(injections=injections, seed=seed)


def _name(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", value):
        return ""
    return f"expected up to 100 letters, digits, '.', '_' and '-', found {value!r:.120}."


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
    "at": unknown_place,
    "kind": unknown_kind,
    "code": _code,
    "seconds": _seconds,
    "probability": _probability,
    "skip": _count,
    "times": _times,
    "match": _glob,
}
