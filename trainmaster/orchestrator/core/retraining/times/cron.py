"""Cron expressions as other schedulers write them: those that are understood, and what to write for the others.

Sources, read in 2026: crontab(5) of Debian and its nicknames; Quartz's CronTrigger, with seconds first and perhaps a
year last, `?` for the day field that is not used, and Sunday as 1; EventBridge, which has the same without seconds.
A repair means what its author wrote: where that depends on the scheduler, it says so.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

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
_LONG_DAYS = ("SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
_LONG_MONTHS = ("JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST", "SEPTEMBER", "OCTOBER",
                "NOVEMBER", "DECEMBER")  # fmt: skip
_DAYS, _MONTHS = ([name[:3] for name in names] for names in (_LONG_DAYS, _LONG_MONTHS))
_DAY, _WEEKDAY = 2, 4
_NUMBER_OF_DAY = re.compile(r"(?<![#/\d])[0-7](?!\d)")
_LAST_DAY = re.compile(rf"({'|'.join(_DAYS)})L")
_LONG_NAME = re.compile(r"[A-Z]{4,}")


def five_fields(cron: str) -> str:
    """The expression in five fields, with a nickname spelled out, and `*` for the `?` of a day field.

    Beside `?`, a number as the day of the week is left as it is, and then refused: Quartz counts Sunday as 1.
    """
    fields = NICKNAMES.get(cron.strip().lower(), cron).split()
    is_plain = len(fields) == len(FIELDS) and not (
        _has_mark(fields) and _NUMBER_OF_DAY.search(fields[_WEEKDAY])
    )
    return " ".join(_without_marks(fields) if is_plain else fields)


def cron_repairs(cron: str) -> Iterator[tuple[str, str]]:
    """What an expression that cannot be read may mean, each with the condition under which it does; perhaps unreadable."""
    fields = cron.upper().removeprefix("CRON(").rstrip(")").split()
    if len(fields) == len(FIELDS) and _has_mark(fields):
        yield _with_day_names(fields, sunday=1), " if 1 is Sunday, as in Quartz"
        yield _with_day_names(fields, sunday=0), " if 0 is Sunday, as in cron"
    elif len(fields) == len(FIELDS):
        yield _rewritten(fields), ""
    elif len(fields) in (len(FIELDS) + 1, len(FIELDS) + 2):
        yield from _without_seconds_or_year(fields)


def _without_seconds_or_year(fields: Sequence[str]) -> Iterator[tuple[str, str]]:
    is_last = len(fields) == len(FIELDS) + 1 and fields[-1] == "*"
    is_first = fields[0] in ("0", "00") and (len(fields) == len(FIELDS) + 1 or fields[-1] == "*")
    for fits, rest, when in (
        (is_first, fields[1 : len(FIELDS) + 1], " if the first field is the seconds"),
        (is_last, fields[: len(FIELDS)], " if the last field is the year"),
    ):
        if fits and _has_mark(rest):
            yield _with_day_names(rest, sunday=1), ""
        elif fits and "?" not in fields:
            yield _rewritten(rest), when


def _has_mark(fields: Sequence[str]) -> bool:
    return "?" in (fields[_DAY], fields[_WEEKDAY])


def _without_marks(fields: Sequence[str]) -> list[str]:
    return ["*" if text == "?" and place in (_DAY, _WEEKDAY) else text for place, text in enumerate(fields)]


def _with_day_names(fields: Sequence[str], *, sunday: int) -> str:
    """The expression with the days of the week by name, where they are numbers that begin with `sunday`."""
    *others, weekday = _without_marks(fields)
    return _rewritten(
        [*others, _NUMBER_OF_DAY.sub(lambda found: _DAYS[(int(found[0]) - sunday) % 7], weekday)]
    )


def _rewritten(fields: Sequence[str]) -> str:
    """The expression with `MONDAY` as `MON`, `FRIL` as `5L`, and a range across the end in two: `22-2` as `22-23,0-2`."""
    parts: list[str] = []
    for values, text in zip(FIELDS.values(), fields, strict=True):
        last = _LAST_DAY.sub(lambda found: f"{_DAYS.index(found[1])}L", text)
        terms = _LONG_NAME.sub(lambda found: _short_name(found[0]), last).split(",")
        names = _DAYS if values == FIELDS["day-of-week"] else _MONTHS
        parts.append(",".join(_in_order([*map(str, values)], _in_order(names, term)) for term in terms))
    return " ".join(parts)


def _short_name(word: str) -> str:
    return next((name[:3] for name in (*_LONG_DAYS, *_LONG_MONTHS) if name.startswith(word)), word)


def _in_order(values: Sequence[str], term: str) -> str:
    first, _, last = term.partition("-")
    if first not in values or last not in values or values.index(first) <= values.index(last):
        return term
    ends = ((first, values[-1]), (values[0], last))
    return ",".join(begin if begin == end else f"{begin}-{end}" for begin, end in ends)
