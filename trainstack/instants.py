"""RFC 3339 timestamps as nanoseconds since 1970, the resolution that Google's services store."""

import re
import time
from datetime import UTC, datetime, timedelta

_FRACTION = re.compile(r"[.,](\d{1,9})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS = 1_000_000_000


def now_ns() -> int:
    return time.time_ns()


def parse_instant(text: str) -> int:
    """Nanoseconds since 1970.

    Accepts `Z`, `+00:00` and `+0000`, up to nine fractional digits, and a date alone; UTC if there is no
    offset.

    Raises:
        ValueError: not a timestamp.
    """
    try:
        moment = datetime.fromisoformat(text.strip().upper())
    except ValueError as error:
        raise ValueError(
            f"expected an RFC 3339 timestamp such as 2026-01-31T12:00:00.5Z, found {text!r}"
        ) from error
    fraction = _FRACTION.search(text)
    nanos = int(fraction[1].ljust(9, "0")) if fraction else 0
    whole = moment.replace(microsecond=0, tzinfo=moment.tzinfo or UTC)
    return (whole - _EPOCH) // timedelta(seconds=1) * _NANOS + nanos


def format_instant(nanos: int, *, digits: int | None = None) -> str:
    """RFC 3339 in UTC, with that many fractional digits; by default 0, 3, 6 or 9, as in protobuf's JSON."""
    seconds, rest = divmod(nanos, _NANOS)
    text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(timespec="seconds")
    fraction = f"{rest:09d}"[:digits]
    while digits is None and fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"
