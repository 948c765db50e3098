"""A document in the API's spelling, read key by key, and where each thing in our own way came from."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart, json_path, listed, nearest, shown
from trainmaster.orchestrator.core.documents.values import whole

Path = tuple[PathPart, ...]
Numbers = Mapping[int, str]
"""The names of an enum by their numbers; 0 is the one that says nothing."""
_SECONDS = re.compile(r"([0-9]+)(\.0+)?s")
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_HUMP = re.compile(r"([A-Z])")
_SNAKE = re.compile(r"_([a-z0-9])")


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
    """A mapping of the text, its keys by their camelCase names, and which of them were asked for.

    A key with nothing or an empty string behind it is absent, as it is to the API.
    """

    def __init__(self, value: object, path: Path) -> None:
        self.path = path
        self.kind_fault = not isinstance(value, Mapping)
        self._value: Mapping[str, object] = value if isinstance(value, Mapping) else {}
        self._keys: dict[str, str] = {}
        self._again: dict[str, str] = {}
        for key in map(str, self._value):
            name = _camel(key)
            (self._again if name in self._keys else self._keys)[name] = key
        self._asked: set[str] = set()
        self._passed: set[str] = set()
        # One-word keys do not tell the spelling; then the keys around do.
        telling = [key for key in self._keys.values() if key.lower() != key or "_" in key]
        around = [part for part in path if isinstance(part, str)]
        self._snake = any("_" in key for key in telling or around)

    def get(self, name: str) -> object:
        self._asked.add(name)
        value = self._value.get(self._keys.get(name, name))
        return None if value == "" else value

    def has(self, name: str) -> bool:
        return self.get(name) is not None

    def at(self, name: str) -> Path:
        """Where the name stands, or would stand in the spelling of its neighbours."""
        return (*self.path, self._spelled(name))

    def present(self, names: Collection[str]) -> list[str]:
        """Those of the names that have a value here, as the text spells them; none is offered for a misspelt one."""
        self._passed.update(names)
        return [self._keys[name] for name in names if self._value.get(self._keys.get(name, name)) is not None]

    def unknown(self, no_place: Collection[str] = ()) -> list[Fault]:
        """A fault for every key that nobody asked for, and for one that is there in both spellings.

        `no_place` are the API's own keys that a request has no place for.
        """
        homeless = [name for name in sorted(no_place) if self._value.get(self._keys.get(name, name))]
        foreign = set(self._keys) - self._asked - self._passed - set(no_place)
        return [
            *(self._twice(name) for name in sorted(self._again)),
            *(self._homeless(name) for name in homeless),
            *(self._foreign(name) for name in sorted(foreign)),
        ]

    def _twice(self, name: str) -> Fault:
        return Fault(
            path=json_path((*self.path, self._again[name])),
            problem="the key stands here in two spellings",
            found=listed((self._keys[name], self._again[name])),
            repair="keep one of the two",
        )

    def _homeless(self, name: str) -> Fault:
        return Fault(
            path=json_path(self.at(name)),
            problem="Vertex AI has this key, a request has no place for it yet",
            found=shown(self._value[self._keys[name]]),
            repair="leave it out",
        )

    def _foreign(self, name: str) -> Fault:
        known = sorted(map(self._spelled, self._asked))
        free = sorted(self._spelled(each) for each in self._asked if each not in self._keys)
        key = self._keys[name]
        return Fault(
            path=json_path((*self.path, key)),
            problem="this key has no place in a request",
            found=shown(key),
            allowed=listed(known, most=20),
            repair=nearest(key, free) or nearest(key, known),
        )

    def _spelled(self, name: str) -> str:
        return self._keys.get(name) or (_HUMP.sub(r"_\1", name).lower() if self._snake else name)


class Translation:
    """The places, the faults and the warnings found on the way through one document."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self._faults: list[Fault] = []
        self._warnings: list[Fault] = []

    def _translated(self, mine: Mapping[str, Any]) -> Translated:
        return Translated(
            document=mine,
            places=self._places,
            faults=tuple(sorted(self._faults)),
            warnings=tuple(sorted(self._warnings)),
        )

    def _put(self, into: dict[str, Any], here: Path, key: str, value: object, source: Path) -> None:
        self._places[json_path((*here, key))] = json_path(source)
        if value is not None:
            into[key] = value

    def _fields(self, parent: Fields, name: str) -> Fields:
        fields = Fields(parent.get(name), parent.at(name))
        if parent.has(name) and fields.kind_fault:
            self._refuse(fields.path, "a mapping is wanted here", parent.get(name))
        return fields

    def _list(self, parent: Fields, name: str) -> list[object]:
        value = parent.get(name)
        if isinstance(value, list):
            return value
        if parent.has(name):
            self._refuse(parent.at(name), "a list is wanted here", value)
        return []

    def _word(
        self, fields: Fields, name: str, words: Mapping[str, str], numbers: Numbers | None = None
    ) -> str | None:
        """Our word for the API's, which may be written as its number where it has one; None where it says nothing."""
        if not fields.has(name):
            return None
        numbers = numbers or {}
        value = by_number(fields.get(name), numbers)
        if value == numbers.get(0) and value not in words:
            return None
        if isinstance(value, str) and value in words:
            return words[value]
        self._faults.append(not_one_of(fields.at(name), fields.get(name), (*words, *sorted(numbers))))
        return None

    def _duration(self, fields: Fields, name: str) -> object:
        """Whole seconds; what is no duration of the API's is a fault."""
        found = seconds(fields.get(name))
        if isinstance(found, str):
            fault = Fault(
                path=json_path(fields.at(name)),
                problem="no duration in whole seconds",
                found=shown(found),
                allowed="seconds and an s, for example 3600s",
                repair=f"write {found}s" if found.isdecimal() else "",
            )
            self._faults.append(fault)
            return None
        return found

    def _refuse(
        self, path: Path, problem: str, found: object, *, allowed: str = "", repair: str = ""
    ) -> None:
        fault = Fault(
            path=json_path(path), problem=problem, found=shown(found), allowed=allowed, repair=repair
        )
        self._faults.append(fault)

    def _warn(self, path: Path, problem: str, *, found: str = "", repair: str = "") -> None:
        self._warnings.append(Fault(path=json_path(path), problem=problem, found=found, repair=repair))


def not_one_of(path: Path, found: object, allowed: Collection[str | int]) -> Fault:
    words = [each for each in allowed if isinstance(each, str)]
    return Fault(
        path=json_path(path),
        problem="not one of the values",
        found=shown(found),
        allowed=listed(allowed, most=30),
        repair=nearest(found, words) if isinstance(found, str) else "",
    )


def by_number(value: object, numbers: Numbers) -> object:
    """An enum's name where its number is written, in quotes or without; anything else as it is."""
    found = number(value)
    return numbers.get(found, value) if isinstance(found, int) and not isinstance(found, bool) else value


def _camel(name: str) -> str:
    return _SNAKE.sub(lambda match: match[1].upper(), name)


def number(value: object) -> object:
    """A 64-bit integer as the API writes it, in quotes or without, 2.0 for 2; anything else as it is."""
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else whole(value)


def seconds(value: object) -> object:
    """A duration as the API writes it, `3600s`, in whole seconds; anything else as it is."""
    match = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else value
