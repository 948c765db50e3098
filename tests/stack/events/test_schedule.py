"""Ticks come when cron says, in its time zone."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import pytest

from trainstack.events.schedule import BadScheduleError, CronSchedule, Scheduler, ticks_after
from trainstack.http import in_thread


def schedule(cron: str, time_zone: str = "Etc/UTC") -> CronSchedule:
    return CronSchedule(
        name="s", cron=cron, time_zone=time_zone, topic_name="projects/p/topics/t", data=b"tick"
    )


@pytest.mark.parametrize(
    ("cron", "time_zone", "moment", "ticks"),
    [
        ("* * * * *", "Etc/UTC", "2026-01-01T10:00:30.000005", ["2026-01-01T10:01", "2026-01-01T10:02"]),
        ("0 * * * *", "Etc/UTC", "2026-01-01T10:00:00", ["2026-01-01T11:00", "2026-01-01T12:00"]),
        ("0 9 * * *", "Europe/Berlin", "2026-03-28T00:00:00", ["2026-03-28T08:00", "2026-03-29T07:00"]),
    ],
    ids=["on the minute", "a tick on the very moment is over", "summer time"],
)
def test_ticks_come_after_the_moment_in_the_hours_of_the_time_zone(
    cron: str, time_zone: str, moment: str, ticks: list[str]
) -> None:
    found = ticks_after(schedule(cron, time_zone), datetime.fromisoformat(f"{moment}+00:00"))
    assert [next(found).isoformat() for _ in ticks] == [f"{tick}:00+00:00" for tick in ticks]


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
