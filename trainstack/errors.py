"""A refused call, with the error codes that all Google APIs share."""

from enum import Enum


class Status(Enum):
    """The canonical codes in use, with their HTTP status and number. Source: https://cloud.google.com/apis/design/errors."""

    INVALID_ARGUMENT = 400, 3
    FAILED_PRECONDITION = 400, 9
    UNAUTHENTICATED = 401, 16
    PERMISSION_DENIED = 403, 7
    NOT_FOUND = 404, 5
    ALREADY_EXISTS = 409, 6
    ABORTED = 409, 10
    RESOURCE_EXHAUSTED = 429, 8
    UNIMPLEMENTED = 400, 12
    """501 in the cloud; here as `json_bodies.refuse_call` has it."""

    @property
    def http(self) -> int:
        return self.value[0]


class ApiError(Exception):
    """A refused call, with its canonical code and a message for the caller."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status


class InvalidArgumentError(ApiError):
    """A refused call whose arguments are wrong, in any state; the message has one sentence for each fault."""

    def __init__(self, *faults: str) -> None:
        super().__init__(Status.INVALID_ARGUMENT, "\n".join(faults))
