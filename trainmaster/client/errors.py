"""The errors of reading and changing runs. Those of the official clients pass unchanged."""

from trainmaster.orchestrator.core.documents.faults import Fault


class NotFound(Exception):
    """Nothing has that name; the message has the nearest names, or how to list them."""


class TimedOut(TimeoutError):
    """What was waited for had not happened at the deadline; the message has the last state."""


class ClientRefused(Exception):
    """The service, or a check before it, refuses what was asked; the message has every fault."""


class RequestRefused(ClientRefused):
    """The same of a request. `faults` are those that were found before it was sent, each with its place if it has one."""

    def __init__(self, message: str, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class Damaged(Exception):
    """A document or an object differs from what a record says; the message says how it differs."""


def service_errors() -> tuple[type[Exception], ...]:
    """What the official clients raise where a service refuses, fails or does not answer. Imports them when it is called."""
    from google.api_core.exceptions import GoogleAPICallError, RetryError
    from google.auth.exceptions import GoogleAuthError
    from requests.exceptions import RequestException

    return (GoogleAPICallError, RetryError, GoogleAuthError, RequestException)
