"""The errors of reading and changing, as pages and statuses."""

from dataclasses import dataclass, replace

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
    for fault, of_errors in _FAULTS:
        if names & of_errors:
            text = NO_ANSWER if _CONNECTION in names else str(getattr(error, "message", "") or error)
            return replace(fault, message=text)
    return None


NO_ANSWER = "The stack does not answer, or has stopped. Start it again: trainmaster up"
_CORE = "google.api_core.exceptions"
_CONNECTION = "requests.exceptions.RequestException"


def _fault(
    status: int, title: str, command: str, *errors: str, is_lost: bool = False
) -> tuple[ConsoleFault, set[str]]:
    fault = ConsoleFault(status=status, title=title, message="", command=command, is_lost=is_lost)
    return fault, set(errors)


_CLIENT, _WEB = "trainmaster.client", "trainmaster.web"
_FAULTS = (
    _fault(400, "Wrong query", "trainmaster --help", f"{_WEB}.faults.WrongQuery"),
    _fault(400, "Wrong body", "trainmaster --help", f"{_WEB}.faults.WrongBody"),
    _fault(403, "Form out of date", "", f"{_WEB}.app.OldForm", f"{_WEB}.app.NoToken"),
    _fault(403, "Not allowed", "trainmaster web --write", f"{_WEB}.app.NotAllowed"),
    _fault(403, "Not allowed", "", f"{_WEB}.people.NotTheirs"),
    _fault(403, "Not allowed", "trainmaster doctor", f"{_CORE}.Forbidden"),
    _fault(404, "Not found", "trainmaster ls", f"{_CLIENT}.errors.NotFound", f"{_CORE}.NotFound"),
    _fault(413, "Too large", "", f"{_WEB}.forms.TooLarge"),
    _fault(
        422,
        "Refused",
        "trainmaster --help",
        f"{_CLIENT}.errors.ClientRefused",
        f"{_CLIENT}.rules.changing.RuleHeld",
        f"{_CLIENT}.dead_letters.letter.NoSourceError",
        f"{_CLIENT}.dead_letters.mailbox.SourceGoneError",
        f"{_CORE}.InvalidArgument",
        f"{_CORE}.BadRequest",
    ),
    _fault(409, "Damaged", "trainmaster doctor", f"{_CLIENT}.errors.Damaged"),
    _fault(504, "Not done yet", "trainmaster ls", f"{_CLIENT}.errors.TimedOut"),
    _fault(
        503, "The stack is starting", "trainmaster up --detach", f"{_WEB}.faults.StackStarting", is_lost=True
    ),
    _fault(
        503,
        "Nothing answers",
        "trainmaster up --detach",
        f"{_CLIENT}.context.NoContext",
        f"{_CLIENT}.context.UnknownContext",
        "trainstack.find.NoStack",
        f"{_CORE}.GoogleAPICallError",
        f"{_CORE}.RetryError",
        "google.auth.exceptions.GoogleAuthError",
        _CONNECTION,
        is_lost=True,
    ),
)
"""The first fault whose errors include one of the error's classes is its own."""
