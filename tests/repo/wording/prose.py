"""The prose of the repository: docs, comments, docstrings, and the strings that hold sentences."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.repo.files import ROOT, project_files

SKIPPED = (
    "docs/decisions/",
    "tests/repo/wording/",
    "tests/repo/test_wording.py",
    "tests/inspect/trees/",
    "tests/e2e/images/",
)
"""Decisions quote what was refused, the checker what it looks for; the last two are programs as users write them."""
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_SENTENCE = re.compile(r"(?:^|\s)[\w'’(\"`{…-]+ [a-z'’]+[ ,.:;]+[\w'’`{…$<-]+")
_CODE = re.compile(r"`[^`\n]*`|https?://\S+")
_NOT_PROSE_COMMENT = re.compile(r"#\s*(?:noqa|type:|pragma|fmt:|!)")


@dataclass(frozen=True, kw_only=True)
class Passage:
    """Prose that belongs together. `lines` has the number in its file of each line of `text`, counted from one."""

    path: str
    lines: tuple[int, ...]
    text: str

    def line_at(self, offset: int) -> int:
        """The line in the file of the character at `offset` of the text."""
        return self.lines[min(self.text.count("\n", 0, offset), len(self.lines) - 1)]


def passages(path: str, content: str) -> list[Passage]:
    """The prose of one file; nothing for a file of a kind that has none."""
    name = path.rpartition("/")[2]
    if path.endswith(".py"):
        return _of_python(path, content)
    if path.endswith(".md"):
        return _of_lines(path, _markdown_lines(content))
    if path.endswith(".json"):
        return _of_lines(path, _json_lines(content))
    if path.endswith((".yaml", ".yml", ".tf", ".toml")) or name in {"Makefile", "Dockerfile"}:
        return _of_lines(path, _setting_lines(content))
    return []


def repository(*under: str) -> Iterator[tuple[str, str]]:
    """Path from the root and content of each file below the paths, without those that are skipped."""
    for path in project_files(*under):
        if not path.startswith(SKIPPED) and (ROOT / path).is_file():
            try:
                yield path, (ROOT / path).read_text()
            except UnicodeDecodeError:
                continue


def is_sentence(text: str) -> bool:
    """Whether a string is prose rather than a name, a path, a pattern or code."""
    return bool(_SENTENCE.search(text))


def _without_code(text: str) -> str:
    return _CODE.sub("`…`", text)


def _of_lines(path: str, lines: Iterator[tuple[int, str]]) -> list[Passage]:
    kept = list(lines)
    if not kept:
        return []
    return [
        Passage(
            path=path,
            lines=tuple(number for number, _ in kept),
            text=_without_code("\n".join(line for _, line in kept)),
        )
    ]


def _markdown_lines(content: str) -> Iterator[tuple[int, str]]:
    in_code = False
    for number, line in enumerate(content.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code:
            yield number, line


_KEY = re.compile(r"^[\s-]*(?:[\w.$/-]+\s*[:=](?=\s|$))?")


def _setting_lines(content: str) -> Iterator[tuple[int, str]]:
    """Comments and the values that are prose, of a format whose comments begin with `#`."""
    for number, line in enumerate(content.splitlines(), start=1):
        before, mark, comment = line.partition("#")
        value = _KEY.sub("", before)
        prose = (value if is_sentence(value) else "") + (f" {comment}" if mark else "")
        if prose.strip():
            yield number, prose


def _json_lines(content: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(content.splitlines(), start=1):
        for quoted in re.findall(r'"(?:[^"\\]|\\.)*"', line):
            value = json.loads(quoted, strict=False)
            if is_sentence(value):
                yield number, value


def _of_python(path: str, content: str) -> list[Passage]:
    tree = ast.parse(content)
    lines = content.splitlines()
    spans: list[ast.expr] = []
    found: list[Passage] = []
    _strings(tree, spans)
    for node in spans:
        text = _text_of(node)
        if is_sentence(text):
            found.append(_string_passage(path, node, text))
    found += _comments(path, lines, spans)
    return sorted(found, key=lambda passage: passage.lines[0])


def _strings(node: ast.AST, found: list[ast.expr]) -> None:
    """Collect the strings, each f-string as one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            found.append(child)
        elif isinstance(child, ast.Constant):
            if isinstance(child.value, str):
                found.append(child)
        else:
            _strings(child, found)


def _text_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)


def _string_passage(path: str, node: ast.expr, text: str) -> Passage:
    first, last = node.lineno, node.end_lineno or node.lineno
    if text.count("\n") == last - first:  # written between three quotes
        return Passage(path=path, lines=tuple(range(first, last + 1)), text=_without_code(text))
    return Passage(path=path, lines=(first,), text=_without_code(text.replace("\n", " ")))


def _comments(path: str, lines: list[str], spans: list[ast.expr]) -> Iterator[Passage]:
    inside: dict[int, list[tuple[int, int]]] = {}
    for node in spans:
        last = node.end_lineno or node.lineno
        for number in range(node.lineno, last + 1):
            start = node.col_offset if number == node.lineno else 0
            end = (node.end_col_offset or 0) if number == last else 1 << 20
            inside.setdefault(number, []).append((start, end))
    block: list[tuple[int, str]] = []
    for number, line in enumerate(lines, start=1):
        comment = _comment_of(line, inside.get(number, [])) if "#" in line else None
        if comment is not None and not _NOT_PROSE_COMMENT.match(comment):
            if block and (block[-1][0] != number - 1 or line.lstrip()[0] != "#"):
                yield from _of_lines(path, iter(block))
                block = []
            block.append((number, comment.lstrip("# ")))
    yield from _of_lines(path, iter(block))


def _comment_of(line: str, strings: list[tuple[int, int]]) -> str | None:
    encoded = line.encode()  # columns of the syntax tree count bytes
    for match in re.finditer(b"#", encoded):
        if not any(start <= match.start() < end for start, end in strings):
            return encoded[match.start() :].decode()
    return None
