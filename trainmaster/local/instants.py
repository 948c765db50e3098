"""RFC 3339 timestamps as nanoseconds since 1970, which is what Google's services keep."""

import re
import time
from datetime import UTC, datetime, timedelta

_FORM = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9})\d*)?)?)?\s*([Zz]|[+-]\d\d:?\d\d)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS = 1_000_000_000


def now_ns() -> int:
    """The time."""
    return time.time_ns()


def parse_instant(text: str) -> int:
    """Nanoseconds since 1970.

    Takes `Z`, `+00:00` and `+0000`, up to nine digits of a second, and a date alone; without an offset it is UTC.

    Raises:
        ValueError: not a timestamp.
    """
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is no RFC 3339 timestamp such as 2026-01-31T12:00:00.5Z")
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    # A leap second is the first of the next minute, as in protobuf.
    moment = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), tzinfo=UTC)
    moment += timedelta(seconds=int(second or 0))
    nanos = int((fraction or "").ljust(9, "0"))
    return (moment - _EPOCH) // timedelta(seconds=1) * _NANOS - _offset_s(offset) * _NANOS + nanos


def _offset_s(offset: str | None) -> int:
    if not offset or offset in "Zz":
        return 0
    sign = -1 if offset[0] == "-" else 1
    digits = offset[1:].replace(":", "")
    return sign * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def format_instant(nanos: int, *, digits: int | None = None) -> str:
    """RFC 3339 in UTC, with so many digits of a second; else with 0, 3, 6 or 9, as protobuf's JSON has them."""
    seconds, rest = divmod(nanos, _NANOS)
    text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(timespec="seconds")
    fraction = f"{rest:09d}"[:digits]
    while digits is None and fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"
