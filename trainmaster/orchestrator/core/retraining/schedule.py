"""Cron expressions of five fields in local time of a time zone, as Debian's cron reads them.

A time that the clocks skip in spring is due right after the change; a time that occurs twice in autumn is due the
first time. Expressions whose minute or hour begins with `*` follow elapsed time instead.

Time zone data changes several times a year; zoneinfo reads it from the system, or from the package tzdata if the
system has none.

cronsim parses them: it is small, typed, without dependencies, and tested against Debian's cron through changes of the
clocks. croniter was declared abandoned in 2025.
"""

import difflib
import functools
import zoneinfo
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError

from trainmaster.orchestrator.core.documents.faults import FOUND_MAX_CHARS, Fault, PathPart, listed, shown

FIELDS = 5
_FORM = "minute hour day-of-month month day-of-week, for example 0 3 * * 1"
_NO_ZONES = frozenset({"localtime", "posixrules", "Factory"})
_ABBREVIATION_CHARS = 4
_SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)
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
    """The nearest zone by its full name, else by its city; empty for an abbreviation, which is ambiguous."""
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


def _cron_faults(cron: str, path: tuple[PathPart, ...]) -> Iterator[Fault]:
    parts = cron.split()
    if len(parts) != FIELDS:
        found = f"{shown(cron)}, {len(parts)} fields"
        yield Fault(at=path, problem="a cron expression has five fields", found=found, allowed=_FORM)
    elif unreadable := [name for name, alone in _each_alone(parts) if not _is_readable(alone)]:
        problem = f"not a cron expression: the {listed(unreadable)} cannot be read"
        yield Fault(at=path, problem=problem, value=cron, allowed=_FORM)
    elif not _ever_comes(cron):
        problem = "this never occurs: none of its months has this day"
        repair = "name a day that occurs; L means the last day of the month"
        yield Fault(at=path, problem=problem, value=cron, repair=repair)


def _each_alone(parts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each field's name, with an expression that has `*` for all other fields."""
    for index, name in enumerate(("minute", "hour", "day-of-month", "month", "day-of-week")):
        yield name, " ".join(part if place == index else "*" for place, part in enumerate(parts))


def _is_readable(cron: str) -> bool:
    try:
        CronSim(cron, _SOME_DAY)
    except (CronSimError, AssertionError, ValueError):
        return False
    return True


def _ever_comes(cron: str) -> bool:
    try:
        next(CronSim(cron, _SOME_DAY))
    except (CronSimError, StopIteration):
        return False
    return True


def last_due(cron: str, time_zone: str, until: datetime) -> datetime | None:
    """The expression's latest time up to `until`, inclusive, in UTC; None if there was none in 50 years."""
    zone = zoneinfo.ZoneInfo(time_zone)
    # Where the clocks go back, local times are not in order: begin later and skip.
    ahead = _CLOCK_CHANGES_WITHIN if _clocks_change(zone, until) else timedelta()
    # cronsim gives times before its start, and the start itself must be included.
    start = until.astimezone(UTC).replace(microsecond=0) + ahead + timedelta(seconds=1)
    times = CronSim(cron, _in_zone(start, zone), reverse=True)
    return next((due for due in (moment.astimezone(UTC) for moment in times) if due <= until), None)


def next_due(cron: str, time_zone: str, after: datetime) -> datetime | None:
    """The expression's first time after `after`, in UTC; None if it matches no time within 50 years."""
    times = CronSim(cron, _in_zone(after.astimezone(UTC), zoneinfo.ZoneInfo(time_zone)))
    return next((due for due in (moment.astimezone(UTC) for moment in times) if due > after), None)


def _in_zone(moment: datetime, zone: zoneinfo.ZoneInfo) -> datetime:
    return moment if zone.key in ("UTC", "Etc/UTC") else moment.astimezone(zone)


def _clocks_change(zone: zoneinfo.ZoneInfo, moment: datetime) -> bool:
    around = (moment - _CLOCK_CHANGES_WITHIN, moment + _CLOCK_CHANGES_WITHIN)
    before, after = (moment.astimezone(zone).utcoffset() for moment in around)
    return before != after
