"""A refused call, with the error codes that all Google APIs share."""

from enum import Enum


class Status(Enum):
    """The canonical codes in use, with their HTTP status. Source: https://cloud.google.com/apis/design/errors."""

    INVALID_ARGUMENT = 400
    FAILED_PRECONDITION = -400  # HTTP 400 too; an enum needs distinct values
    PERMISSION_DENIED = 403
    NOT_FOUND = 404
    RESOURCE_EXHAUSTED = 429
    UNIMPLEMENTED = 501

    @property
    def http(self) -> int:
        return abs(self.value)


class ApiError(Exception):
    """A refused call, with its canonical code and a message for the caller."""

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status
