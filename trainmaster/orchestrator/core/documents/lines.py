"""On which line of a text each path of its document stands."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from trainmaster.orchestrator.core.documents.faults import PathPart, json_path

MAX_LINES = 10_000
"""Paths beyond these are left out: the map stays small beside the largest text that is taken."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def parse_line_numbers(text: str, *, as_json: bool) -> Mapping[str, int]:
    """The line, counted from 1, of each path of a text that was read without a fault."""
    if as_json:
        found = _json_lines(text)
    else:
        from trainmaster.orchestrator.core.documents.yaml_text import yaml_lines

        found = yaml_lines(text)
    return {json_path(path): line for path, line in islice(found, MAX_LINES)}


def _json_lines(text: str) -> Iterator[tuple[tuple[PathPart, ...], int]]:
    path: list[PathPart | None] = []
    """Of each container around: the index in a list, the key in an object, None before a key."""
    line, at = 1, 0
    for token in _TOKEN.finditer(text):
        line, at = line + text.count("\n", at, token.start()), token.start()
        match token[0]:
            case ":":
                continue
            case ",":
                path[-1] = path[-1] + 1 if isinstance(path[-1], int) else None
                continue
            case "}" | "]":
                path.pop()
                continue
        if path and path[-1] is None:
            path[-1] = str(json.loads(token[0]))
            yield _whole(path), line
            continue
        if not path or isinstance(path[-1], int):
            yield _whole(path), line
        if token[0] in "{[":
            path.append(None if token[0] == "{" else 0)


def _whole(path: list[PathPart | None]) -> tuple[PathPart, ...]:
    return tuple(part for part in path if part is not None)
