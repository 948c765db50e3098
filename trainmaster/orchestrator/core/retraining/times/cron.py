"""Cron expressions as other schedulers write them: those that are understood, and what to write for the others.

Sources, read in 2026: crontab(5) of Debian and its nicknames; Quartz's CronTrigger, with seconds first and perhaps a
year last, `?` for the day field that is not used, and Sunday as 1; EventBridge, which has the same without seconds.
"""

import re
from collections.abc import Mapping, Sequence

FIELDS: Mapping[str, range] = {
    "minute": range(60),
    "hour": range(24),
    "day-of-month": range(1, 32),
    "month": range(1, 13),
    "day-of-week": range(7),
}
"""The values of each field, in the order of the fields. Sunday is also 7."""
NICKNAMES: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAY, _WEEKDAY = 2, 4
_NUMBER_OF_DAY = re.compile(r"(?<![#/\d])[0-7](?!\d)")


def five_fields(cron: str) -> str:
    """The expression in five fields, with a nickname spelled out, and `*` for the `?` of a day field.

    Beside `?`, a number as the day of the week is left as it is, and then refused: Quartz counts Sunday as 1.
    """
    fields = NICKNAMES.get(cron.strip().lower(), cron).split()
    if len(fields) == len(FIELDS) and not numbers_day_beside_mark(fields):
        for place in (_DAY, _WEEKDAY):
            fields[place] = "*" if fields[place] == "?" else fields[place]
    return " ".join(fields)


def numbers_day_beside_mark(fields: Sequence[str]) -> bool:
    """Whether the five fields have a number as the day of the week, and `?` in a day field."""
    has_mark = "?" in (fields[_DAY], fields[_WEEKDAY])
    return has_mark and _NUMBER_OF_DAY.search(fields[_WEEKDAY]) is not None


def in_order(fields: Sequence[str]) -> str:
    """The expression with each range across the end in two: `22-2` as `22-23,0-2`; perhaps unreadable."""
    parts: list[str] = []
    for values, text in zip(FIELDS.values(), fields, strict=True):
        names = _DAYS if values == FIELDS["day-of-week"] else _MONTHS
        numbers, terms = [*map(str, values)], text.split(",")
        parts.append(",".join(_in_order(numbers, _in_order(names, term)) for term in terms))
    return " ".join(parts)


def _in_order(values: Sequence[str], term: str) -> str:
    first, _, last = term.partition("-")
    if first not in values or last not in values or values.index(first) <= values.index(last):
        return term
    ends = ((first, values[-1]), (values[0], last))
    return ",".join(begin if begin == end else f"{begin}-{end}" for begin, end in ends)
