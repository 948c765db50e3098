"""The refusals of requests, each with its HTTP code and gRPC's."""


class RefusedError(ValueError):
    """A request that can never succeed unchanged; the message names every fault."""

    code, status = 400, "INVALID_ARGUMENT"


class NotFoundError(RefusedError):
    """The sink, metric or log does not exist."""

    code, status = 404, "NOT_FOUND"


class AlreadyExistsError(RefusedError):
    """The sink or metric exists."""

    code, status = 409, "ALREADY_EXISTS"
