"""The error that ended a program, found in what the program wrote to standard error."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

TRACEBACK = "Traceback (most recent call last)"
LOST_PEER = (
    "UnavailableError",
    "AbortedError",
    "CancelledError",
    "DeadlineExceededError",
    "Collective ops is aborted",
    "Socket closed",
    "DistBackendError",
    "Connection closed by peer",
)
"""Words of TensorFlow's and PyTorch's errors in a replica whose peer ended before it."""
ERROR_MAX_CHARS = 200
LINES_BEFORE, LINES_BEHIND = 15, 4
"""How many lines around an error belong to it."""

_EXCEPTION = re.compile(
    r"^(?!(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL):)[^\W\d][\w.<>]*(?::.*)?$", re.MULTILINE
)
"""The line behind a traceback's frames, between which another thread may have logged."""
_IGNORED_BEGINS = "Exception ignored "
_IGNORED = re.compile(rf"^{_IGNORED_BEGINS}.*\n{re.escape(TRACEBACK)}:\n(?:[ \t].*\n)*.*\n?", re.MULTILINE)
"""Of an object that is taken down with the interpreter, after the program has ended."""
_LAST_WORD = re.compile(r"^(?:Fatal Python error|\S+: error): .*$", re.MULTILINE)
"""What a process says itself of its end, even behind a traceback: the interpreter, or a parser of arguments."""
_ERROR = re.compile(r"^(?:[\w.]+(?:Error|Exception|Interrupt|Exit)\b.*|.*\berror: .*)$", re.MULTILINE)
_NODE = re.compile(r"\{\{.*?\}\} ?")
_USAGE = re.compile(r"usage: ", re.IGNORECASE)
_REFUSED = re.compile(r"(?:\S+: )?error: .*", re.IGNORECASE)
"""Of argparse and click, behind the usage.

Source: https://docs.python.org/3/library/argparse.html#exiting-methods
"""
_FLAGS_REFUSED = "FATAL Flags parsing error:"
"""Of absl, before the reason. Source: absl.app.parse_flags_with_usage"""


@dataclass(frozen=True, kw_only=True)
class ErrorFound:
    """An error among lines: `lines[index]` tells of it, and `around` are the lines that belong to it.

    `is_certain`: it is a traceback, or a word that only a program that ends writes; any other line with "error" in it
    may be that of a program that continued.
    """

    text: str
    index: int
    around: tuple[str, ...]
    is_certain: bool = True
    refused_arguments: bool = False


def tells_of_lost_peer(error: str) -> bool:
    return any(sign in error for sign in LOST_PEER)


def parse_error(text: str) -> str:
    """The line of the exception that ended the program, whatever its runtime's threads wrote after it.

    Without any error it is the last line; empty where nothing was written.
    """
    text = without_ignored(text)
    lines = [line for line in text.splitlines() if line.strip()]
    error = _raised(text) or _last_mentioned(text) or (lines[-1] if lines else "")
    return shortened_error(error.strip())


def without_ignored(text: str) -> str:
    """The text without the exceptions that Python itself ignored."""
    return _IGNORED.sub("", text)


def shortened_error(error: str) -> str:
    """Without the graph nodes that TensorFlow names, and not endless."""
    kept = _NODE.sub("", error)
    return kept if len(kept) <= ERROR_MAX_CHARS else kept[:ERROR_MAX_CHARS] + "…"


def error_found(lines: Sequence[str]) -> ErrorFound | None:
    """The error that ended the program which wrote these lines, oldest first; None where no line tells of one."""
    begin = _last_traceback(lines)
    refused = _arguments_refused(lines, after=begin)
    if refused is not None:
        return refused
    text = without_ignored("\n".join((*lines, "")))
    raised, mentioned = _raised(text), _last_mentioned(text)
    if raised:
        index = next((at for at in range(max(begin, 0), len(lines)) if lines[at] == raised), len(lines) - 1)
        return _found(lines, raised, begin=begin, index=index, is_certain=True)
    if mentioned:
        index = len(lines) - 1 - list(reversed(lines)).index(mentioned)
        return _found(
            lines, mentioned, begin=index, index=index, is_certain=bool(_LAST_WORD.match(mentioned))
        )
    return None


def _found(lines: Sequence[str], error: str, *, begin: int, index: int, is_certain: bool) -> ErrorFound:
    return ErrorFound(
        text=shortened_error(error.strip()),
        index=index,
        around=tuple(lines[max(begin, index - LINES_BEFORE) : index + 1 + LINES_BEHIND]),
        is_certain=is_certain,
    )


def _last_traceback(lines: Sequence[str]) -> int:
    """Where the last traceback begins that Python did not ignore; -1 without one."""
    for number in range(len(lines) - 1, -1, -1):
        if TRACEBACK in lines[number] and not lines[max(number - 1, 0)].startswith(_IGNORED_BEGINS):
            return number
    return -1


def _arguments_refused(lines: Sequence[str], *, after: int) -> ErrorFound | None:
    """What a parser of arguments said before it ended the program."""
    begin = after
    for number in range(after + 1, len(lines)):
        if _USAGE.match(lines[number]):
            begin = number
        elif lines[number].startswith(_FLAGS_REFUSED):
            reason = " ".join(line.strip() for line in lines[number : number + 2])
            return replace(
                _found(lines, reason, begin=number, index=number, is_certain=True), refused_arguments=True
            )
        elif begin > after and _REFUSED.fullmatch(lines[number]):
            return replace(
                _found(lines, lines[number], begin=begin, index=number, is_certain=True),
                refused_arguments=True,
            )
    return None


def _raised(text: str) -> str:
    """The exception of the last traceback, or the last word behind it; empty without a traceback."""
    _, raised, last = text.rpartition(TRACEBACK)
    if not raised:
        return ""
    words, exceptions = _LAST_WORD.findall(last), _EXCEPTION.findall(last)
    # An exception without a text comes last, for it may be a lone word that a thread has printed.
    found = [*words[-1:], *(line for line in exceptions if ":" in line), *exceptions]
    return str(found[0]) if found else ""


def _last_mentioned(text: str) -> str:
    errors = _ERROR.findall(text)
    return str(errors[-1]) if errors else ""
