"""Limits of a publish request.

Sources: https://cloud.google.com/pubsub/quotas#resource_limits and
https://cloud.google.com/pubsub/docs/reference/rest/v1/PubsubMessage
"""

from collections.abc import Sequence

from trainstack.pubsub import wire
from trainstack.pubsub.errors import InvalidArgument

MAX_REQUEST_BYTES = 10_000_000
MAX_MESSAGES = 1000
MAX_ATTRIBUTES = 100
MAX_ATTRIBUTE_KEY_BYTES = 256
MAX_ATTRIBUTE_VALUE_BYTES = 1024
MAX_ORDERING_KEY_BYTES = 1024


def check_publish(messages: Sequence[wire.Message], *, request_bytes: int) -> None:
    """Refuse what the service would refuse, naming every faulty message.

    Raises:
        InvalidArgument: too many, too large or empty messages, or attributes outside their limits.
    """
    faults = [f"messages[{index}]: {fault}" for index, one in enumerate(messages) for fault in _faults(one)]
    if not messages:
        faults.append(
            "The value for message_count is too small. You passed 0 in the request, but the minimum value is 1."
        )
    for what, amount, most in (
        ("message_count", len(messages), MAX_MESSAGES),
        ("request_size", request_bytes, MAX_REQUEST_BYTES),
    ):
        if amount > most:
            faults.append(
                f"The value for {what} is too large. You passed {amount} in the request, "
                f"but the maximum value is {most}."
            )
    if faults:
        raise InvalidArgument(" ".join(faults))


def _faults(message: wire.Message) -> list[str]:
    faults: list[str] = []
    if not message.data and not message.attributes:
        faults.append("it is empty; a message must contain either non-empty data, or at least one attribute.")
    if len(message.attributes) > MAX_ATTRIBUTES:
        faults.append(f"it has {len(message.attributes)} attributes; at most {MAX_ATTRIBUTES} are allowed.")
    for key, value in message.attributes.items():
        if not key or len(key.encode()) > MAX_ATTRIBUTE_KEY_BYTES:
            faults.append(f"attribute key {key[:40]!r} must have 1 to {MAX_ATTRIBUTE_KEY_BYTES} bytes.")
        if key.startswith("goog"):
            faults.append(f"attribute key {key[:40]!r} must not begin with 'goog'.")
        if len(value.encode()) > MAX_ATTRIBUTE_VALUE_BYTES:
            faults.append(f"attribute {key[:40]!r} has a value over {MAX_ATTRIBUTE_VALUE_BYTES} bytes.")
    if len(message.ordering_key.encode()) > MAX_ORDERING_KEY_BYTES:
        faults.append(f"the ordering key has more than {MAX_ORDERING_KEY_BYTES} bytes.")
    return faults
