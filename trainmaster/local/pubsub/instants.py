"""Times and durations in requests: protobuf takes any numbers for them, the service does not."""

from datetime import timedelta

from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.errors import InvalidArgument


def duration(given: wire.Message) -> timedelta:
    """A `google.protobuf.Duration`.

    Raises:
        InvalidArgument: seconds or nanoseconds are out of range, or of different signs.
    """
    try:
        found: timedelta = given.ToTimedelta()
    except (ValueError, OverflowError) as fault:
        raise InvalidArgument(f"Invalid duration: {fault}") from fault
    return found


def instant_us(given: wire.Message) -> int:
    """A `google.protobuf.Timestamp` in microseconds since 1970.

    Raises:
        InvalidArgument: seconds or nanoseconds are out of range.
    """
    try:
        return int(given.ToMicroseconds())
    except (ValueError, OverflowError) as fault:
        raise InvalidArgument(f"Invalid timestamp: {fault}") from fault
