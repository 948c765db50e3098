"""The line of each path of a document."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice

from trainmaster.orchestrator.core.documents.faults import PathPart, json_path

MAX_LINES = 10_000
"""Further paths are left out, so that the map stays small compared with the largest text accepted."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def parse_line_numbers(text: str, *, as_json: bool) -> Mapping[str, int]:
    """The line, counted from 1, of each path of a text that has no fault."""
    if as_json:
        found = _json_lines(text)
    else:
        from trainmaster.orchestrator.core.documents.yaml_text import yaml_lines

        found = yaml_lines(text)
    return {json_path(path): line for path, line in islice(found, MAX_LINES)}


def _json_lines(text: str) -> Iterator[tuple[tuple[PathPart, ...], int]]:
    path: list[PathPart | None] = []
    """For each enclosing container: the index in a list, the key in an object, None before a key."""
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
