"""A document in the API's spelling, read key by key, and where each thing in our own way came from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.core.faults import Fault, PathPart, json_path, listed, nearest, shown

Path = tuple[PathPart, ...]
_SECONDS = re.compile(r"([0-9]+)(\.0+)?s")
_WHOLE = re.compile(r"-?[0-9]{1,20}")


@dataclass(frozen=True, kw_only=True)
class Translated:
    """A request in our own way. `places` pairs paths of it with the written ones; none means they are the same.

    `warnings` are what the user should know of a request that is accepted all the same. `region` is the one
    that the document asks for, if any; `$.region` is its place. `yielding` are keys of the document that go,
    with a warning, where the policy refuses them.
    """

    document: Mapping[str, Any]
    places: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    region: str | None = None
    yielding: tuple[str, ...] = ()

    def written_path(self, path: str) -> str:
        """Where the text says what our own document has at `path`."""
        return _moved(path, self.places)

    def own_path(self, path: str) -> str:
        """Where our own document has what the text says at `path`."""
        return _moved(path, {written: mine for mine, written in self.places.items()})


def _moved(path: str, places: Mapping[str, str]) -> str:
    known = path
    while known not in places:
        cut = max(known.rfind("."), known.rfind("["))
        if cut <= 0:
            return path
        known = known[:cut]
    return places[known] + path[len(known) :]


class Fields:
    """A mapping of the text, its keys by their camelCase names, and which of them were asked for."""

    def __init__(self, value: object, path: Path) -> None:
        self.path = path
        self.kind_fault = not isinstance(value, Mapping)
        self._value: Mapping[str, object] = value if isinstance(value, Mapping) else {}
        self._keys = {_camel(str(key)): str(key) for key in self._value}
        self._asked: set[str] = set()

    def get(self, name: str) -> object:
        self._asked.add(name)
        return self._value.get(self._keys.get(name, name))

    def has(self, name: str) -> bool:
        self._asked.add(name)
        return name in self._keys

    def at(self, name: str) -> Path:
        return (*self.path, self._keys.get(name, name))

    def unknown(self) -> list[Fault]:
        """A fault for every key that nobody asked for."""
        known = sorted(self._asked)
        return [
            Fault(
                path=json_path((*self.path, self._keys[name])),
                problem="this key has no place in a request",
                found=shown(self._keys[name]),
                allowed=listed(known, most=20),
                repair=nearest(name, [each for each in known if each not in self._keys])
                or nearest(name, known),
            )
            for name in sorted(set(self._keys) - self._asked)
        ]


class Translation:
    """The places and the faults found on the way through one document."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self._faults: list[Fault] = []

    def _put(self, into: dict[str, Any], here: Path, key: str, value: object, source: Path) -> None:
        self._places[json_path((*here, key))] = json_path(source)
        if value is not None:
            into[key] = value

    def _fields(self, parent: Fields, name: str) -> Fields:
        there, value = parent.has(name), parent.get(name)
        fields = Fields(value, parent.at(name))
        if there and fields.kind_fault:
            path = json_path(fields.path)
            self._faults.append(Fault(path=path, problem="a mapping is wanted here", found=shown(value)))
        return fields

    def _list(self, parent: Fields, name: str) -> list[object]:
        there, value = parent.has(name), parent.get(name)
        if isinstance(value, list):
            return value
        if there:
            path = json_path(parent.at(name))
            self._faults.append(Fault(path=path, problem="a list is wanted here", found=shown(value)))
        return []

    def _word(self, fields: Fields, name: str, words: Mapping[str, str]) -> str | None:
        value = fields.get(name)
        if value is None:
            return None
        if isinstance(value, str) and value in words:
            return words[value]
        self._faults.append(not_one_of(fields.at(name), value, tuple(words)))
        return None

    def _refuse(self, path: Path, problem: str, found: object) -> None:
        self._faults.append(Fault(path=json_path(path), problem=problem, found=shown(found)))


def not_one_of(path: Path, found: object, allowed: tuple[str, ...]) -> Fault:
    return Fault(
        path=json_path(path),
        problem="not one of the values",
        found=shown(found),
        allowed=listed(allowed),
        repair=nearest(found, allowed) if isinstance(found, str) else "",
    )


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def number(value: object) -> object:
    """A 64-bit integer as the API writes it, in quotes or without; anything else as it is."""
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def seconds(value: object) -> object:
    """A duration as the API writes it, `3600s`, in whole seconds; anything else as it is."""
    match = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else value
