"""Times and lengths of time: the services' timestamps and users' words, parsed and written."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

FORM = "a number with s, m, h or d, for example 90s, 15m, 2h or 1d"
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(?P<number>[0-9]{1,9}(\.[0-9]{1,3})?)(?P<unit>[smhd]?)")


def parse_duration(text: str) -> timedelta:
    """The length of time; a bare number is in seconds.

    Raises:
        ValueError: the text has another form.
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"expected {FORM}, found {text!r}")
    return timedelta(seconds=float(found["number"]) * _UNITS[found["unit"] or "s"])


def moment_of(timestamp: Any) -> datetime | None:  # Any: proto-plus's DatetimeWithNanoseconds is untyped
    """The aware datetime of a protobuf timestamp field; None while it is unset."""
    return datetime.fromisoformat(timestamp.rfc3339()) if timestamp else None


def parse_since(text: str, now: datetime) -> datetime:
    """A moment in the past: a duration with its unit before `now`, or an ISO date or time, UTC if it has no zone.

    Raises:
        ValueError: the text is neither.
    """
    try:
        if text.strip()[-1:] in _UNITS:
            return now - parse_duration(text)
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"expected a duration (30m, 2h, 7d) or a date or time (2026-11-01, 2026-11-01T08:00Z), found {text!r}"
        ) from error


def minute(moment: datetime) -> str:
    """`2026-11-23 03:00`, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def utc_text(moment: datetime) -> str:
    """`2026-11-23 03:00:05 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(length: timedelta) -> str:
    """The length in its two largest units, cut below: `45s`, `12m 5s`, `3h 20m`, `9d 4h`."""
    seconds = max(int(length.total_seconds()), 0)
    parts = []
    for unit, size in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, size)
        parts.append(f"{count}{unit}" if count else "")
    first = next((index for index, part in enumerate(parts) if part), len(parts) - 1)
    return " ".join(filter(None, parts[first : first + 2])) or "0s"
