"""What a replica's standard error says of its end: the error, and the line of the program it came from."""

import re
from dataclasses import dataclass
from pathlib import Path

from trainmaster.inspect.finding import Place, as_seen

RAISED = re.compile(r'^\s*File "(.+?)", line (\d+), in ', re.MULTILINE)
DUMPED = re.compile(r'^\s*File "(.+?)", line (\d+) in (.+)$', re.MULTILINE)
THREAD = re.compile(r"^(?:Current thread|Thread) 0x.*?:$", re.MULTILINE)
TRACEBACK = "Traceback (most recent call last)"
EXCEPTION = re.compile(
    r"^(?!(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL):)[^\W\d][\w.<>]*(?::.*)?$", re.MULTILINE
)
"""The line behind a traceback's frames, between which another thread may have logged."""
IGNORED = re.compile(rf"^Exception ignored .*\n{re.escape(TRACEBACK)}:\n(?:[ \t].*\n)*.*\n?", re.MULTILINE)
"""Of an object that is taken down with the interpreter, after the program has ended."""
LAST_WORD = re.compile(r"^(?:Fatal Python error|\S+: error): .*$", re.MULTILINE)
"""What a process says itself of its end, even behind a traceback: the interpreter, or a parser of arguments."""
ERROR = re.compile(r"^(?:[\w.]+(?:Error|Exception|Interrupt|Exit)\b.*|.*\berror: .*)$", re.MULTILINE)
NODE = re.compile(r"\{\{.*?\}\} ?")
MAX_CHARACTERS = 200


@dataclass(frozen=True, kw_only=True)
class LastError:
    """`text` is one line, empty where none was written; `place` is in the program's own files, `code` its text."""

    text: str
    place: Place | None
    code: str = ""


def last_error_in(text: str, root: Path) -> LastError:
    """Of the last traceback, or of the stacks that an aborted process wrote."""
    text = IGNORED.sub("", text)
    place = _dumped(text, root) or _raised(text, root)
    return LastError(
        text=_short(_error(text).strip()), place=place, code="" if place is None else _code(place)
    )


def _error(text: str) -> str:
    """The exception that ended the program, whatever the threads of a runtime wrote after it of a lost peer."""
    _, raised, last = text.rpartition(TRACEBACK)
    if raised:
        words, exceptions = LAST_WORD.findall(last), EXCEPTION.findall(last)
        # An exception without a text comes last, for it may be a lone word that a thread has printed.
        found = [*words[-1:], *(line for line in exceptions if ":" in line), *exceptions]
        if found:
            return str(found[0])
    errors = ERROR.findall(text)
    lines = [line for line in text.splitlines() if line.strip()]
    return str(errors[-1]) if errors else (lines[-1] if lines else "")


def _short(error: str) -> str:
    """Without the graph nodes that TensorFlow names, and not endless."""
    kept = NODE.sub("", error)
    return kept if len(kept) <= MAX_CHARACTERS else kept[:MAX_CHARACTERS] + "…"


def _code(place: Place) -> str:
    lines = Path(place.path).read_text(errors="replace").splitlines()
    number = (place.line or 0) - 1
    return lines[number].partition("  #")[0].strip() if 0 <= number < len(lines) else ""


def _raised(text: str, root: Path) -> Place | None:
    """The innermost line of the program itself in the last traceback."""
    last = text.rpartition(TRACEBACK)[2]
    own = [place for path, line in RAISED.findall(last) if (place := _own(path, line, root)) is not None]
    return own[-1] if own else None


def _dumped(text: str, root: Path) -> Place | None:
    """The innermost line of the program itself in the main thread: the one whose stack begins at a module."""
    for stack in THREAD.split(text)[1:]:
        frames = DUMPED.findall(stack)
        if any(function.strip() == "<module>" for _, _, function in frames):
            own = [place for path, line, _ in frames if (place := _own(path, line, root)) is not None]
            if own:
                return own[0]
    return None


def _own(path: str, line: str, root: Path) -> Place | None:
    file = Path(path)
    file = file if file.is_absolute() else root / file
    if not file.is_relative_to(root) or "site-packages" in file.parts or not file.is_file():
        return None
    return Place(path=as_seen(file), line=int(line))
