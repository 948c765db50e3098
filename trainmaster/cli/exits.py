"""Exit statuses of the command, and the errors that end it with one: docs/reference/command.md."""

import errno
import os
import sys
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

import click

CREDENTIALS = "Sign in: gcloud auth application-default login"


class ExitStatus(IntEnum):
    """What a program that runs the command can rely on."""

    DONE = 0
    FINDING = 1
    """A run ended badly, or a check found a fault."""
    USAGE = 2
    """Wrong usage, or a request that is refused."""
    NOT_FOUND = 3
    UNREACHABLE = 4
    """Nothing answers, or the credentials are missing or do not suffice."""
    TIMED_OUT = 5
    """A wait ended before what it waited for."""
    INTERRUPTED = 130
    CLOSED_PIPE = 141
    """The reader of standard output closed it, for example `head`; a shell says the same of a program that SIGPIPE ended."""


class Stop(click.ClickException):
    """Ends the command with this message on standard error. The message says what to do next, where anything can be done."""

    def __init__(self, status: ExitStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def stop_for(error: Exception) -> Stop | None:
    """The end that an error of a client library or of `trainmaster.client` stands for; None for any other error.

    Nothing is imported for it: an error of a library can only come from a process that has loaded the library.
    """
    kinds = {f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__}
    for status, names in _STATUSES.items():
        if kinds & names:
            return Stop(status, _message(error, status))
    return None


def stop_for_output(error: OSError) -> Stop | ExitStatus | None:
    """The end after standard output could not be written: quiet where its reader closed it; None for any other error.

    What the interpreter would still write at its exit is dropped: it would fail again.
    """
    if error.errno not in (errno.EPIPE, errno.ENOSPC):
        return None
    with suppress(OSError, ValueError):  # ValueError: a standard output without a file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return ExitStatus.CLOSED_PIPE
    return Stop(ExitStatus.FINDING, f"A write failed: {error.strerror}. Free space, or write elsewhere.")


def why_unwritable(error: OSError) -> str:
    """Why a file or folder cannot be written, in words."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file is in the place of a folder"
    return error.strerror or str(error)


def open_standard_streams() -> None:
    """Open the null device in place of each standard stream that the caller closed, for example with `>&-`.

    Python has None there. The descriptors are then taken, too, so that no file or connection gets the number of an output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process


_CORE = "google.api_core.exceptions"
_STACK = "trainstack.stack.errors"
_STATUSES = {
    ExitStatus.NOT_FOUND: {
        "trainmaster.client.errors.NotFound",
        "trainmaster.client.dead_letters.mailbox.SourceGoneError",
        f"{_CORE}.NotFound",
    },
    ExitStatus.USAGE: {
        "trainmaster.client.context.UnknownContext",
        "trainmaster.client.errors.ClientRefused",
        "trainmaster.client.rules.changing.RuleHeld",
        f"{_STACK}.BadOptionsError",
        f"{_STACK}.BadTopologyError",
        f"{_CORE}.InvalidArgument",
        f"{_CORE}.BadRequest",
    },
    ExitStatus.FINDING: {
        "trainmaster.client.connection.RunFailed",
        "trainmaster.client.errors.Damaged",
        "trainmaster.client.dead_letters.letter.NoSourceError",
        f"{_STACK}.StackRefusedError",
    },
    ExitStatus.TIMED_OUT: {"trainmaster.client.errors.TimedOut"},
    ExitStatus.UNREACHABLE: {
        "trainmaster.client.context.NoContext",
        "trainstack.find.NoStack",
        f"{_CORE}.GoogleAPICallError",
        f"{_CORE}.RetryError",
        "google.auth.exceptions.GoogleAuthError",
        "requests.exceptions.RequestException",
    },
}  # fmt: skip


def _message(error: Exception, status: ExitStatus) -> str:
    text = str(getattr(error, "message", "") or error)
    module = type(error).__module__
    if status is not ExitStatus.UNREACHABLE or module.startswith(("trainmaster.", "trainstack.")):
        return text
    if module.startswith("google.auth"):
        return f"{text}\n{CREDENTIALS}"
    return f"The service could not be used: {text}"
