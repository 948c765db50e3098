"""Text that a user wrote, YAML or JSON, as plain values: strings, numbers, booleans, lists, dicts.

Nothing is executed and nothing expanded: aliases are refused, so no small document can grow large.
Of what YAML 1.1 takes for something else than it looks like, each case is a fault that says so.
Values keep what the text says: dates stay strings.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from orchestrator.core.faults import Fault, PathPart, json_path, plain, shown

MAX_DEPTH = 32
MAX_DIGITS = 20
KEEP_ONE = "keep one of the two"
_TAG = "tag:yaml.org,2002:"
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
"""Control characters but tab and line ends, and halves of surrogate pairs: no service takes them in its strings."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """The values that could be read, and everything that was wrong with the text.

    `spelled` is the text of every boolean by its path: only the writer knows whether `no` meant false.
    """

    value: object
    faults: tuple[Fault, ...] = ()
    spelled: Mapping[str, str] = field(default_factory=dict)


def document_in(content: bytes, *, as_json: bool) -> Document:
    """The document in the bytes, or the faults that keep it from being one.

    `as_json` False takes YAML 1.1, of which JSON as people write it is a part.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _unreadable(
            f"the file is no UTF-8 text (byte {error.start})",
            found=shown(content[error.start : error.start + 8]),
            repair="save it as UTF-8; a binary file is no request",
        )
    if not text.strip():
        return _unreadable("the document is empty", repair="see examples/ for a request")
    read = _json(text) if as_json else _yaml(text)
    reported = {fault.path for fault in read.faults}
    strange = tuple(fault for fault in _no_text(read.value) if fault.path not in reported)
    return replace(read, faults=(*read.faults, *strange)) if strange else read


def is_json(content: bytes) -> bool:
    """Whether the bytes are to be read as JSON: an object that is. `{a: b}` is YAML's."""
    if content.lstrip()[:1] != b"{":
        return False
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return False
    return True


def _no_text(value: object, path: tuple[PathPart, ...] = ()) -> Iterator[Fault]:
    if len(path) > MAX_DEPTH:
        return
    match value:
        case dict():
            for key, part in value.items():
                yield from _no_text(key, (*path, key))
                yield from _no_text(part, (*path, key))
        case list():
            for index, part in enumerate(value):
                yield from _no_text(part, (*path, index))
        case str() if found := _NO_TEXT.search(value):
            yield Fault(
                path=json_path(path),
                problem=f"a character that is no text, U+{ord(found[0]):04X}",
                found=shown(value),
                repair="remove it",
            )


def _unreadable(problem: str, *, found: str = "", repair: str = "") -> Document:
    return Document(value=None, faults=(Fault(path="$", problem=problem, found=found, repair=repair),))


def _json(text: str) -> Document:
    faults: list[Fault] = []

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        times = Counter(key for key, _ in pairs)
        for key in sorted(key for key, count in times.items() if count > 1):
            # Here only the key is known, not the objects around it.
            faults.append(
                Fault(path="$", problem="a key stands twice in one object", found=shown(key), repair=KEEP_ONE)
            )
        return dict(pairs)

    def refused(constant: str) -> None:
        faults.append(Fault(path="$", problem="no finite number", found=constant, allowed="finite numbers"))

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refused)
    except RecursionError:
        return _unreadable(f"nested deeper than {MAX_DEPTH} levels")
    except ValueError as error:
        return _unreadable(
            f"broken JSON: {error}", repair="check quotes, commas and brackets near that place"
        )
    faults += _too_deep_or_large(value)
    if is_too_deep(value):
        # Whatever walks values does so by recursion, which deep ones would exhaust.
        return Document(value=None, faults=tuple(faults))
    return Document(value=value, faults=tuple(faults))


def is_too_deep(value: object, depth: int = 0) -> bool:
    """Whether lists and mappings stand in each other deeper than MAX_DEPTH; looks no deeper itself."""
    if depth > MAX_DEPTH:
        return True
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(is_too_deep(part, depth + 1) for part in inside)


def _too_deep_or_large(value: object, path: tuple[PathPart, ...] = ()) -> Iterator[Fault]:
    if len(path) > MAX_DEPTH:
        yield Fault(path=json_path(path[:4]), problem=f"nested deeper than {MAX_DEPTH} levels")
        return
    match value:
        case dict():
            for key, part in value.items():
                yield from _too_deep_or_large(part, (*path, key))
        case list():
            for index, part in enumerate(value):
                yield from _too_deep_or_large(part, (*path, index))
        case float() if not math.isfinite(value):
            yield Fault(path=json_path(path), problem="no finite number", allowed="finite numbers")
        case int() if abs(value) >= 10**MAX_DIGITS:
            yield Fault(path=json_path(path), problem=f"a number of more than {MAX_DIGITS} digits")


def _repeated(path: str) -> Fault:
    return Fault(path=path, problem="the key stands here twice", repair=KEEP_ONE)


def _yaml(text: str) -> Document:
    try:
        node = yaml.compose(text, Loader=_Composer)
    except yaml.YAMLError as error:
        return _unreadable(f"broken YAML: {_where(error)}", repair=_repair(error))
    except RecursionError:
        return _unreadable(f"nested deeper than {MAX_DEPTH} levels")
    except (ValueError, OverflowError) as error:
        # PyYAML lets these through: an escape that is no character ("\\UFFFFFFFF"), a version of 5,000 digits.
        return _unreadable(f"broken YAML: {plain(str(error))}", repair="look for escapes and a %YAML line")
    reader = _NodeReader()
    value = reader.value(node, ()) if node is not None else None
    return Document(value=value, faults=tuple(reader.faults), spelled=reader.spelled)


def _where(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem:
        mark = error.problem_mark or error.context_mark
        return error.problem + (f", line {mark.line + 1}, column {mark.column + 1}" if mark else "")
    if isinstance(error, yaml.reader.ReaderError):
        # The stubs call it a text; of a text, PyYAML's reader gives the code point.
        return f"a character that YAML does not allow, U+{int(error.character):04X}"
    return str(error)


def _repair(error: yaml.YAMLError) -> str:
    if isinstance(error, _Refused):
        return error.repair
    if "\\t" in str(getattr(error, "problem", "")):
        return "indent with spaces, not tabs"
    return "check the indentation, quotes and brackets near that place"


class _Refused(yaml.MarkedYAMLError):
    """Legal YAML that a request does not need and that is used to do harm."""

    # Any: the place, as a class of PyYAML's reader or of libyaml's.
    def __init__(self, problem: str, mark: Any, repair: str) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.repair = repair


class _Composer(yaml.SafeLoader):
    """A safe loader that refuses aliases and deep nesting while it reads, before anything is built."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it untyped
        if isinstance(event, yaml.AliasEvent):
            raise _Refused(
                "an alias (*name) is not taken", event.start_mark, "write the value out at its place"
            )
        if self._depth >= MAX_DEPTH:
            raise _Refused(f"nested deeper than {MAX_DEPTH} levels", event.start_mark, "flatten the document")
        self._depth += 1
        try:
            node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[arg-type]  # the stubs say int, PyYAML passes nodes too
            return node
        finally:
            self._depth -= 1


class _NodeReader:
    """Turns nodes into values and gathers every fault on the way."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.spelled: dict[str, str] = {}

    def value(self, node: yaml.Node, path: tuple[PathPart, ...]) -> object:
        tag = node.tag.removeprefix(_TAG)
        match node, tag:
            case yaml.MappingNode(), "map":
                return self._mapping(node, path)
            case yaml.SequenceNode(), "seq":
                return [self.value(item, (*path, index)) for index, item in enumerate(node.value)]
            case yaml.ScalarNode(), _:
                return self._scalar(node.value, tag, path)
            case _:
                self._fault(path, f"the tag !!{plain(tag)} is not taken", repair="remove the tag")
                return None

    def _mapping(self, node: yaml.MappingNode, path: tuple[PathPart, ...]) -> dict[str, object]:
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(path, "a key that is a list or a mapping", repair="keys are plain words")
                continue
            key, tag = key_node.value, key_node.tag.removeprefix(_TAG)
            here = (*path, key)
            if tag == "merge":
                self._fault(path, "merging (<<) is not taken", repair="write the keys out")
                continue
            if tag in ("bool", "null", "int", "float", "timestamp"):
                self._fault(
                    here,
                    f"YAML 1.1 reads this key as {_KIND[tag]}",
                    found=plain(key) or "an empty key",
                    repair=f'quote it: "{plain(key)}"',
                )
            elif key in values:
                self.faults.append(_repeated(json_path(here)))
            values[key] = self.value(value_node, here)
        return values

    def _scalar(self, text: str, tag: str, path: tuple[PathPart, ...]) -> object:
        match tag:
            case "str" | "timestamp" | "value":
                return text
            case "bool":
                return self._bool(text, path)
            case "int":
                return self._int(text, path)
            case "float":
                return self._float(text, path)
            case "null":
                return None
        self._fault(path, f"the tag !!{plain(tag)} is not taken", repair="remove the tag")
        return None

    def _bool(self, text: str, path: tuple[PathPart, ...]) -> bool | None:
        if text.lower() not in _BOOLEANS:  # a tag says bool of whatever stands there
            self._fault(path, "neither true nor false", found=shown(text), allowed="true, false")
            return None
        self.spelled[json_path(path)] = text
        return _BOOLEANS[text.lower()]

    def _int(self, text: str, path: tuple[PathPart, ...]) -> int | None:
        short = len(text) <= MAX_DIGITS
        if short and _DECIMAL.fullmatch(text):
            return int(text)
        meaning = "octal, hexadecimal, base 60 or grouped digits" if short else "huge"
        self._fault(
            path,
            f"a number that YAML 1.1 reads as {meaning}",
            found=shown(text),
            allowed=f"decimal numbers of at most {MAX_DIGITS} digits",
            repair=f'if a string is meant, quote it: "{plain(text)[:MAX_DIGITS]}"',
        )
        return None

    def _float(self, text: str, path: tuple[PathPart, ...]) -> float | None:
        try:
            number = float(text.replace("_", ""))
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return number
        self._fault(path, "no finite decimal number", found=shown(text), allowed="finite decimal numbers")
        return None

    def _fault(
        self,
        path: tuple[PathPart, ...],
        problem: str,
        *,
        found: str = "",
        allowed: str = "",
        repair: str = "",
    ) -> None:
        self.faults.append(
            Fault(path=json_path(path), problem=problem, found=found, allowed=allowed, repair=repair)
        )


_KIND = {
    "bool": "true or false",
    "null": "nothing",
    "int": "a number",
    "float": "a number",
    "timestamp": "a date",
}
