"""RFC 3339 timestamps and durations in nanoseconds, the resolution that Google's services store."""

import re
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache

_FRACTION = re.compile(r"[.,](\d{1,9})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOS = 1_000_000_000
_DURATION = re.compile(r"(-?\d{1,12}(?:\.\d{1,9})?)(ns|us|ms|s|m|h)")
_UNITS = {"ns": 1, "us": 1000, "ms": 1_000_000, "s": _NANOS, "m": 60 * _NANOS, "h": 3600 * _NANOS}


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


def parse_duration(text: str) -> int:
    """Nanoseconds: a decimal number with the unit ns, us, ms, s, m or h.

    Raises:
        ValueError: not a duration.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"expected a duration such as 1.5s or 200ms, found {text!r}")
    return int(Decimal(match[1]) * _UNITS[match[2]])


def format_instant(nanos: int, *, digits: int | None = None) -> str:
    """RFC 3339 in UTC, with that many fractional digits; by default 0, 3, 6 or 9, as in protobuf's JSON."""
    seconds, rest = divmod(nanos, _NANOS)
    text = _format_seconds(seconds)
    fraction = f"{rest:09d}"[:digits]
    while digits is None and fraction.endswith("000"):
        fraction = fraction[:-3]
    return f"{text}.{fraction}Z" if fraction else f"{text}Z"


@lru_cache(maxsize=1024)  # a listing has many times of the same seconds
def _format_seconds(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(timespec="seconds")
