"""The checker of wording: `python -m tests.repo.wording [PATH...]`.

Without a path it prints the rate of each folder, and exits with 1 if the whole repository is above the limit. With
paths, files or folders from the repository's root, it lists each finding below them, with what to write instead.

It reads the prose of docs, comments, docstrings and strings that hold sentences.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.repo.files import ROOT, project_files

LIMIT = 0.3
"""Phrases per 1,000 words of prose in the whole repository. It only falls."""
SKIPPED = ("tests/repo/wording.py", "tests/repo/test_wording.py", "tests/inspect/trees/", "tests/e2e/images/")
"""The checker quotes what it looks for; the last two are programs as users write them."""

_BE = r"(?:is|are|was|were|be|been|being)"
PHRASES = {
    r"whoever|whomever": "name it: the process that, the caller that, the user who",
    r"somebody|anybody|everybody|(?<!user\s)nobody": "name it: another process, any client, no user",
    r"told": "reported, notified, given; unless told otherwise → by default",
    r"hears?|heard": "receives, learns, gets the notice",
    r"says? of|said of": "says about",
    r"be said": "is reported, is stated",
    r"nothing of": "none of, nothing about, nothing from",
    r"as (?:\w+ ){1,4}ha(?:s|ve) (?:it|them)": "as … defines it, as … documents it",
    r"(?:goes|go|went|gone|going) on": "continues",
    r"(?<!it\s)(?:comes|come|came|coming) to(?! (?:an end|a stop|rest))": "reaches, becomes, ends up",
    r"(?<!in\s)the way of": "the path of, how",
    r"stands? (?:there|at|beside|behind|in(?! for| the way))": "is",
    r"be had": "is available",
    r"be wanted|wanted here": "expected, required",
    r"wants": "expects, needs",
    r"may not be (?:\w+ed|read|written|seen|sent|run|shown|taken)": "cannot be, must not be, is not allowed to be",
    r"(?<!there\s)be no (?!longer|more|other|less|one|such|need|room|different|better)": "is not a, is not",
    r"for ever|without end": "forever, indefinitely",
    r"of (?:its|one's|their|our) own": "its own …, a separate …, a dedicated …",
    r"in (?:\w+ )?hands?": "being processed, claimed",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"pass(?:es|ed|ing)? over": "skip, ignore",
    r"be looked (?:at|for|after)": "is checked, is searched for, is inspected",
    r"be asked for": "is requested",
    r"beforehand": "in advance",
}
"""Phrases that a native English maintainer would not write, each with what to write instead.

A space matches any white space, so that a phrase is found across two lines. `be` stands for each form of the verb.
"""
_ROWS = [re.sub(r"(?<![\w ])be(?= )", lambda _: _BE, row).replace(" ", r"\s+") for row in PHRASES]
_ANY = re.compile(rf"\b(?:{'|'.join(f'({row})' for row in _ROWS)})\b", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_SENTENCE = re.compile(r"(?:^|\s)[\w'’(\"`{…-]+ [a-z'’]+[ ,.:;]+[\w'’`{…$<-]+")
_CODE = re.compile(r"`[^`\n]*`|https?://\S+")
_KEY = re.compile(r"^[\s-]*(?:[\w.$/-]+\s*[:=](?=\s|$))?")
_COMMENT = re.compile(r"(?:^\s*|\s{2})#(?!\s*(?:noqa|type:|pragma|fmt:|!)) ?(?P<text>.*)")
_GAP = "¶"
"""Between two pieces of prose on one line, and on lines that have none: no phrase crosses it."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One phrase at a line of a file, counted from one, as it is written there, and what to write instead."""

    path: str
    line: int
    phrase: str
    repair: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.phrase!r} → {self.repair}"


@dataclass(frozen=True, kw_only=True)
class Report:
    """The findings in some files, and the number of words of prose in each folder."""

    findings: tuple[Finding, ...]
    words_in: Counter[str]

    @property
    def rate(self) -> float:
        """Phrases per 1,000 words."""
        return 1000 * len(self.findings) / max(self.words_in.total(), 1)

    def rates(self) -> Iterator[str]:
        """The rate of each folder that has findings, highest number of findings first."""
        for folder, number in Counter(_folder(finding.path) for finding in self.findings).most_common():
            words = self.words_in[folder]
            yield f"{1000 * number / words:7.2f} per 1,000  {number:5} in {words:6} words  {folder}"


def report_on(files: Iterable[tuple[str, str]]) -> Report:
    """The report on files, each a path and its content."""
    findings: list[Finding] = []
    words_in: Counter[str] = Counter()
    for path, content in files:
        text = prose_of(path, content)
        words_in[_folder(path)] += len(_WORD.findall(text))
        findings += findings_in(path, text)
    return Report(findings=tuple(findings), words_in=words_in)


def repository(*under: str) -> Iterator[tuple[str, str]]:
    """Path from the root and content of each file below the paths, without those that are skipped."""
    for path in project_files(*under):
        if not path.startswith(SKIPPED) and (ROOT / path).is_file():
            try:
                yield path, (ROOT / path).read_text()
            except UnicodeDecodeError:
                continue


def findings_in(path: str, text: str) -> Iterator[Finding]:
    """The phrases in a text, in order. Of two that overlap, the one that begins first."""
    for match in _ANY.finditer(text):
        repair = list(PHRASES.values())[(match.lastindex or 1) - 1]
        line = text.count("\n", 0, match.start()) + 1
        yield Finding(path=path, line=line, phrase=" ".join(match.group().split()), repair=repair)


def prose_of(path: str, content: str) -> str:
    """The lines of a file with only their prose left, without code and addresses; empty for other kinds of files."""
    lines = content.splitlines()
    if path.endswith(".py"):
        prose = _python(content, lines)
    elif path.endswith(".md"):
        prose = _markdown(lines)
    elif path.endswith(".json"):
        prose = [f" {_GAP} ".join(_sentences(line)) for line in lines]
    elif path.endswith((".yaml", ".yml", ".tf", ".toml", "Makefile", "Dockerfile")):
        prose = [_setting(line) for line in lines]
    else:
        prose = []
    return _CODE.sub("`…`", "\n".join(line or _GAP for line in prose))


def _markdown(lines: list[str]) -> list[str]:
    in_code = False
    prose = []
    for line in lines:
        in_code ^= line.lstrip().startswith("```")
        prose.append("" if in_code else line)
    return prose


def _sentences(line: str) -> Iterator[str]:
    """The strings of a line of JSON that are sentences."""
    for quoted in re.findall(r'"(?:[^"\\]|\\.)*"', line):
        value = json.loads(quoted, strict=False)
        if _SENTENCE.search(value):
            yield value


def _setting(line: str) -> str:
    """The comment, and the value if it is a sentence, of a line in a format whose comments begin with `#`."""
    before, _, comment = line.partition("#")
    value = _KEY.sub("", before)
    return f"{value if _SENTENCE.search(value) else ''} {comment}".strip()


def _python(content: str, lines: list[str]) -> list[str]:
    prose = [match["text"] if (match := _COMMENT.search(line)) else "" for line in lines]
    for node, text in _strings(ast.parse(content)):
        if _SENTENCE.search(text):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            parts = text.split("\n")
            if len(parts) == last - first:  # written between three quotes
                prose[first:last] = parts
            else:
                prose[first] += f" {_GAP} " + text.replace("\n", " ")
    return prose


def _strings(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """The strings below a node of the syntax tree, each f-string as one."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in child.values)
            yield child, "".join(parts)
        elif isinstance(child, ast.Constant) and isinstance(child.value, str):
            yield child, child.value
        else:
            yield from _strings(child)


def _folder(path: str) -> str:
    """At most the first three folders of a path; a file of the root as it is."""
    return "/".join(path.split("/")[:-1][:3]) or path


def main(paths: list[str]) -> int:
    report = report_on(repository(*(path.removeprefix("./").rstrip("/") for path in paths)))
    summary = (
        f"{len(report.findings)} phrases in {report.words_in.total()} words: {report.rate:.2f} per 1,000; at most "
        f"{LIMIT} are allowed in the whole repository. List those of a folder: python -m tests.repo.wording FOLDER"
    )
    lines = map(str, report.findings) if paths else report.rates()
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, summary]))
    return 1 if report.rate > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
