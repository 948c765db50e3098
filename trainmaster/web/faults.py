"""The errors of reading and changing, as pages and statuses."""

from dataclasses import dataclass


class StackStarting(Exception):
    """The stack that this console runs beside is not ready yet, or is stopping."""

    message = "The local stack is starting. This page shows it as soon as it is ready."


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What went wrong. `is_lost`: the services could not be reached, so the context is chosen again."""

    status: int
    title: str
    message: str
    command: str
    is_lost: bool = False


def fault_of(error: Exception) -> Fault | None:
    """The fault that an error of `trainmaster.client` or of a client library stands for; None for any other error."""
    kinds = {f"{each.__module__}.{each.__qualname__}" for each in type(error).__mro__}
    for status, title, names, is_lost in _FAULTS:
        if kinds & names:
            text = str(getattr(error, "message", "") or error)
            return Fault(status=status, title=title, message=text, command=_COMMANDS[status], is_lost=is_lost)
    return None


_CORE = "google.api_core.exceptions"
_FAULTS: tuple[tuple[int, str, set[str], bool], ...] = (
    (403, "Not allowed", {"trainmaster.web.app.NotAllowed", f"{_CORE}.Forbidden"}, False),
    (404, "Not found", {"trainmaster.client.errors.NotFound", f"{_CORE}.NotFound"}, False),
    (
        422,
        "Refused",
        {
            "trainmaster.client.errors.Refused",
            "trainmaster.client.request_files.UnusableFile",
            "trainmaster.client.rules.changing.RuleHeld",
            "trainmaster.client.dead_letters.letter.NoSourceError",
            "trainmaster.client.dead_letters.mailbox.SourceGoneError",
            f"{_CORE}.InvalidArgument",
            f"{_CORE}.BadRequest",
        },
        False,
    ),
    (409, "Damaged", {"trainmaster.client.errors.Damaged"}, False),
    (504, "Not done yet", {"trainmaster.client.errors.TimedOut"}, False),
    (503, "The stack is starting", {"trainmaster.web.faults.StackStarting"}, True),
    (
        503,
        "Nothing answers",
        {
            "trainmaster.client.context.NoContext",
            "trainmaster.client.context.UnknownContext",
            "trainmaster.client.stack.NoStack",
            f"{_CORE}.GoogleAPICallError",
            f"{_CORE}.RetryError",
            "google.auth.exceptions.GoogleAuthError",
            "requests.exceptions.RequestException",
        },
        True,
    ),
)
_COMMANDS = {
    403: "trainmaster web --write",
    404: "trainmaster ls",
    422: "trainmaster --help",
    409: "trainmaster doctor",
    504: "trainmaster ls",
    503: "trainmaster up --detach",
}
