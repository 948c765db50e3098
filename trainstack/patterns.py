"""Patterns from outside, searched by RE2: no text takes longer than its length times the pattern's size.

Python's `re` tries every way to match, which takes practically forever for `(a+)+b` and a line of `a`.
Source: https://github.com/google/re2/wiki/Syntax, read 2026-11.
"""

import re2

MAX_CHARS = 2000
"""Of one pattern. Parsing a longer one takes too long, whatever its size is then."""
MAX_SIZE = 300
"""Of RE2's program. With it, 256 KiB of the worst text take about half a second of processor time, 5 ns a step."""

_MAX_MEMORY_BYTES = 1024 * 1024
"""Of one pattern's program and of the states that RE2 keeps for it."""


class PatternError(ValueError):
    """The pattern is not a regular expression of RE2's, or is too large; the message continues `the pattern `."""


class Pattern:
    """A regular expression of RE2's. Thread-safe; searching lets other threads run, compiling does not.

    Attributes:
        size: of its program, in instructions. Searching a text takes at most its bytes times this size in steps.
    """

    __slots__ = ("_compiled", "size")

    def __init__(self, expression: str, *, max_size: int = MAX_SIZE, max_chars: int = MAX_CHARS) -> None:
        """Compile it.

        Raises:
            PatternError: with what is wrong with it, or what is allowed.
        """
        if len(expression) > max_chars:
            raise PatternError(f"has {len(expression)} characters; at most {max_chars} are allowed")
        options = re2.Options()
        options.log_errors = False
        options.never_capture = True
        options.max_mem = _MAX_MEMORY_BYTES
        try:
            self._compiled = re2.compile(expression.encode(errors="replace"), options)
        except re2.error as fault:
            raise PatternError(f"is not a regular expression of RE2's: {_said(fault)}") from fault
        self.size: int = self._compiled.programsize
        if self.size > max_size:
            raise PatternError(
                f"compiles to {self.size} instructions; at most {max_size} are allowed: "
                "repeat less in it, and use fewer classes such as \\pL"
            )

    def is_in(self, text: str) -> bool:
        """Whether any part of the text matches."""
        return self._compiled.search(text.encode(errors="replace")) is not None

    def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        return self._compiled.fullmatch(text.encode(errors="replace")) is not None


def _said(fault: Exception) -> str:
    """RE2's own words, which repeat the rest of the pattern: the beginning of them."""
    reason = fault.args[0] if fault.args else b""
    return (reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason))[:200]
