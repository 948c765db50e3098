"""What a call may be refused with.

PubSubError
├── Unauthenticated     the call shows a token that is none
├── InvalidArgument     the request can never succeed
├── NotFound            the resource does not exist
├── AlreadyExists       the name is taken
├── ResourceExhausted   a subscription owes as many messages as it can hold
└── Unimplemented       the service can do this, this emulator does not

`NotFound` and `ResourceExhausted` can turn out otherwise when the same call is made again later.
"""

import grpc


class PubSubError(Exception):
    """A refusal with its gRPC status; the message is what the caller reads."""

    code = grpc.StatusCode.UNKNOWN


class Unauthenticated(PubSubError):
    code = grpc.StatusCode.UNAUTHENTICATED


class InvalidArgument(PubSubError):
    code = grpc.StatusCode.INVALID_ARGUMENT


class NotFound(PubSubError):
    code = grpc.StatusCode.NOT_FOUND

    def __init__(self, resource: str) -> None:
        super().__init__(f"Resource not found (resource={resource}).")


class AlreadyExists(PubSubError):
    code = grpc.StatusCode.ALREADY_EXISTS

    def __init__(self, resource: str) -> None:
        super().__init__(f"Resource already exists in the project (resource={resource}).")


class ResourceExhausted(PubSubError):
    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class Unimplemented(PubSubError):
    code = grpc.StatusCode.UNIMPLEMENTED
