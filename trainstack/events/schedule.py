"""Cloud Scheduler: publishes a message to a topic at the times of a cron expression.

cronsim parses the expressions, as it does those of retraining rules.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from trainstack.tasks import cancel_all

CRON_FIELDS = 5
_UTC_NAMES = ("UTC", "Etc/UTC")
_NAP_S = 20.0

_log = logging.getLogger(__name__)

Publish = Callable[[str, bytes], None]
"""Publishes one message's data to a topic, by its full name. Blocks; raises if it is not accepted."""


class BadScheduleError(Exception):
    """The cron expression or the time zone is invalid."""


@dataclass(frozen=True, kw_only=True)
class CronSchedule:
    """`cron` has five fields and is read in `time_zone`, a name of the IANA database; `data` is the message."""

    name: str
    cron: str
    time_zone: str
    topic_name: str
    data: bytes

    def __post_init__(self) -> None:
        """Raises `BadScheduleError`."""
        ticks_after(self, datetime.now(UTC))


def ticks_after(schedule: CronSchedule, moment: datetime) -> Iterator[datetime]:
    """Every tick later than `moment`, earliest first, in UTC.

    Raises:
        BadScheduleError: at once, if the schedule is invalid.
    """
    if len(schedule.cron.split()) != CRON_FIELDS:
        raise BadScheduleError(
            f"Schedule {schedule.name}: {schedule.cron!r} has {len(schedule.cron.split())} fields; "
            "a cron expression has five: minute, hour, day of month, month, day of week."
        )
    try:
        zone = UTC if schedule.time_zone in _UTC_NAMES else ZoneInfo(schedule.time_zone)
        ticks = CronSim(schedule.cron, moment.astimezone(zone))
    except CronSimError as error:
        raise BadScheduleError(f"Schedule {schedule.name}: {schedule.cron!r}: {error}.") from error
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise BadScheduleError(
            f"Schedule {schedule.name}: unknown time zone {schedule.time_zone!r}; "
            "it must be a name of the IANA database, like Europe/Berlin."
        ) from error
    return (tick.astimezone(UTC) for tick in ticks)


@dataclass
class Scheduler:
    """Publishes every tick of its schedules between `start` and `stop`. Missed ticks are not made up for.

    With `every`, it ticks at this interval instead of by the cron expressions, for tests and demonstrations.
    """

    schedules: tuple[CronSchedule, ...]
    publish: Publish
    every: timedelta | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list, init=False)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._run(schedule), name=f"schedule {schedule.name}")
            for schedule in self.schedules
        ]

    async def stop(self) -> None:
        """Safe to call twice."""
        tasks, self._tasks = self._tasks, []
        await cancel_all(tasks)

    async def _run(self, schedule: CronSchedule) -> None:
        while True:
            if self.every is not None:
                await asyncio.sleep(self.every.total_seconds())
            else:
                await _until(next(ticks_after(schedule, datetime.now(UTC))))
            try:
                await asyncio.to_thread(self.publish, schedule.topic_name, schedule.data)
            except Exception as failure:  # a tick that cannot be published is lost; the next one is tried
                _log.warning(
                    "schedule %s: a tick could not be published and is lost: %r", schedule.name, failure
                )


async def _until(moment: datetime) -> None:
    # In short sleeps, because the wall clock may be set or the machine suspended.
    while (left := (moment - datetime.now(UTC)).total_seconds()) > 0:  # noqa: ASYNC110  # time is no event
        await asyncio.sleep(min(left, _NAP_S))
