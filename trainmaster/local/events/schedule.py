"""Cloud Scheduler's part: a message on a topic whenever a cron expression says so."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from trainmaster.local.tasks import cancel_all

CRON_FIELDS = 5
_UTC_NAMES = ("UTC", "Etc/UTC")
_NAP_S = 20.0

_log = logging.getLogger(__name__)

Publish = Callable[[str, bytes], None]
"""Publishes one message's data to a topic by its full name. Blocks; raises when it was not taken."""


class BadScheduleError(Exception):
    """The cron expression or the time zone says nothing."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """`cron` has five fields and is read in `time_zone`, a name of the IANA database; `data` is the message."""

    name: str
    cron: str
    time_zone: str
    topic_name: str
    data: bytes

    def __post_init__(self) -> None:
        """Raises `BadScheduleError`."""
        ticks_after(self, datetime.now(UTC))


def ticks_after(schedule: Schedule, moment: datetime) -> Iterator[datetime]:
    """Every tick later than `moment`, earliest first, in UTC.

    Raises:
        BadScheduleError: at once, when there can be none.
    """
    if len(schedule.cron.split()) != CRON_FIELDS:
        raise BadScheduleError(
            f"Schedule {schedule.name}: {schedule.cron!r} has {len(schedule.cron.split())} fields; "
            "a cron expression has five: minute, hour, day of month, month, day of week."
        )
    try:
        ticks = CronSim(schedule.cron, moment.astimezone(_zone(schedule.time_zone)))
    except CronSimError as error:
        raise BadScheduleError(f"Schedule {schedule.name}: {schedule.cron!r}: {error}.") from error
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise BadScheduleError(
            f"Schedule {schedule.name}: unknown time zone {schedule.time_zone!r}; "
            "it must be a name of the IANA database, like Europe/Berlin."
        ) from error
    return (tick.astimezone(UTC) for tick in ticks)


class Scheduler:
    """Publishes every tick of its schedules between `start` and `stop`. Ticks that were missed are not caught up."""

    def __init__(
        self, schedules: tuple[Schedule, ...], *, publish: Publish, every: timedelta | None = None
    ) -> None:
        """A scheduler that has not begun.

        Args:
            schedules: what to publish when.
            publish: takes the messages.
            every: tick at this interval instead of as cron says, for tests and demonstrations.
        """
        self._schedules = schedules
        self._publish = publish
        self._every = every
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._run(schedule), name=f"schedule {schedule.name}")
            for schedule in self._schedules
        ]

    async def stop(self) -> None:
        """Safe to call twice."""
        tasks, self._tasks = self._tasks, []
        await cancel_all(tasks)

    async def _run(self, schedule: Schedule) -> None:
        while True:
            if self._every is not None:
                await asyncio.sleep(self._every.total_seconds())
            else:
                await _until(next(ticks_after(schedule, datetime.now(UTC))))
            try:
                await asyncio.to_thread(self._publish, schedule.topic_name, schedule.data)
            except Exception as failure:  # a tick that was not taken is lost; the next one comes
                _log.warning("a tick of %s was lost: %r", schedule.name, failure)


async def _until(moment: datetime) -> None:
    # In naps, because the wall clock may be set or the machine may have slept.
    while (left := (moment - datetime.now(UTC)).total_seconds()) > 0:  # noqa: ASYNC110  # time is no event
        await asyncio.sleep(min(left, _NAP_S))


def _zone(name: str) -> tzinfo:
    return UTC if name in _UTC_NAMES else ZoneInfo(name)
