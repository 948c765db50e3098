"""When a rule may not fire: before `not_before`, and while a window of its `blackout` is open."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster.orchestrator.core.documents.codec import decoded, decoded_time
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.documents.values import list_at
from trainmaster.orchestrator.core.retraining.times.schedule import last_due, schedule_faults

WINDOWS_MAX = 10
"""As schemas/retraining_rule.v1.schema.json says; no more are checked."""
CHAINED_MAX = 100
"""Windows without a gap between them that are skipped in search of the first time without any."""
_TIME = "RFC 3339 with a zone, for example 2026-12-24T00:00:00+01:00"


@dataclass(frozen=True, kw_only=True)
class Window:
    """It opens at each time of `cron`, for `for_s`; or once, at `since`, and closes at `until`."""

    cron: str = ""
    time_zone: str = "Etc/UTC"
    for_s: int = 0
    since: datetime | None = None
    until: datetime | None = None

    def open_until(self, moment: datetime) -> datetime | None:
        """When the window closes; None if it is not open at the moment."""
        begun = self.since or last_due(self.cron, self.time_zone, moment)
        if begun is None or begun > moment:
            return None
        end = self.until or begun + timedelta(seconds=self.for_s)
        return end if moment < end else None


def windows_from(entries: Sequence[Mapping[str, object]]) -> tuple[Window, ...]:
    """The windows of a rule's `blackout`, which the schema accepts."""
    fields = ({"since" if key == "from" else key: value for key, value in entry.items()} for entry in entries)
    return tuple(decoded(Window, entry) for entry in fields)


def free_from(windows: Sequence[Window], moment: datetime) -> datetime:
    """The first time, not before the moment, at which no window is open, or the end of CHAINED_MAX that follow each other."""
    for _ in range(CHAINED_MAX):
        ends = [end for window in windows if (end := window.open_until(moment)) is not None]
        if not ends:
            break
        moment = max(ends)
    return moment


def window_faults(document: Mapping[str, object]) -> Iterator[Fault]:
    """The faults of `not_before` and `blackout` that the schema cannot find, in a rule that it may refuse."""
    yield from _time_faults(document, "not_before", ())
    for index, entry in enumerate(list_at(document, "blackout")[:WINDOWS_MAX]):
        if isinstance(entry, dict):
            yield from _entry_faults(entry, ("blackout", index))


def _entry_faults(entry: Mapping[str, object], path: tuple[PathPart, ...]) -> Iterator[Fault]:
    cron, zone = entry.get("cron"), entry.get("time_zone", Window.time_zone)
    if isinstance(cron, str) and isinstance(zone, str):
        yield from schedule_faults(cron, zone, path)
    for key in ("from", "until"):
        yield from _time_faults(entry, key, path)
    since, until = _moment(entry.get("from")), _moment(entry.get("until"))
    if since is not None and until is not None and until <= since:
        problem, allowed = "the window ends before it begins", f"a time after {entry['from']}"
        yield Fault(at=(*path, "until"), problem=problem, value=entry["until"], allowed=allowed)


def _moment(text: object) -> datetime | None:
    try:
        return decoded_time(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _time_faults(fields: Mapping[str, object], key: str, path: tuple[PathPart, ...]) -> Iterator[Fault]:
    text = fields.get(key)
    if isinstance(text, str) and _moment(text) is None:
        problem, repair = "not a time with its zone", "write the time, and Z or the offset from UTC"
        yield Fault(at=(*path, key), problem=problem, value=text, allowed=_TIME, repair=repair)
