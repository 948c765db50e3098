"""Frozen dataclasses as JSON documents and back, and these as the JSON text that the service stores and publishes.

`None` fields are omitted, times are RFC 3339 in UTC, enums are their values, decimals are strings.
An integer may be written as 5.0. Unknown keys are ignored, so that an older reader understands a newer record;
`with_unknown` keeps them in what is written.

Whatever is parsed here can be written here, and whatever is written here can be parsed: lone surrogates become U+FFFD,
and numbers that JSON lacks become the words of protobuf's JSON mapping.
"""

import dataclasses
import functools
import json
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from trainmaster.orchestrator.core.documents.values import whole

MAX_DEPTH_STORED = 64
"""A record holds a request, which is nested up to 32 levels deep. Code that walks values recurses."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAY_HOLD_SURROGATES = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}


class TooDeep(ValueError):
    """Lists and mappings are nested too deep; the message says how deep they may be."""


def json_bytes(value: object) -> bytes:
    """The document as it is stored, readable for people. Never fails on what `encoded` or `parse_json` returned."""
    return json_line(value, indent=2).encode() + b"\n"


def json_line(value: object, indent: int | None = None) -> str:
    """The document on one line, as it is published."""
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        text = json.dumps(_with_leaves(value, _writable), indent=indent, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(REPLACEMENT, text)


def parse_json(content: bytes | str, max_depth: int = MAX_DEPTH_STORED) -> Any:  # Any: JSON
    """The value in a text that anyone may have written.

    Raises:
        TooDeep: it is nested deeper than `max_depth` levels.
        ValueError: it is not JSON.
    """
    too_deep = f"nested deeper than {max_depth} levels"
    if isinstance(content, bytes):
        content = content.decode(json.detect_encoding(content), "surrogatepass")
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise TooDeep(too_deep) from error
    # The quick checks suffice for most texts: few have so many brackets, and few write a character by its number.
    if content.count("{") + content.count("[") > max_depth and _is_deeper(value, max_depth):
        raise TooDeep(too_deep)
    is_plain = content.isascii() and "\\u" not in content
    return (
        value if is_plain or not _MAY_HOLD_SURROGATES.search(content) else _with_leaves(value, _well_formed)
    )


def _is_deeper(value: object, most: int) -> bool:
    """Level by level, so that no depth exhausts the stack."""
    level = [value]
    for _ in range(most):
        level = [
            part
            for outer in level
            if isinstance(outer, dict | list)
            for part in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def _with_leaves(value: object, leaf: Callable[[object], object], depth: int = 0) -> object:
    """The value with `leaf` of every key and every part that holds no other. Deeper than is ever read stands `…`."""
    match value:
        case Mapping() | list() | tuple() if depth >= MAX_DEPTH_STORED:
            return "…"
        case Mapping():
            return {str(leaf(key)): _with_leaves(part, leaf, depth + 1) for key, part in value.items()}
        case list() | tuple():
            return [_with_leaves(part, leaf, depth + 1) for part in value]
    return leaf(value)


def _well_formed(leaf: object) -> object:
    return _SURROGATE.sub(REPLACEMENT, leaf) if isinstance(leaf, str) else leaf


def _writable(leaf: object) -> object:
    return _WORDS.get(leaf, "NaN") if isinstance(leaf, float) and not math.isfinite(leaf) else leaf


_Value = TypeVar("_Value")


def encoded(value: object) -> object:
    """The value in a form that `json.dumps` accepts."""
    return _writer(type(value))(value)  # type: ignore[arg-type]  # every type can be hashed


@functools.cache
def _writer(kind: type) -> Callable[[Any], object]:  # Any: a value of this type
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
        return lambda value: {
            name: encoded(part) for name in names if (part := getattr(value, name)) is not None
        }
    return next(write for base, write in _WRITERS if issubclass(kind, base))


def encoded_time(moment: datetime) -> str:
    """RFC 3339 with microseconds and `Z`.

    Raises:
        ValueError: the time is naive, and so ambiguous.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


_WRITERS: Sequence[tuple[type, Callable[[Any], object]]] = (
    (Enum, lambda value: value.value),
    (Decimal, lambda value: f"{value:f}"),
    (datetime, encoded_time),
    (Mapping, lambda value: {str(key): encoded(part) for key, part in value.items()}),
    (tuple, lambda value: [encoded(part) for part in value]),
    (list, lambda value: [encoded(part) for part in value]),
    (object, lambda value: value),
)


def decoded_time(text: str) -> datetime:
    """An aware time from RFC 3339; digits beyond microseconds are cut.

    Raises:
        ValueError: the text is not an RFC 3339 time with a zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    try:
        return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is outside the years 1 to 9999 in UTC") from error


def time_or(text: object, otherwise: datetime) -> datetime:
    """The RFC 3339 time in `text`, or `otherwise` without one."""
    try:
        return decoded_time(text) if isinstance(text, str) else otherwise
    except ValueError:
        return otherwise


def decoded(kind: type[_Value], document: object) -> _Value:
    """The value of type `kind` that `encoded` turned into `document`.

    Raises:
        ValueError: the document does not hold such a value; the message names the path.
    """
    read: _Reader = _reader(kind)  # type: ignore[arg-type]  # every type can be hashed
    result: _Value = read(document, "$")
    return result


# Any: a reader returns a value of the type that it was made for.
_Reader = Callable[[object, str], Any]


@functools.cache
def _reader(kind: object) -> _Reader:
    """The reader of values of this type. Cached: inspecting a type costs more than reading a value."""
    arguments = get_args(kind)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        (present,) = (argument for argument in arguments if argument is not type(None))
        read = _reader(present)
        return lambda document, path: None if document is None else read(document, path)
    if origin is tuple:
        return _each(_reader(arguments[0]))
    if origin is not None:  # Mapping[str, X]
        return _values(_reader(arguments[1]))
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind)  # type: ignore[arg-type]  # never an instance here
    if kind in (object, Any):
        return lambda document, _: document
    return _text if kind is str else functools.partial(_scalar, kind)


def _each(read: _Reader) -> _Reader:
    def reader(document: object, path: str) -> object:
        parts = _of_kind(document, list, path)
        return tuple(read(part, f"{path}[{i}]") for i, part in enumerate(parts))

    return reader


def _values(read: _Reader) -> _Reader:
    def reader(document: object, path: str) -> object:
        items = _of_kind(document, dict, path).items()
        return {key: read(part, f"{path}.{key}") for key, part in items}

    return reader


def _dataclass(kind: type) -> _Reader:
    hints = get_type_hints(kind)
    names = {field.name for field in dataclasses.fields(kind)}
    readers = functools.cache(lambda name: _reader(hints[name]))  # later: a type may contain itself

    def reader(document: object, path: str) -> object:
        given = _of_kind(document, dict, path)
        values = {
            name: readers(name)(part, f"{path}.{name}") for name, part in given.items() if name in names
        }
        try:
            return kind(**values)
        except TypeError as error:
            raise ValueError(f"{path}: {error}") from error

    return reader


def _text(document: object, path: str) -> object:
    """Most values are texts, so these take the short way: a list of runs has 20,000 rows."""
    return document if type(document) is str else _of_kind(document, str, path)


def _scalar(kind: object, document: object, path: str) -> object:
    try:
        if kind is datetime:
            return decoded_time(_of_kind(document, str, path))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return kind(document)
        if kind is Decimal and isinstance(document, str):
            return Decimal(document)
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"{path}: {error}") from error
    if kind is float:
        return _float(document, path)
    if kind is int:
        document = whole(document)  # JSON does not distinguish 5.0 from 5
    return _of_kind(document, kind, path)  # type: ignore[arg-type]  # only str, int, float and bool are left


_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""As `json_line` writes them."""


def _float(document: object, path: str) -> float:
    if isinstance(document, str) and document in _NUMBERS:
        return _NUMBERS[document]
    try:
        is_integer = isinstance(document, int) and not isinstance(document, bool)
        return float(document) if is_integer else _of_kind(document, float, path)  # type: ignore[arg-type]
    except OverflowError as error:  # JSON does not limit integers
        raise ValueError(f"{path}: {error}") from error


def _of_kind(document: object, kind: type[_Value], path: str) -> _Value:
    if not isinstance(document, kind) or (isinstance(document, bool) and kind is not bool):
        raise ValueError(f"{path}: {kind.__name__} expected, found {type(document).__name__}")
    return document


# Any: JSON.
def with_unknown(after: Any, before: Any, raw: Any) -> Any:
    """`after`, with what `raw` has and `before` lacks, at every level.

    `raw` is the document as it was read, `before` what this release encodes it as, and `after` its changed version.
    An entry of a list that has not changed keeps what is unknown of it wherever it is now; a changed one is new.
    """
    if raw == before:
        return after
    if isinstance(after, dict) and isinstance(before, dict) and isinstance(raw, dict):
        known = {
            key: with_unknown(part, before[key], raw[key]) if key in before and key in raw else part
            for key, part in after.items()
        }
        more = ((key, part) for key, part in raw.items() if key not in before and key not in after)
        unknown = {key: part for key, part in more if part is not None}
        return {**known, **unknown}
    if isinstance(after, list) and isinstance(before, list) and isinstance(raw, list):
        return _entries(after, before, raw)
    return after


def _entries(after: list[Any], before: list[Any], raw: list[Any]) -> list[Any]:
    pairs = ((known, part) for known, part in zip(before, raw, strict=False) if known != part)
    extended = [(known, part) for known, part in pairs if isinstance(part, dict | list)]
    entries: list[Any] = []
    for entry in after:
        place = next((place for place, (known, _) in enumerate(extended) if known == entry), None)
        entries.append(entry if place is None else with_unknown(entry, *extended.pop(place)))
    return entries
