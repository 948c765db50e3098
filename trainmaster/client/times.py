"""Parses the services' timestamps."""

from datetime import datetime
from typing import Any


def moment(text: str | None) -> datetime | None:
    """An aware datetime from RFC 3339, with `Z` or an offset."""
    return datetime.fromisoformat(text) if text else None


def moment_of(timestamp: Any) -> datetime | None:  # Any: proto-plus's DatetimeWithNanoseconds is untyped
    """The aware datetime of a protobuf timestamp field; None while it is unset."""
    return moment(timestamp.rfc3339()) if timestamp else None
