"""The errors of reading and changing, as pages and statuses."""

from dataclasses import dataclass
from typing import NamedTuple

from trainmaster.client.errors import ClientRefused


class StackStarting(Exception):
    """The stack that this console runs beside is not ready yet, or is stopping."""

    message = "The local stack is starting. This page shows it as soon as it is ready."


class WrongQuery(ClientRefused):
    """A value in an address, such as that of a filter, is not allowed; the message has what is."""


class WrongBody(ClientRefused):
    """The body of a request to an address below /api/v1 lacks a field; the message has what is expected."""


@dataclass(frozen=True, kw_only=True)
class ConsoleFault:
    """What went wrong.

    Attributes:
        command: what helps; empty where no command does.
        is_lost: the services could not be reached: the context is chosen again, and an open page keeps its content.
        back: the address of the form that was sent, to fill it in again; empty if that does not help.
    """

    status: int
    title: str
    message: str
    command: str
    is_lost: bool = False
    back: str = ""


def fault_of(error: Exception) -> ConsoleFault | None:
    """The fault that an error of `trainmaster.client` or of a client library stands for; None for any other error."""
    names = {f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__}
    for kind in _KINDS:
        if names & kind.names:
            text = NO_ANSWER if _CONNECTION in names else str(getattr(error, "message", "") or error)
            return ConsoleFault(
                status=kind.status, title=kind.title, message=text, command=kind.command, is_lost=kind.is_lost
            )
    return None


class _Kind(NamedTuple):
    status: int
    title: str
    command: str
    names: set[str]
    """Of the errors."""
    is_lost: bool = False


NO_ANSWER = "The stack does not answer, or has stopped. Start it again: trainmaster up"
_CORE = "google.api_core.exceptions"
_CONNECTION = "requests.exceptions.RequestException"
_KINDS = (
    _Kind(400, "Wrong query", "trainmaster --help", {"trainmaster.web.faults.WrongQuery"}),
    _Kind(400, "Wrong body", "trainmaster --help", {"trainmaster.web.faults.WrongBody"}),
    _Kind(403, "Form out of date", "", {"trainmaster.web.app.OldForm", "trainmaster.web.app.NoToken"}),
    _Kind(403, "Not allowed", "trainmaster web --write", {"trainmaster.web.app.NotAllowed"}),
    _Kind(403, "Not allowed", "trainmaster doctor", {f"{_CORE}.Forbidden"}),
    _Kind(404, "Not found", "trainmaster ls", {"trainmaster.client.errors.NotFound", f"{_CORE}.NotFound"}),
    _Kind(413, "Too large", "", {"trainmaster.web.forms.TooLarge"}),
    _Kind(
        422,
        "Refused",
        "trainmaster --help",
        {
            "trainmaster.client.errors.ClientRefused",
            "trainmaster.client.rules.changing.RuleHeld",
            "trainmaster.client.dead_letters.letter.NoSourceError",
            "trainmaster.client.dead_letters.mailbox.SourceGoneError",
            f"{_CORE}.InvalidArgument",
            f"{_CORE}.BadRequest",
        },
    ),
    _Kind(409, "Damaged", "trainmaster doctor", {"trainmaster.client.errors.Damaged"}),
    _Kind(504, "Not done yet", "trainmaster ls", {"trainmaster.client.errors.TimedOut"}),
    _Kind(
        503,
        "The stack is starting",
        "trainmaster up --detach",
        {"trainmaster.web.faults.StackStarting"},
        is_lost=True,
    ),
    _Kind(
        503,
        "Nothing answers",
        "trainmaster up --detach",
        {
            "trainmaster.client.context.NoContext",
            "trainmaster.client.context.UnknownContext",
            "trainstack.find.NoStack",
            f"{_CORE}.GoogleAPICallError",
            f"{_CORE}.RetryError",
            "google.auth.exceptions.GoogleAuthError",
            _CONNECTION,
        },
        is_lost=True,
    ),
)
