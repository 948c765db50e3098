"""Refusals, each with the code and reason that clients act on.

Source: https://cloud.google.com/storage/docs/json_api/v1/status-codes
"""

from collections.abc import Mapping


class RefusedError(Exception):
    """A request that gets an error response.

    `code` is the HTTP status, `reason` the JSON API's reason and `xml_code` the XML API's code, if it is not its usual one
    for this status. A client may retry only 429 and 5xx.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        xml_code: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.xml_code = xml_code
        self.headers = headers or {}


class NoSuchObjectError(RefusedError):
    """404. A caller that may not list the bucket gets 403 instead, which does not reveal what exists."""

    def __init__(self, bucket: str, name: str) -> None:
        super().__init__(404, "notFound", f"No such object: {bucket}/{name}", xml_code="NoSuchKey")
        self.bucket, self.name = bucket, name


def invalid(message: str) -> RefusedError:
    return RefusedError(400, "invalid", message)


def conflict(message: str) -> RefusedError:
    return RefusedError(409, "conflict", message)


def no_such_bucket(bucket: str) -> RefusedError:
    return RefusedError(
        404, "notFound", f"The specified bucket does not exist: {bucket!r}.", xml_code="NoSuchBucket"
    )


def condition_not_met(what: str) -> RefusedError:
    return RefusedError(
        412, "conditionNotMet", f"At least one of the pre-conditions you specified did not hold: {what}."
    )


def too_large(message: str) -> RefusedError:
    """A limit of the local stack that the service does not have: 400, so that no client tries it again."""
    return RefusedError(400, "invalid", f"The local stack does not list this bucket: {message}")


def being_written(bucket: str, name: str) -> RefusedError:
    return RefusedError(
        503,
        "backendError",
        f"The file of {bucket}/{name} is being written; its bytes can be read once it is closed. Try again.",
    )
