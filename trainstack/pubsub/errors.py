"""Refusals in Pub/Sub's words. `ApiError` has all others, each with its gRPC status."""

from trainstack.errors import ApiError, Status


class ResourceNotFound(ApiError):
    def __init__(self, resource: str) -> None:
        super().__init__(Status.NOT_FOUND, f"Resource not found (resource={resource}).")


class AlreadyExists(ApiError):
    def __init__(self, resource: str) -> None:
        message = f"Resource already exists in the project (resource={resource})."
        super().__init__(Status.ALREADY_EXISTS, message)
