"""Parses lengths of time as people write them: `90s`, `15m`, `2h`, `1d`."""

import re
from datetime import timedelta

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
