"""Text that a user wrote, YAML or JSON, as plain values: strings, numbers, booleans, lists, dicts.

Nothing is executed. YAML's aliases count as what they stand for, so a small document cannot grow large.
Where YAML 1.1 reads text differently from how it looks, a fault says so.
Values keep their text: dates stay strings.

Each path of a document has its place in the text.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from trainmaster.orchestrator.core.documents.faults import (
    MAX_COLLECTED,
    Fault,
    PathPart,
    first_of_each_place,
    json_step,
)
from trainmaster.orchestrator.core.documents.places import Found, TextPlace, split_lines
from trainmaster.orchestrator.core.documents.values import (
    KEEP_ONE,
    LONG_KEY,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_KEY_CHARS,
    MAX_VALUES,
    SHORTEN,
    Document,
    has_too_many_values,
    is_too_deep,
    iter_texts,
    long_key,
    unreadable,
)
from trainmaster.orchestrator.core.documents.yaml_text import yaml_document

_POINTED = re.compile(r"-?[0-9]+(?=[.eE])(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def parse_line_numbers(text: str, *, as_json: bool) -> Mapping[str, int]:
    """The line, counted from 1, of each path of a text that has no fault, and so at most MAX_VALUES values."""
    found = iter_places(text, as_json=as_json, enters=lambda _: True)
    return {path: key.line for path, key, _ in found}


def number_texts(text: str) -> Mapping[str, str]:
    """How a JSON text writes each number that is written otherwise than Python writes its value, by path.

    The text is one that `parse_document` could read.
    """
    found: dict[str, str] = {}
    lines = split_lines(text, as_json=True)
    for path, _, value in _json_places(text, lambda _: True):
        start = 0 if value is None else value.column - 1
        word = "" if value is None else lines[value.line - 1][start : start + value.length]
        if _POINTED.fullmatch(word) and word != str(float(word)):
            found[path] = word
    return found


def iter_places(text: str, *, as_json: bool, enters: Callable[[str], bool]) -> Iterator[Found]:
    """The places of the root and of what is directly in it, and so on in each list or mapping that `enters` accepts.

    The text is one that `parse_document` could read.
    """
    if as_json:
        yield from _json_places(text, enters)
        return
    from trainmaster.orchestrator.core.documents.yaml_text import yaml_places

    yield from yaml_places(text, enters)


def _json_places(text: str, enters: Callable[[str], bool]) -> Iterator[Found]:
    tokens = _json_tokens(text)

    def value(path: str, key: TextPlace, word: str, here: TextPlace) -> Iterator[Found]:
        """The places of the value with this first token, and of what is in it."""
        opens = word in "{["
        yield path, key, None if opens else here
        if opens and enters(path):
            yield from inside(path, is_object=word == "{")
        elif opens:
            depth = 1
            while depth:  # of any text, so it does not recurse
                word, _ = next(tokens)
                depth += (word in "{[") - (word in "}]")

    def inside(path: str, *, is_object: bool) -> Iterator[Found]:
        index = 0
        for word, key in tokens:
            if word in "}]":
                return
            if word == ",":
                index += 1
            elif is_object:
                next(tokens)  # the colon
                yield from value(path + json_step(str(json.loads(word))), key, *next(tokens))
            else:
                yield from value(f"{path}[{index}]", key, word, key)

    first, here = next(tokens)
    yield from value("$", here, first, here)


def _json_tokens(text: str) -> Iterator[tuple[str, TextPlace]]:
    line, line_start, at = 1, 0, 0
    for token in _TOKEN.finditer(text):
        # Looked for between two tokens only: a search from the start, or back through a long line, would be quadratic.
        ends = text.count("\n", at, token.start())
        if ends:
            line, line_start = line + ends, text.rfind("\n", at, token.start()) + 1
        at, word = token.start(), token[0]
        yield word, TextPlace(line=line, column=at - line_start + 1, length=len(word), end_line=line)


__all__ = ["MAX_DEPTH", "Document", "is_json", "is_too_deep", "parse_document"]

_BEGINNINGS = {
    "request": "for a request to start from: trainmaster init",
    "rule": "write the conditions of the rule under `when`",
}
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""Control characters except tab and line ends, and lone surrogates: no service accepts them in strings."""


_BY_CONTENT: Mapping[str, re.Pattern[bytes]] = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "Avro": re.compile(rb"Obj\x01|\xc3\x01"),
    "base64": re.compile(rb"\s*(ey[AIJ]|ew|H4sI)[A-Za-z0-9+/_-]{12,}={0,2}\s*\Z"),
    "several JSON lines": re.compile(rb"\s*\{.*\}[ \t]*\r?\n\s*\{"),
}
"""Envelopes in which other programs send a document; in base64, JSON and gzip begin with these letters.

None is opened: its ids and attributes would be lost, and they decide whether the same document starts a second run.
"""
_BY_KEYS: Mapping[str, frozenset[str]] = {
    "the body of a Pub/Sub push": frozenset({"message", "subscription"}),
    "a pulled Pub/Sub message": frozenset({"message", "ackId"}),
    "the body of a call to publish": frozenset({"messages"}),
    "a Pub/Sub message": frozenset({"data", "messageId"}),
    "a CloudEvent in structured mode": frozenset({"specversion", "type", "source"}),
    "a notification of Cloud Storage": frozenset({"kind", "bucket", "generation"}),
}
ENVELOPE_KEYS = frozenset().union(*_BY_KEYS.values())


def envelope_fault(content: bytes, value: object, what: str) -> Fault | None:
    """The fault of a document, read as `value`, that is in an envelope; `what` names it: a request or a rule."""
    keys = value.keys() if isinstance(value, Mapping) else frozenset()
    names = [name for name, pattern in _BY_CONTENT.items() if pattern.match(content)]
    names += [name for name, needed in _BY_KEYS.items() if needed <= keys]
    repair = f"send the text of the {what} as it would be in a file: Pub/Sub's clients encode it, and nothing here unpacks it"
    problem = f"this is {names[0]}, not the {what} itself" if names else ""
    return Fault(path="$", problem=problem, repair=repair) if names else None


def parse_document(content: bytes, *, as_json: bool, what: str = "request") -> Document:
    """The document in the bytes, or the faults that make it unreadable.

    `as_json` False reads YAML 1.1, which includes JSON as people write it. `what`: what the repairs call the document.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8-sig").split("\n")
        fault = Fault(
            path="$",
            place=TextPlace(line=len(before), column=len(before[-1]) + 1),
            problem=f"the file is not UTF-8 text (invalid at byte {error.start})",
            value=content[error.start : error.start + 8],
            repair=f"save it as UTF-8; a {what} is a text file",
        )
        return Document(value=None, faults=(envelope_fault(content, None, what) or fault,))
    if not text.strip():
        return unreadable("the document is empty", repair=_BEGINNINGS.get(what, ""))
    read = _json_document(text) if as_json else yaml_document(text)
    is_odd = bool(read.faults) or not isinstance(read.value, dict) or not ENVELOPE_KEYS.isdisjoint(read.value)
    if what in _BEGINNINGS and is_odd and (enveloped := envelope_fault(content, read.value, what)):
        read = Document(value=None, faults=(enveloped,))
    faults = first_of_each_place((read.faults, _no_text(read.value)))[:MAX_COLLECTED]
    return replace(read, faults=tuple(faults), content=content, text=text, as_json=as_json)


def is_json(content: bytes) -> bool:
    """Whether to read the bytes as JSON: they hold a JSON object. `{a: b}` is YAML."""
    if content.lstrip()[:1] != b"{":
        return False
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _no_text(value: object) -> Iterator[Fault]:
    for path, text, _ in iter_texts(value):
        if found := _NO_TEXT.search(text):
            problem = f"a character that is not allowed, U+{ord(found[0]):04X}"
            yield Fault(at=path, problem=problem, value=text, repair="remove it")


def _json_document(text: str) -> Document:
    is_spelled = False

    def number(written: str) -> float:
        nonlocal is_spelled
        value = float(written)
        is_spelled = is_spelled or written != str(value)
        return value

    try:
        value = json.loads(text, object_pairs_hook=_object, parse_float=number)
    except RecursionError:
        return unreadable(f"nested deeper than {MAX_DEPTH} levels")
    except json.JSONDecodeError as error:
        return _broken_json(text, error)
    except ValueError:  # Python reads no integer of more than 4,300 digits
        return unreadable(f"a number of more than {MAX_DIGITS} digits")
    if has_too_many_values(value):
        return unreadable(f"more than {MAX_VALUES} values", repair=SHORTEN)
    faults = [*_unfit(value)]
    if is_too_deep(value) or any(fault.problem == LONG_KEY for fault in faults):
        # Code that walks values recurses, and deep values would exhaust the stack.
        return Document(value=None, faults=tuple(faults))
    spelled = number_texts(text) if is_spelled else {}
    return Document(value=value, faults=tuple(faults), spelled=spelled)


def _broken_json(text: str, error: json.JSONDecodeError) -> Document:
    """The fault of the text, at which the error stopped."""
    closing = text[error.pos : error.pos + 1]
    problem, repair = str(error), "check the quotes, commas and brackets near this position"
    if closing in ("}", "]") and text[: error.pos].rstrip()[-1:] == ",":
        problem, repair = f"a comma before the closing {closing}", "remove the comma before it"
    place = TextPlace(line=error.lineno, column=error.colno)
    return unreadable(f"broken JSON: {problem}", repair=repair, place=place)


class _Twice(dict[str, object]):
    """An object with keys that it has more than once; no document without a fault holds one."""

    keys_twice: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    twice = _Twice(value)
    twice.keys_twice = tuple(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
    return twice


def _unfit(value: object, path: tuple[PathPart, ...] = ()) -> Iterator[Fault]:
    """The faults of JSON that Python's reader accepts."""
    if len(path) > MAX_DEPTH:
        yield Fault(at=path[:4], problem=f"nested deeper than {MAX_DEPTH} levels")
        return
    match value:
        case dict():
            for key in value.keys_twice if isinstance(value, _Twice) else ():
                yield Fault(at=(*path, key), problem="duplicate key", repair=KEEP_ONE, is_key=True)
            for key, part in value.items():
                if len(key) > MAX_KEY_CHARS:
                    yield long_key(path, key)
                else:
                    yield from _unfit(part, (*path, key))
        case list():
            for index, part in enumerate(value):
                yield from _unfit(part, (*path, index))
        case float() if not math.isfinite(value):
            found = json.dumps(value)
            yield Fault(at=path, problem="not a finite number", found=found, allowed="finite numbers")
        case int() if abs(value) >= 10**MAX_DIGITS:
            yield Fault(at=path, problem=f"a number of more than {MAX_DIGITS} digits")
