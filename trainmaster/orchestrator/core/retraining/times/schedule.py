"""Cron expressions of five fields in local time of a time zone, as Debian's cron reads them.

Those that other schedulers write are understood where they mean one thing, or refused with what to write.
Sources, read in 2026: crontab(5) of Debian and its nicknames; Quartz's CronTrigger, with seconds first and perhaps a
year last, `?` for the day field that is not used, and Sunday as 1; EventBridge, which has the same without seconds.

A time that the clocks skip in spring is due right after the change; a time that occurs twice in autumn is due the
first time. Expressions whose minute or hour begins with `*` follow elapsed time instead.

Time zone data changes several times a year; zoneinfo reads it from the system, or from the package tzdata if the
system has none.

cronsim parses them: it is small, typed, without dependencies, and tested against Debian's cron through changes of the
clocks. croniter was declared abandoned in 2025.
"""

import difflib
import functools
import re
import zoneinfo
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from trainmaster.orchestrator.core.documents.faults import FOUND_MAX_CHARS, Fault, PathPart, listed, shown

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
_EXAMPLE = "0 3 * * 1"
_FORM = f"minute hour day-of-month month day-of-week, without seconds and years, for example {_EXAMPLE}"
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})
_ABBREVIATION_CHARS = 4
_SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
_ZONE_PREFIX = re.compile(r"\s*(?:CRON_)?TZ=(?P<zone>\S+)\s+(?P<rest>\S.*)")
_OFFSET = re.compile(r"(?:(?:ETC/)?UTC|GMT)?\s*(?P<sign>[+-])0?(?P<hours>\d{1,2})(?::?00)?")
_CLOCK_CHANGES_WITHIN = timedelta(hours=3)
"""No zone ever changed its clocks by more, except the few that crossed the date line."""


@functools.cache
def time_zones() -> tuple[str, ...]:
    """The name of every time zone, without other files that are stored beside the zones."""
    return tuple(sorted(zoneinfo.available_timezones() - _NO_ZONES))


def schedule_faults(cron: str, time_zone: str, path: tuple[PathPart, ...]) -> Iterator[Fault]:
    """The faults of the expression and the zone."""
    if time_zone not in time_zones():
        yield Fault(
            at=(*path, "time_zone"),
            problem="unknown time zone",
            value=time_zone,
            allowed="a name of the IANA time zone database, for example Europe/Amsterdam",
            repair=_nearest_zone(time_zone),
        )
    yield from _cron_faults(cron, (*path, "cron"))


def _nearest_zone(word: str) -> str:
    """The nearest zone by its full name, else by its city; empty for an abbreviation, which is ambiguous.

    For an offset of whole hours, the zone that has it.
    """
    if offset := _OFFSET.fullmatch(word.upper()):
        fixed = f"Etc/GMT{'-' if offset['sign'] == '+' else '+'}{offset['hours']}"
        write = f"write {fixed!r}, whose sign is inverted, or a city's zone, which follows its summer time"
        return write if fixed in time_zones() else ""
    if len(word) <= _ABBREVIATION_CHARS:
        return ""
    by_lower = {zone.lower().replace("_", " "): zone for zone in time_zones()}
    by_city = {name.rpartition("/")[2]: zone for name, zone in by_lower.items()}
    wanted = word[:FOUND_MAX_CHARS].strip().lower().replace("_", " ")
    for known, cutoff in ((by_lower, 0.7), (by_city, 0.8)):
        close = difflib.get_close_matches(wanted, known, n=1, cutoff=cutoff)
        if close:
            return f"did you mean {known[close[0]]!r}?"
    return ""


def five_fields(cron: str) -> str:
    """The expression in five fields, with a nickname spelled out, and `*` for the `?` of a day field.

    Beside `?`, a number as the day of the week is left as it is, and then refused: Quartz counts Sunday as 1.
    """
    fields = NICKNAMES.get(cron.strip().lower(), cron).split()
    if len(fields) == len(FIELDS) and not _numbers_day_beside_mark(fields):
        for place in (_DAY, _WEEKDAY):
            fields[place] = "*" if fields[place] == "?" else fields[place]
    return " ".join(fields)


def _numbers_day_beside_mark(fields: Sequence[str]) -> bool:
    """Whether the five fields have a number as the day of the week, and `?` in a day field."""
    has_mark = "?" in (fields[_DAY], fields[_WEEKDAY])
    return has_mark and _NUMBER_OF_DAY.search(fields[_WEEKDAY]) is not None


def _with_ranges_in_order(fields: Sequence[str]) -> str:
    """The expression with each range across the end in two: `22-2` as `22-23,0-2`; perhaps unreadable."""
    parts: list[str] = []
    for values, text in zip(FIELDS.values(), fields, strict=True):
        names = _DAYS if values == FIELDS["day-of-week"] else _MONTHS
        numbers, terms = [*map(str, values)], text.split(",")
        parts.append(",".join(_range_in_order(numbers, _range_in_order(names, term)) for term in terms))
    return " ".join(parts)


def _range_in_order(values: Sequence[str], term: str) -> str:
    first, _, last = term.partition("-")
    if first not in values or last not in values or values.index(first) <= values.index(last):
        return term
    ends = ((first, values[-1]), (values[0], last))
    return ",".join(begin if begin == end else f"{begin}-{end}" for begin, end in ends)


def _cron_faults(cron: str, path: tuple[PathPart, ...]) -> Iterator[Fault]:
    parts = five_fields(cron).split()
    if prefix := _ZONE_PREFIX.fullmatch(cron):
        zone, rest = prefix["zone"], prefix["rest"]
        key = f"time_zone: {shown(zone)}" if zone in time_zones() else f"a time_zone; {_nearest_zone(zone)}"
        repair = f"write cron: {rest!r} and {key}"
        yield Fault(at=path, problem="the time zone has its own key", value=cron, repair=repair)
    elif len(parts) != len(FIELDS):
        problem, found = "a cron expression has five fields", f"{shown(cron)}, {len(parts)} fields"
        yield Fault(at=path, problem=problem, found=found, allowed=_FORM, repair=_repair(cron))
    elif unreadable := [
        name for name, text in zip(FIELDS, parts, strict=True) if not _is_readable(name, text)
    ]:
        problem = f"not a cron expression: the {listed(unreadable)} cannot be read"
        ranges = (f"{name} {FIELDS[name][0]} to {FIELDS[name][-1]}" for name in unreadable)
        allowed = "; ".join((_FORM, *ranges))
        yield Fault(at=path, problem=problem, value=cron, allowed=allowed, repair=_repair(cron))
    elif not _ever_comes(" ".join(parts)):
        problem = "this never occurs: none of its months has this day"
        repair = "name a day that occurs; L means the last day of the month"
        yield Fault(at=path, problem=problem, value=cron, repair=repair)


def _repair(cron: str) -> str:
    fields = cron.upper().split()
    if len(fields) == len(FIELDS):
        if _numbers_day_beside_mark(fields):
            return "name the day of the week, as in MON: Sunday is 1 in Quartz and 0 in cron"
        if _ever_comes(text := _with_ranges_in_order(fields)):
            return f"write {text!r}"
    if cron.lstrip().startswith("@"):
        return f"write the times, as in {_EXAMPLE}; or one of {listed(NICKNAMES)}"
    if re.search(r"\dW|L-\d", cron.upper()):
        return "W and L-3 have no form here: name fixed days; L is the last day of the month"
    return ""


def _is_readable(name: str, text: str) -> bool:
    return _ever_comes(" ".join({**dict.fromkeys(FIELDS, "*"), name: text}.values()))


def _ever_comes(cron: str) -> bool:
    try:
        next(CronSim(cron, _SOME_DAY))
    except (CronSimError, AssertionError, ValueError, StopIteration):
        return False
    return True


def last_due(cron: str, time_zone: str, until: datetime) -> datetime | None:
    """The expression's latest time up to `until`, inclusive, in UTC; None if there was none in 50 years."""
    zone = zoneinfo.ZoneInfo(time_zone)
    # Where the clocks go back, local times are not in order: begin later and skip.
    ahead = _CLOCK_CHANGES_WITHIN if _clocks_change(zone, until) else timedelta()
    # cronsim gives times before its start, and the start itself must be included.
    start = until.astimezone(UTC).replace(microsecond=0) + ahead + timedelta(seconds=1)
    times = CronSim(five_fields(cron), _in_zone(start, zone), reverse=True)
    return next((due for due in (moment.astimezone(UTC) for moment in times) if due <= until), None)


def next_due(cron: str, time_zone: str, after: datetime) -> datetime | None:
    """The expression's first time after `after`, in UTC; None if it matches no time within 50 years."""
    times = CronSim(five_fields(cron), _in_zone(after.astimezone(UTC), zoneinfo.ZoneInfo(time_zone)))
    return next((due for due in (moment.astimezone(UTC) for moment in times) if due > after), None)


def _in_zone(moment: datetime, zone: zoneinfo.ZoneInfo) -> datetime:
    return moment if zone.key in ("UTC", "Etc/UTC") else moment.astimezone(zone)


def _clocks_change(zone: zoneinfo.ZoneInfo, moment: datetime) -> bool:
    around = (moment - _CLOCK_CHANGES_WITHIN, moment + _CLOCK_CHANGES_WITHIN)
    before, after = (moment.astimezone(zone).utcoffset() for moment in around)
    return before != after
