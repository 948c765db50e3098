"""The lines of one .gitignore, matched as git does, in time that no line can make long.

Names without wildcards are looked up. The other lines are one expression for RE2 in each run of lines that all ignore,
or all do not. Source: https://git-scm.com/docs/gitignore and git's dir.c and wildmatch.c of version 2.39, read 2026-11.
As there, a byte is a character.
"""

from dataclasses import dataclass, field
from typing import Any

import re2

from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.gitignore.wildmatch import has_wildcard, re2_expression

MAX_BYTES = 512 * 1024
MAX_SIZE = 10_000
"""Of the expressions of all runs, in instructions. The longest of GitHub's templates has 3,000."""

_BOM = b"\xef\xbb\xbf"
_MAX_MEMORY_BYTES = 1024 * 1024
"""Of one pattern's program and of the states that RE2 keeps for it."""


class GitignoreError(ClientRefused):
    """A .gitignore beyond what is matched here; the message continues after its path."""


@dataclass
class _Run:
    """Lines beside each other that all ignore what they match, or all do not.

    Attributes:
        names: of lines without a wildcard or '/', which hold at any depth; those of folders alone end with '/'.
        paths: of the other lines without a wildcard.
        expressions: of lines with wildcards, by what stands before them.
    """

    ignores: bool
    names: set[bytes] = field(default_factory=set)
    paths: set[bytes] = field(default_factory=set)
    expressions: dict[bytes, dict[bytes, None]] = field(default_factory=dict)
    pattern: Any = None  # Any: RE2's, which ships no types

    def compile(self) -> int:
        """Returns the size of its pattern, in instructions. Raises `re2.error` for one that takes too much memory."""
        if not self.expressions:
            return 0
        kinds = (b"%s(?:%s)" % (before, b"|".join(each)) for before, each in self.expressions.items())
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = _MAX_MEMORY_BYTES
        options.encoding = re2.Options.Encoding.LATIN1
        self.pattern = re2.compile(b"(?s)(?:%s)" % b"|".join(kinds), options)
        return int(self.pattern.programsize)

    def holds(self, path: bytes, *, is_folder: bool) -> bool:
        name = path.rpartition(b"/")[2]
        if name in self.names or path in self.paths:
            return True
        if is_folder and (name + b"/" in self.names or path + b"/" in self.paths):
            return True
        return self.pattern is not None and bool(self.pattern.fullmatch((b"d" if is_folder else b"f") + path))


class Gitignore:
    """What one .gitignore says about the paths below its folder."""

    def __init__(self, content: bytes) -> None:
        """Read it.

        Raises:
            GitignoreError: it is too large, or has too many wildcards.
        """
        if len(content) > MAX_BYTES:
            raise GitignoreError(f"has more than {MAX_BYTES} bytes")
        self._runs: list[_Run] = []
        for line in content.removeprefix(_BOM).split(b"\n"):
            self._add(line.removesuffix(b"\r"))
        left = MAX_SIZE
        for run in self._runs:
            try:
                left -= run.compile()
            except re2.error:
                left = -1
            if left < 0:
                raise GitignoreError(
                    f"has too many wildcards: the pattern of its lines would have more than {MAX_SIZE} instructions"
                )

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Whether git ignores the path, relative to the file's folder; None where no line matches.

        No folder above the path may be ignored: git does not look into these.
        """
        run = next((each for each in reversed(self._runs) if each.holds(path, is_folder=is_folder)), None)
        return None if run is None else run.ignores

    def _add(self, line: bytes) -> None:
        text = _without_trailing_spaces(line) if line.endswith(b" ") else line
        if not text or text.startswith(b"#"):
            return
        run = self._run(ignores=not text.startswith(b"!"))
        text = text.removeprefix(b"!")
        only_folders = text.endswith(b"/")
        text = text[:-1] if only_folders else text
        is_path = b"/" in text
        text = text.removeprefix(b"/")
        if not has_wildcard(text):
            (run.paths if is_path else run.names).add(text + b"/" if only_folders else text)
        elif (found := re2_expression(text, is_path=is_path)) is not None:
            before = (b"d" if only_folders else b"[df]") + (b"" if is_path else b"(?:.*/)?")
            run.expressions.setdefault(before, {})[found] = None

    def _run(self, *, ignores: bool) -> _Run:
        if not self._runs or self._runs[-1].ignores is not ignores:
            self._runs.append(_Run(ignores=ignores))
        return self._runs[-1]


def _without_trailing_spaces(line: bytes) -> bytes:
    """One after a backslash stays, and what stands before it."""
    text = line.rstrip(b" ")
    backslashes = len(text) - len(text.rstrip(b"\\"))
    return text + b" " if backslashes % 2 and len(text) < len(line) else text
