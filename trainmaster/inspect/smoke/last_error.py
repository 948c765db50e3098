"""The last error in a replica's standard error, and the program's line that raised it."""

import re
from dataclasses import dataclass
from pathlib import Path

from trainmaster.client.terminal import relative_to_cwd
from trainmaster.inspect.finding import SourceLocation
from trainmaster.orchestrator.core.completion.last_error import TRACEBACK, parse_error, without_ignored

RAISED = re.compile(r'^[ \t]*File "(.+?)", line (\d+), in ', re.MULTILINE)
DUMPED = re.compile(r'^[ \t]*File "(.+?)", line (\d+) in (.+)$', re.MULTILINE)
THREAD = re.compile(r"^(?:Current thread|Thread) 0x.*?:$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class LastError:
    """`text` is one line, empty where none was written; `place` is in the program's own files, `code` its text."""

    text: str
    place: SourceLocation | None
    code: str = ""


def parse_last_error(text: str, root: Path) -> LastError:
    """The error of the last traceback, with its place; or a place of the stacks that an aborted process wrote."""
    kept = without_ignored(text)
    place = _dumped_place(kept, root) or _raised_place(kept, root)
    return LastError(text=parse_error(text), place=place, code="" if place is None else _code(place))


def _code(place: SourceLocation) -> str:
    lines = Path(place.path).read_text(errors="replace").splitlines()
    number = (place.line or 0) - 1
    return lines[number].partition("  #")[0].strip() if 0 <= number < len(lines) else ""


def _raised_place(text: str, root: Path) -> SourceLocation | None:
    """The innermost line of the program itself in the last traceback."""
    last = text.rpartition(TRACEBACK)[2]
    places = [_program_place(path, line, root) for path, line in RAISED.findall(last)]
    return next(filter(None, reversed(places)), None)


def _dumped_place(text: str, root: Path) -> SourceLocation | None:
    """The innermost line of the program itself in the main thread: the one whose stack begins at a module."""
    for stack in THREAD.split(text)[1:]:
        frames = DUMPED.findall(stack)
        if any(function.strip() == "<module>" for _, _, function in frames):
            places = [_program_place(path, line, root) for path, line, _ in frames]
            if place := next(filter(None, places), None):
                return place
    return None


def _program_place(path: str, line: str, root: Path) -> SourceLocation | None:
    file = Path(path)
    file = file if file.is_absolute() else root / file
    if not file.is_relative_to(root) or "site-packages" in file.parts or not file.is_file():
        return None
    return SourceLocation(path=relative_to_cwd(file), line=int(line))
