"""The place of each path of a document in its text."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainmaster.orchestrator.core.documents.faults import json_step
from trainmaster.orchestrator.core.documents.places import Found, Place, split_lines

_POINTED = re.compile(r"-?[0-9]+(?=[.eE])(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def parse_line_numbers(text: str, *, as_json: bool) -> Mapping[str, int]:
    """The line, counted from 1, of each path of a text that has no fault, and so at most `work.MAX_VALUES` values."""
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


@dataclass(kw_only=True)
class _Open:
    """A list or object that is being read; `path` None: what it holds is not asked for."""

    path: str | None
    index: int | None
    """Of the next item; None in an object."""
    key: tuple[str, Place] | None = None


def _json_places(text: str, enters: Callable[[str], bool]) -> Iterator[Found]:
    within: list[_Open] = []
    line, line_start, at = 1, 0, 0
    for token in _TOKEN.finditer(text):
        # Looked for between two tokens only: a search from the start, or back through a long line, would be quadratic.
        ends = text.count("\n", at, token.start())
        if ends:
            line, line_start = line + ends, text.rfind("\n", at, token.start()) + 1
        at, word = token.start(), token[0]
        here = Place(line=line, column=at - line_start + 1, length=len(word), end_line=line)
        inner = within[-1] if within else None
        match word:
            case ":":
                continue
            case ",":
                if inner is not None:
                    inner.index, inner.key = None if inner.index is None else inner.index + 1, None
                continue
            case "}" | "]":
                within.pop()
                continue
        if inner is not None and inner.index is None and inner.key is None:
            inner.key = (json_step(str(json.loads(word))) if inner.path is not None else "", here)
            continue
        path, key = "$", here
        if inner is not None:
            step, key = inner.key or (f"[{inner.index}]", here)
            path = "" if inner.path is None else inner.path + step
        opens = word in "{["
        if path:
            yield path, key, None if opens else here
        if opens:
            within.append(
                _Open(path=path if path and enters(path) else None, index=0 if word == "[" else None)
            )
