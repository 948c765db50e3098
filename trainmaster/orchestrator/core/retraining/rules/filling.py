"""The places of a request, `${name}` or `${name:-default}`, and the values that fill them.

A place stands in a string value, never in a key. It is filled after the document was parsed, as text inside
that string, and what it was filled with is never looked at again. `$${` stands for the text `${`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from trainmaster.orchestrator.core.documents.faults import (
    Fault,
    PathPart,
    fault_at,
    listed,
    nearest,
)

VALUE_MAX_CHARS = 2000
MEANINGS: Mapping[str, str] = {
    "rule.id": "the rule's id",
    "firing.id": "the id of the run that is started",
    "firing.time": "when the rule fired, RFC 3339",
    "firing.condition": "the kind of condition that fired it",
    "data.count": "how many matching objects came since the last firing",
    "data.bytes": "how many bytes they have",
    "data.watermark": "when the newest of them was created, RFC 3339",
    "data.newest_uri": "the newest of them",
    "data.newest_dir_uri": "the folder of the newest, with its slash",
    "image.uri": "the pushed image by its digest",
    "image.digest": "the pushed image's digest, sha256:…",
    "image.tag": "the tag that was pushed",
    "alert.policy": "the alert's policy",
    "alert.incident_id": "the incident",
    "alert.summary": "the alert in one line",
    "upstream.model_name": "the upstream model",
    "upstream.run_id": "the run that succeeded or was promoted",
    "upstream.model_uri": "the model which that run left",
    "champion.model_uri": "the champion of the request's model",
    "champion.run_id": "the run that it came from",
    "champion.value": "its metric",
}
"""Every place there is."""
NAMES = tuple(MEANINGS)

_PLACE = re.compile(r"\$(?P<literal>\$\{)|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place: the name it asks for, and the text that stands in where there is no value."""

    name: str
    default: str | None = None

    def __str__(self) -> str:
        return f"${{{self.name}}}" if self.default is None else f"${{{self.name}:-{self.default}}}"


@dataclass(frozen=True, kw_only=True)
class PlaceAt:
    """A place and the value that it stands in. `closed` False: the text has no `}` after it."""

    path: tuple[PathPart, ...]
    place: Place
    closed: bool = True


@dataclass(frozen=True, kw_only=True)
class Unfilled:
    """Why a request cannot be filled in, in plain words."""

    reason: str


def places_at(document: object, path: tuple[PathPart, ...] = ()) -> Iterator[PlaceAt]:
    """Every place in the document's string values, in the order of the text."""
    match document:
        case str():
            for found in _PLACE.finditer(document):
                if found["literal"] is None:
                    yield PlaceAt(path=path, place=_place(found), closed=bool(found["end"]))
        case Mapping():
            for key, part in document.items():
                yield from places_at(part, (*path, str(key)))
        case list() | tuple():
            for index, part in enumerate(document):
                yield from places_at(part, (*path, index))


def places_in(document: object) -> tuple[Place, ...]:
    """Every different place of the document."""
    return tuple(dict.fromkeys(found.place for found in places_at(document)))


def _place(found: re.Match[str]) -> Place:
    name, default_mark, default = found["inside"].partition(":-")
    return Place(name=name, default=default if default_mark else None)


def place_faults(document: object, path: tuple[PathPart, ...], provided: Iterable[str]) -> list[Fault]:
    """What is wrong with the document's places; `provided` are the names that can ever have a value here.

    `path` is the document's own in the text that the user wrote.
    """
    possible = frozenset(provided)
    faults = (_fault(found, possible) for found in places_at(document, path))
    return [*(fault for fault in faults if fault is not None), *_places_in_keys(document, path)]


def _fault(found: PlaceAt, possible: frozenset[str]) -> Fault | None:
    path, place = found.path, found.place
    if not found.closed:
        repair = "close it, or write $${ where the text ${ is meant"
        return fault_at(path, "a place that nothing closes", found=str(place)[:-1], repair=repair)
    if place.name not in MEANINGS:
        repair = nearest(place.name, NAMES) or "write $${ where the text ${ is meant"
        allowed = listed(NAMES, most=len(NAMES))
        return fault_at(path, "there is no such place", found=str(place), allowed=allowed, repair=repair)
    if place.name not in possible:
        problem = "none of the rule's conditions can ever give it a value"
        allowed = listed((name for name in NAMES if name in possible), most=len(NAMES))
        repair = "remove it, or add the condition that gives it"
        return fault_at(path, problem, found=str(place), allowed=allowed, repair=repair)
    if place.default is not None and (reason := unfit(place.default)):
        return fault_at(path, f"the default is {reason}", found=str(place))
    return None


def _places_in_keys(document: object, path: tuple[PathPart, ...]) -> Iterator[Fault]:
    if isinstance(document, Mapping):
        for key, part in document.items():
            if any(found["literal"] is None for found in _PLACE.finditer(str(key))):
                problem = "a key has no places: only values are filled"
                yield fault_at((*path, str(key)), problem, found=key)
            yield from _places_in_keys(part, (*path, str(key)))
    elif isinstance(document, list | tuple):
        for index, part in enumerate(document):
            yield from _places_in_keys(part, (*path, index))


def unfit(value: str) -> str:
    """Why the value can fill no place; empty where it can."""
    if len(value) > VALUE_MAX_CHARS:
        return f"longer than {VALUE_MAX_CHARS} characters"
    unfit_character = _UNFIT.search(value)
    if unfit_character is not None:
        return f"not plain text: it holds the character {unfit_character[0]!r}"
    return ""


def unfilled(places: Iterable[Place], values: Mapping[str, str]) -> Unfilled | None:
    """Why these places cannot be filled with these values; None where they can."""
    for place in places:
        value = values.get(place.name, place.default)
        if value is None:
            default = Place(name=place.name, default="none")
            return Unfilled(reason=f"{place} has no value now; a default would stand in for it: {default}")
        if reason := unfit(value):
            return Unfilled(reason=f"the value of {place} is {reason}")
    return None


def filled(document: object, values: Mapping[str, str]) -> object:
    """The document with every place filled and every `$${` written as `${`; keys stay as they are.

    Raises:
        ValueError: a place has no fit value; `unfilled` says so beforehand.
    """
    reason = unfilled(places_in(document), values)
    if reason is not None:
        raise ValueError(reason.reason)

    def text(found: re.Match[str]) -> str:
        if found["literal"] is not None:
            return "${"
        place = _place(found)
        return values.get(place.name, place.default or "")

    return _mapped(document, lambda each: _PLACE.sub(text, each))


def _mapped(document: object, change: Callable[[str], str]) -> object:
    match document:
        case str():
            return change(document)
        case Mapping():
            return {key: _mapped(part, change) for key, part in document.items()}
        case list() | tuple():
            return [_mapped(part, change) for part in document]
        case _:
            return document
