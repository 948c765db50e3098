"""What a call may be refused with.

PubSubError
├── InvalidArgument     the request can never succeed
├── NotFound            the resource does not exist
├── AlreadyExists       the name is taken
├── FailedPrecondition  the resource is in a state that does not allow it
└── Unimplemented       the service can do this, this emulator does not

Only `NotFound` and `FailedPrecondition` can turn out otherwise when the same call is made again later.
"""

import grpc


class PubSubError(Exception):
    """A refusal with its gRPC status; the message is what the caller reads."""

    code = grpc.StatusCode.UNKNOWN


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


class FailedPrecondition(PubSubError):
    code = grpc.StatusCode.FAILED_PRECONDITION


class Unimplemented(PubSubError):
    code = grpc.StatusCode.UNIMPLEMENTED


class InvalidAckIds(FailedPrecondition):
    """Some acknowledgements under exactly-once delivery came too late; the others were taken."""

    def __init__(self, ack_ids: list[str]) -> None:
        super().__init__(
            "Some acknowledgement ids in the request were invalid. This could be because they expired."
        )
        self.ack_ids = ack_ids
