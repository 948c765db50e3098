"""The refusals of calls.

PubSubError
├── Unauthenticated     the call's token is invalid
├── PermissionDenied    the caller lacks a permission
├── InvalidArgument     the request can never succeed
├── NotFound            the resource does not exist
├── AlreadyExists       the name is taken
├── Aborted             another call has changed the resource meanwhile
├── ResourceExhausted   a subscription's backlog is full
├── FailedPrecondition  the resource's state does not allow the call
└── Unimplemented       the service supports this, this emulator does not

A later retry of the same call may succeed after `ResourceNotFound`, `Aborted` and `ResourceExhausted`.
"""

import grpc


class PubSubError(Exception):
    """A refusal with its gRPC status; the caller sees the message."""

    code = grpc.StatusCode.UNKNOWN


class Unauthenticated(PubSubError):
    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDenied(PubSubError):
    """Source of the sentence: https://github.com/googleapis/google-cloud-ruby/issues/17944"""

    code = grpc.StatusCode.PERMISSION_DENIED

    def __init__(self) -> None:
        super().__init__("User not authorized to perform this action.")


class InvalidArgument(PubSubError):
    code = grpc.StatusCode.INVALID_ARGUMENT


class ResourceNotFound(PubSubError):
    code = grpc.StatusCode.NOT_FOUND

    def __init__(self, resource: str) -> None:
        super().__init__(f"Resource not found (resource={resource}).")


class AlreadyExists(PubSubError):
    code = grpc.StatusCode.ALREADY_EXISTS

    def __init__(self, resource: str) -> None:
        super().__init__(f"Resource already exists in the project (resource={resource}).")


class Aborted(PubSubError):
    code = grpc.StatusCode.ABORTED


class ResourceExhausted(PubSubError):
    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class FailedPrecondition(PubSubError):
    code = grpc.StatusCode.FAILED_PRECONDITION


class Unimplemented(PubSubError):
    code = grpc.StatusCode.UNIMPLEMENTED
