"""The error that ended a program, found in its standard error."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainmaster.orchestrator.core.documents.faults import cut

TRACEBACK = "Traceback (most recent call last)"
CHAINED = {
    "The above exception was the direct cause of the following exception:": "caused by",
    "During handling of the above exception, another exception occurred:": "while handling",
}
"""What the interpreter writes above the traceback of an exception, by how it follows from the one before."""
CHAIN_MAX = 10
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
"""Found in errors of TensorFlow and PyTorch in a replica that lost a peer."""
ERROR_MAX_CHARS, CHAIN_MAX_CHARS = 200, 240
"""Of one exception, and of one with the first of its chain."""
LINES_BEFORE, LINES_BEHIND = 15, 4
LINES_OF_PLACE = 5
"""How many lines around an error belong to it."""

_EXCEPTION = re.compile(
    r"^(?!(?:DEBUG|INFO|WARNING|ERROR|CRITICAL|FATAL):)[^\W\d][\w.<>]*(?::.*)?$", re.MULTILINE
)
"""The line after a traceback's frames; another thread may have logged between them."""
_IGNORED_BEGINS = "Exception ignored "
_IGNORED = re.compile(rf"^{_IGNORED_BEGINS}.*\n{re.escape(TRACEBACK)}:\n(?:[ \t].*\n)*.*\n?", re.MULTILINE)
"""From an object that is finalized at interpreter shutdown, after the program has ended."""
_LAST_WORD = re.compile(r"^(?:Fatal Python error|\S+: error): .*$", re.MULTILINE)
"""The interpreter's or an argument parser's final line; it counts even after a traceback."""
_NATIVE_LOG = r"[IWE]\d{4} [\d:.]{8,} |[\d-]{10} [\d:.]{8,}: [IWE] "
"""How a line begins that TensorFlow's native code logs before it continues, with its severity.

Source: https://abseil.io/docs/cpp/guides/logging, and tsl/platform/default/logging.cc
"""
_ERROR = re.compile(
    rf"^(?!{_NATIVE_LOG})(?:[\w.]+(?:Error|Exception|Interrupt|Exit)\b.*|.*\berror: .*)$", re.MULTILINE
)
_FILE = re.compile(r' +File ".*", line \d+$')
_HTTP = re.compile(r"^((?:[\w.]+: )?\d{3}) (?:GET|POST|PUT|PATCH|DELETE) https?://[^\s{]+: (?=\S)")
"""The beginning of an error of Google's clients, up to the body of the response.

Source: google.api_core.exceptions.format_http_response_error, and `_raise_from_invalid_response` of google-cloud-storage
"""
_BODY_MESSAGE = re.compile(r'"message":\s*("(?:[^"\\]|\\.){1,2000}")')
_STATUS_EXPECTED = ": ('Request failed with status code'"
_RANK = re.compile(r"^\[rank\d+\]: ?")
_LAUNCHER = re.compile(r"/(?:torch/distributed/run|accelerate/commands/launch)\.py\"")
"""Of frames; the processes that torchrun starts write their rank before the lines of their tracebacks."""
_NODE = re.compile(r"\{\{.*?\}\} ?")
_USAGE = re.compile(r"usage: ", re.IGNORECASE)
_REFUSED = re.compile(r"(?:\S+: )?error: .*", re.IGNORECASE)
"""Written by argparse and click, after the usage.

Source: https://docs.python.org/3/library/argparse.html#exiting-methods
"""
_FLAGS_REFUSED = "FATAL Flags parsing error:"
"""Written by absl, before the reason. Source: absl.app.parse_flags_with_usage"""
_BOXED = re.compile(r"│ (.*\S) *│")
"""The reason that typer 0.29 writes after the usage, in a box of rich."""
_HYDRA_ENDS = "Set the environment variable HYDRA_FULL_ERROR=1 "
_HYDRA = re.compile(r"(?:Could not |Cannot |Error |Key '|In '|\w+ input '|no viable ).*")
"""How the reason begins that hydra 1.3 writes in the lines before its last."""


@dataclass(frozen=True, kw_only=True)
class ErrorFound:
    """An error among lines: `lines[index]` shows it, and `around` are the lines that belong to it.

    `is_certain`: it is a traceback or a line that only an ending program writes. A program may write any other line
    with "error" in it and continue.
    """

    text: str
    index: int
    around: tuple[str, ...]
    is_certain: bool = True
    refused_arguments: bool = False


def is_lost_peer_error(error: str) -> bool:
    return any(sign in error for sign in LOST_PEER)


def parse_error(text: str) -> str:
    """The line of the exception that ended the program, even if threads of its runtime wrote more lines after it.

    The last line if there is no error; empty if there is no line.
    """
    text = without_ignored(text)
    lines = [line for line in text.splitlines() if line.strip()]
    error = _last_exception(text) or _last_mentioned(text) or (lines[-1] if lines else "")
    return shortened_error(error.strip())


def without_ignored(text: str) -> str:
    """The text without the exceptions that Python itself ignored."""
    return _IGNORED.sub("", text)


def shortened_error(error: str) -> str:
    """The error without TensorFlow's graph nodes and the address of an HTTP request, cut to ERROR_MAX_CHARS."""
    kept = _without_address(_NODE.sub("", error))
    return kept if len(kept) <= ERROR_MAX_CHARS else kept[:ERROR_MAX_CHARS] + "…"


def _without_address(error: str) -> str:
    """An error response's status and message, without the address, which is long, and the rest of the body."""
    begin = _HTTP.match(error)
    if begin is None:
        return error
    body = error[begin.end() :]
    message = _BODY_MESSAGE.search(body) if body.startswith("{") else None
    try:
        text = str(json.loads(message[1])) if message else body.partition(_STATUS_EXPECTED)[0]
    except ValueError:
        text = body
    return f"{begin[1]} {' '.join(text.split())}"


def error_found(lines: Sequence[str]) -> ErrorFound | None:
    """The error that ended the program that wrote these lines, oldest first; None if no line shows one.

    A launcher's own error, of a process that it started, counts only where that process shows none.
    """
    lines = [_RANK.sub("", line) for line in lines]
    begin = _last_traceback(lines)
    of_process = lines[: max(begin, 0)] if any(map(_LAUNCHER.search, lines[begin:])) else []
    return _last_error(of_process) or _last_error(lines)


def _last_error(lines: Sequence[str]) -> ErrorFound | None:
    begin = _last_traceback(lines)
    refused = _arguments_refused(lines, after=begin)
    if refused is not None:
        return refused
    text = without_ignored("\n".join((*lines, "")))
    raised, mentioned = _last_exception(text), _last_mentioned(text)
    if raised:
        same = (number for number in range(max(begin, 0), len(lines)) if lines[number] == raised)
        index = next(same, len(lines) - 1)
        error = _error_at(lines, raised, begin=begin, index=index)
        return replace(error, text=cut(error.text + _origin(lines, raised, begin), CHAIN_MAX_CHARS))
    if mentioned:
        index = len(lines) - 1 - list(reversed(lines)).index(mentioned)
        error = _error_at(lines, mentioned, begin=_place(lines, index), index=index)
        return replace(error, is_certain=bool(_LAST_WORD.match(mentioned)))
    return None


def _origin(lines: Sequence[str], raised: str, begin: int) -> str:
    """`, caused by` the first exception of the chain that the traceback at `begin` ends; empty if it is the only one."""
    origin = ""
    for _ in range(CHAIN_MAX):
        end = begin - 1
        begin = _last_traceback(lines[: max(end, 0)])
        if begin < 0 or lines[end] not in CHAINED:
            break
        if error := _last_exception("\n".join(lines[begin:end])):
            origin = "" if error == raised else f", {CHAINED[lines[end]]} {shortened_error(error)}"
    return origin


def _error_at(lines: Sequence[str], error: str, *, begin: int, index: int) -> ErrorFound:
    return ErrorFound(
        text=shortened_error(error.strip()),
        index=index,
        around=tuple(lines[max(begin, index - LINES_BEFORE) : index + 1 + LINES_BEHIND]),
    )


def _place(lines: Sequence[str], index: int) -> int:
    """Where the place of a syntax error begins, which the interpreter shows above it; `index` for another error."""
    for number in range(index - 1, max(index - 1 - LINES_OF_PLACE, -1), -1):
        if _FILE.match(lines[number]):
            return number
        if not lines[number].startswith(" "):
            break
    return index


def _last_traceback(lines: Sequence[str]) -> int:
    """The index of the first line of the last traceback that Python did not ignore, or -1."""
    for number in range(len(lines) - 1, -1, -1):
        if TRACEBACK in lines[number] and not lines[max(number - 1, 0)].startswith(_IGNORED_BEGINS):
            return number
    return -1


def _arguments_refused(lines: Sequence[str], *, after: int) -> ErrorFound | None:
    """The error with which an argument parser ended the program."""
    begin = after
    for number in range(after + 1, len(lines)):
        reason, before = lines[number], lines[after + 1 : number][-LINES_OF_PLACE:]
        is_refusal = reason.startswith(_FLAGS_REFUSED)
        if is_refusal:
            begin, reason = number, " ".join(line.strip() for line in lines[number : number + 2])
        elif reason.startswith(_HYDRA_ENDS) and before and after < 0:
            first = next((at for at, line in enumerate(before) if _HYDRA.match(line)), len(before) - 1)
            begin, reason, is_refusal = number - len(before) + first, before[first], True
        elif _USAGE.match(reason):
            is_refusal = bool(before) and before[-1].startswith("ERROR: ")  # of fire, above its usage
            begin, reason = (number - 1, before[-1]) if is_refusal else (number, reason)
        elif boxed := _BOXED.fullmatch(reason):
            reason = f"Error: {boxed[1]}"
        if is_refusal or (begin > after and _REFUSED.fullmatch(reason)):
            return replace(_error_at(lines, reason, begin=begin, index=number), refused_arguments=True)
    return None


def _last_exception(text: str) -> str:
    """The exception of the last traceback, or the final line after it; empty without a traceback."""
    _, raised, last = text.rpartition(TRACEBACK)
    if not raised:
        return ""
    words, exceptions = _LAST_WORD.findall(last), _EXCEPTION.findall(last)
    # An exception without a message comes last: it may be a single word that a thread printed.
    found = [*words[-1:], *(line for line in exceptions if ":" in line), *exceptions]
    return str(found[0]) if found else ""


def _last_mentioned(text: str) -> str:
    errors = _ERROR.findall(text)
    return str(errors[-1]) if errors else ""
