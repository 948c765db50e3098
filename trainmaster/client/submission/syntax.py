"""Whether a script is Python at all, before anything is sent."""

import sys
import warnings
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.documents.places import Place, quoted

_PYTHON = f"Python {sys.version_info[0]}.{sys.version_info[1]}"


def syntax_fault(script: Path, at: Iterable[PathPart]) -> Fault | None:
    """Why this Python cannot compile the script that is named at this path, at its place in the script; None if it can.

    The script is not run.

    Raises:
        OSError: it cannot be read.
    """
    source = script.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(script), "exec", flags=0, dont_inherit=True)
    except SyntaxError as error:
        problem = f"{_PYTHON} cannot compile line {error.lineno or 1}: {one_line(error.msg)}"
        place = _place_of(error)
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, or a tree too deep for the compiler
        problem = f"{_PYTHON} cannot compile it: {error or 'it is nested too deeply'}"
        place = None
    else:
        return None
    here = Path.cwd()
    shown = script.relative_to(here) if script.is_relative_to(here) else script
    return Fault(at=at, problem=problem, place=place, source=str(shown))


def _place_of(error: SyntaxError) -> Place | None:
    """Where the script's line is at fault; None if the compiler does not quote the line."""
    text = (error.text or "").rstrip("\r\n")
    if not text.strip():
        return None
    return replace(
        quoted(Place(line=1, column=max(1, error.offset or 1)), [text], ()), line=error.lineno or 1
    )
