"""Whether a script is Python at all, before anything is sent."""

import sys
import warnings
from pathlib import Path

from trainmaster.client.terminal import one_line

LINE_MAX_CHARS = 200
"""A longer line is not shown."""


def syntax_problem(script: Path) -> str | None:
    """Why this Python cannot compile the script, with the line and a mark below its place; None if it can.

    The script is not run.

    Raises:
        OSError: it cannot be read.
    """
    source, shown = script.read_bytes(), _from_here(script)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(script), "exec", flags=0, dont_inherit=True)
    except SyntaxError as error:
        return _with_mark(shown, error)
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, or a tree too deep for the compiler
        return f"{shown}: error: {error or 'it is nested too deeply'}"
    return None


def _from_here(script: Path) -> Path:
    here = Path.cwd()
    return script.relative_to(here) if script.is_relative_to(here) else script


def _with_mark(script: Path, error: SyntaxError) -> str:
    line, column = error.lineno or 1, error.offset or 0
    where = f"{script}:{line}:{column}" if column > 0 else f"{script}:{line}"
    shown = [f"{where}: error: {one_line(error.msg)} (Python {sys.version_info[0]}.{sys.version_info[1]})"]
    text = (error.text or "").rstrip("\r\n")
    if text.strip() and len(text) <= LINE_MAX_CHARS:
        number = str(line)
        shown.append(f"  {number} | {one_line(text.expandtabs(1))}")
        if column > 0:
            shown.append(f"  {' ' * len(number)} | {' ' * (column - 1)}^")
    return "\n".join(shown)
