"""YAML 1.1 as plain values, parsed by libyaml: tags, merges and deep nesting are refused, and aliases resolved in bounds.

PyYAML's scanner in Python takes 7 to 12 s for a request of 256 KiB, libyaml's less than one. PyYAML's own CSafeLoader
also builds the nodes in C, where an alias bomb cannot be stopped.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import yaml
from yaml.composer import Composer
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # its stubs import it there as PyYAML does
from yaml.resolver import Resolver

from trainmaster.orchestrator.core.documents.faults import (
    MAX_COLLECTED,
    Fault,
    PathPart,
    json_path,
    json_step,
    plain,
    quote_it,
    shown,
)
from trainmaster.orchestrator.core.documents.places import Found, TextPlace
from trainmaster.orchestrator.core.documents.values import (
    KEEP_ONE,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_KEY_CHARS,
    MAX_VALUES,
    SHORTEN,
    Document,
    long_key,
    unreadable,
)
from trainmaster.orchestrator.core.documents.yaml_errors import QUOTES, RefusedYaml, broken_yaml

_Number = TypeVar("_Number", int, float)
_TAG = "tag:yaml.org,2002:"
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_TO_LINE_END = 10**6
"""The length of a value of several lines on its first one; `with_quoted_line` cuts it."""
MAX_DIRECTIVES = 100
"""Lines that may be directives, which requests do not need: libyaml compares each %TAG with all before it."""
_DIRECTIVE = re.compile("^%", re.MULTILINE)


def yaml_document(text: str) -> Document:
    if len(_DIRECTIVE.findall(text)) > MAX_DIRECTIVES:
        problem = f"more than {MAX_DIRECTIVES} lines that begin with %"
        return unreadable(problem, repair="remove the directives")
    composer = _Composer(text)
    try:
        node = composer.get_single_node()
    except yaml.YAMLError as error:
        return broken_yaml(error, text, composer.quoted_lines)
    reader = _NodeReader()
    value = reader.value(node, ()) if node is not None else None
    value = None if reader.has_long_key else value
    return Document(value=value, faults=tuple(reader.faults), spelled=reader.spelled)


def yaml_places(text: str, enters: Callable[[str], bool]) -> Iterator[Found]:
    """See `iter_places`; of a text that `yaml_document` could read."""
    node = _Composer(text).get_single_node()
    if node is not None:
        yield "$", _place(node), _scalar_place(node)
        yield from _places_within(node, "$", enters)


def _places_within(node: yaml.Node, path: str, enters: Callable[[str], bool]) -> Iterator[Found]:
    inside: Iterable[tuple[PathPart, yaml.Node, yaml.Node]] = ()
    if not enters(path):
        return
    if isinstance(node, yaml.MappingNode):
        # A list or a mapping as a key is a fault, and has no path.
        inside = ((key.value, key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))
    elif isinstance(node, yaml.SequenceNode):
        inside = ((index, item, item) for index, item in enumerate(node.value))
    for part, marked, value in inside:
        here = path + json_step(part)
        yield here, _place(marked), _scalar_place(value)
        yield from _places_within(value, here, enters)


def _scalar_place(node: yaml.Node) -> TextPlace | None:
    """The value's place; None for a list, a mapping, and a value that is absent."""
    place = _place(node) if isinstance(node, yaml.ScalarNode) else None
    return place if place is not None and place.length else None


def _place(node: yaml.Node) -> TextPlace:
    start, end = node.start_mark, node.end_mark
    on_one_line = start.line == end.line
    return TextPlace(
        line=start.line + 1,
        column=start.column + 1,
        length=end.column - start.column if on_one_line else _TO_LINE_END,
        end_line=end.line + 1,
    )


class _Composer(Composer, CParser, Resolver):
    """Builds nodes from libyaml's events; deep nesting and too many values are refused before a node is built.

    An alias counts as all values that it stands for, as deep as they are, so that no later walk over the nodes is longer.
    PyYAML's CSafeLoader composes in C, where nothing can be refused during parsing.
    """

    def __init__(self, stream: str) -> None:
        while (kept := stream.rstrip()).endswith("\n---"):  # begins a document that has no text
            stream = kept.removesuffix("---")
        CParser.__init__(self, stream)
        Composer.__init__(self)
        Resolver.__init__(self)
        self._depth = 0
        self._deepest = 0
        self._values = 0
        self._anchored: dict[str, tuple[int, int]] = {}
        """Of each anchor whose node is complete: how many values it has, and how many levels."""
        self.quoted_lines: TextPlace | None = None
        """The last value in quotes, if it is of several lines: one whose closing quote is missing ends at another's opening one."""

    def compose_node(self, parent: yaml.Node | None, index: object) -> yaml.Node | None:
        event: Any = self.peek_event()  # the stubs allow none, but the end is an event too
        if getattr(event, "style", None) in QUOTES:
            place = _place(event)
            self.quoted_lines = place if place.line < place.end_line else None
        is_alias, anchor = isinstance(event, yaml.AliasEvent), getattr(event, "anchor", None) or ""
        if is_alias and anchor in self.anchors and anchor not in self._anchored:
            problem = f"the YAML alias *{plain(anchor)} is inside what it stands for"
            raise RefusedYaml(problem, event.start_mark, "write the value out here")
        values, levels = self._anchored.get(anchor, (1, 0)) if is_alias else (1, 0)
        if self._depth + levels >= MAX_DEPTH:
            problem = f"nested deeper than {MAX_DEPTH} levels"
            raise RefusedYaml(problem, event.start_mark, "flatten the document")
        before, outside = self._values, self._deepest
        self._values += values
        if self._values > MAX_VALUES:
            counted = ", counting those that aliases stand for" if self._anchored else ""
            raise RefusedYaml(f"more than {MAX_VALUES} values{counted}", event.start_mark, SHORTEN)
        self._deepest = self._depth + levels
        self._depth += 1
        try:
            node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[arg-type]  # the stubs say int, PyYAML passes nodes too
            return node
        finally:
            self._depth -= 1
            if anchor and not is_alias:
                self._anchored[anchor] = self._values - before, self._deepest - self._depth
            self._deepest = max(self._deepest, outside)


class _NodeReader:
    """Turns nodes into values and collects every fault."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.spelled: dict[str, str] = {}
        self.has_long_key = False

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
                self._fault(path, f"the tag !!{plain(tag)} is not supported", repair="remove the tag")
                return None

    def _mapping(self, node: yaml.MappingNode, path: tuple[PathPart, ...]) -> dict[str, object]:
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(path, "a list or a mapping used as a key", repair="keys must be strings")
                continue
            key, tag = key_node.value, key_node.tag.removeprefix(_TAG)
            here = (*path, key)
            if len(key) > MAX_KEY_CHARS:
                self.has_long_key = True
                self.faults.append(long_key(path, key))
                continue
            if tag == "merge":
                self._fault(path, "merging (<<) is not supported", repair="write the keys out here")
                continue
            if tag in ("bool", "null", "int", "float", "timestamp"):
                problem, repair = f"YAML 1.1 reads this key as {_KIND[tag]}", f'quote it: "{plain(key)}"'
                self._fault(here, problem, found=plain(key) or "an empty key", repair=repair, is_key=True)
            elif key in values:
                self._fault(here, "duplicate key", repair=KEEP_ONE, is_key=True)
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
        self._fault(path, f"the tag !!{plain(tag)} is not supported", repair="remove the tag")
        return None

    def _bool(self, text: str, path: tuple[PathPart, ...]) -> bool | None:
        if text.lower() not in _BOOLEANS:  # an explicit tag !!bool may precede any text
            self._fault(path, "not a boolean", found=shown(text), allowed="true, false")
            return None
        self.spelled[json_path(path)] = text
        return _BOOLEANS[text.lower()]

    def _int(self, text: str, path: tuple[PathPart, ...]) -> int | None:
        short = len(text) <= MAX_DIGITS
        if short and _DECIMAL.fullmatch(text):
            return self._with_spelling(int(text), text, path)
        meaning = "an octal, hexadecimal, base 60 or digit-grouped number" if short else "huge"
        self._fault(
            path,
            f"a number that YAML 1.1 reads as {meaning}",
            found=shown(text),
            allowed=f"decimal numbers of at most {MAX_DIGITS} digits",
            repair=f"if a string is meant, {quote_it(text)}",
        )
        return None

    def _float(self, text: str, path: tuple[PathPart, ...]) -> float | None:
        try:
            number = float(text.replace("_", ""))
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return self._with_spelling(number, text, path)
        self._fault(path, "not a finite decimal number", found=shown(text), allowed="finite decimal numbers")
        return None

    def _with_spelling(self, number: _Number, text: str, path: tuple[PathPart, ...]) -> _Number:
        if text != str(number):
            self.spelled[json_path(path)] = text
        return number

    # Any: the other arguments of `Fault`, of different types.
    def _fault(self, path: tuple[PathPart, ...], problem: str, **said: Any) -> None:
        if len(self.faults) < MAX_COLLECTED:
            self.faults.append(Fault(at=path, problem=problem, **said))


_KIND = {
    "bool": "true or false",
    "null": "null",
    "int": "a number",
    "float": "a number",
    "timestamp": "a date",
}
