"""Ticks come when cron says, in its time zone."""

import itertools
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from trainstack.events.schedule import BadScheduleError, CronSchedule, Scheduler, ticks_after
from trainstack.http import in_thread


def schedule(cron: str, time_zone: str = "Etc/UTC") -> CronSchedule:
    return CronSchedule(
        name="s", cron=cron, time_zone=time_zone, topic_name="projects/p/topics/t", data=b"tick"
    )


def first(cron: str, moment: datetime, time_zone: str = "Etc/UTC", count: int = 2) -> list[str]:
    ticks = itertools.islice(ticks_after(schedule(cron, time_zone), moment), count)
    return [tick.isoformat() for tick in ticks]


def test_every_minute_is_on_the_minute() -> None:
    moment = datetime(2026, 1, 1, 10, 0, 30, 5, tzinfo=UTC)
    assert first("* * * * *", moment) == ["2026-01-01T10:01:00+00:00", "2026-01-01T10:02:00+00:00"]


def test_a_tick_on_the_very_moment_is_over() -> None:
    assert first("0 * * * *", datetime(2026, 1, 1, 10, tzinfo=UTC), count=1) == ["2026-01-01T11:00:00+00:00"]


def test_hours_are_the_time_zones_hours_and_follow_its_summer_time() -> None:
    assert first("0 9 * * *", datetime(2026, 3, 28, 0, tzinfo=UTC), "Europe/Berlin") == [
        "2026-03-28T08:00:00+00:00",
        "2026-03-29T07:00:00+00:00",
    ]


@pytest.mark.parametrize(
    ("cron", "time_zone", "why"),
    [
        ("* * * *", "Etc/UTC", r"'\* \* \* \*' has 4 fields"),
        ("0 0 * * * *", "Etc/UTC", "has 6 fields"),
        ("99 * * * *", "Etc/UTC", "Bad minute"),
        ("* * * * *", "Mars/Olympus", "unknown time zone 'Mars/Olympus'"),
        ("* * * * *", "../etc/passwd", "unknown time zone"),
    ],
)
def test_an_invalid_schedule_is_refused_with_the_reason(cron: str, time_zone: str, why: str) -> None:
    with pytest.raises(BadScheduleError, match=why):
        schedule(cron, time_zone)


def test_a_lost_tick_does_not_end_the_schedule() -> None:
    took: list[tuple[str, bytes]] = []
    enough = threading.Event()

    def publish(topic_name: str, data: bytes) -> None:
        took.append((topic_name, data))
        if len(took) == 1:
            raise ConnectionError("Pub/Sub is away")
        enough.set()

    @asynccontextmanager
    async def ticking() -> AsyncIterator[None]:
        scheduler = Scheduler((schedule("* * * * *"),), publish=publish, every=timedelta(milliseconds=20))
        scheduler.start()
        try:
            yield
        finally:
            await scheduler.stop()

    with in_thread(ticking):
        assert enough.wait(20)
    assert set(took) == {("projects/p/topics/t", b"tick")}
