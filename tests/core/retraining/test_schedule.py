"""Cron by the clocks of a time zone: no time is missed or comes twice; other schedulers' forms are understood or answered."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.narrowing import present
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.retraining.condition import Schedule
from trainmaster.orchestrator.core.retraining.times.schedule import (
    NICKNAMES,
    next_due,
    schedule_faults,
    time_zones,
)

AMSTERDAM = "Europe/Amsterdam"


def times(cron: str, zone: str, start: datetime, end: datetime) -> list[datetime]:
    """Every time that a tick a minute finds, as a rule would."""
    found: list[datetime] = []
    seen_until, now = start, start
    schedule = Schedule(cron=cron, time_zone=zone)
    while now < end:
        now += timedelta(minutes=1)
        due = schedule.last_due(now)
        if due is not None and due > seen_until:
            found.append(due)
            seen_until = now
    return found


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type, misc]  # year, month, day, hour, minute


def test_a_time_that_the_clocks_leave_out_comes_when_they_have_moved_on() -> None:
    # In Amsterdam 02:00 to 03:00 of 29 March 2026 does not exist.
    start = utc(2026, 3, 28, 12)
    assert times("30 2 * * *", AMSTERDAM, start, start + timedelta(days=2)) == [
        utc(2026, 3, 29, 1, 0),  # 03:00 by the clocks
        utc(2026, 3, 30, 0, 30),
    ]


def test_a_time_that_the_clocks_show_twice_comes_once() -> None:
    # In Amsterdam 02:00 to 03:00 of 25 October 2026 is twice.
    start = utc(2026, 10, 24, 12)
    assert times("30 2 * * *", AMSTERDAM, start, start + timedelta(days=2)) == [
        utc(2026, 10, 25, 0, 30),
        utc(2026, 10, 26, 1, 30),
    ]


@pytest.mark.parametrize("day", [utc(2026, 3, 28, 12), utc(2026, 10, 24, 12)])
def test_an_expression_of_intervals_follows_elapsed_time(day: datetime) -> None:
    found = times("*/30 * * * *", AMSTERDAM, day, day + timedelta(days=1))
    assert {then - first for first, then in pairwise(found)} == {timedelta(minutes=30)}


def test_a_zone_with_half_hours_keeps_its_own() -> None:
    # Lord Howe Island moves its clocks by half an hour, on 4 October 2026 from 02:00 to 02:30.
    start = utc(2026, 10, 3, 12)
    assert times("15 2 * * *", "Australia/Lord_Howe", start, start + timedelta(days=2)) == [
        utc(2026, 10, 3, 15, 30),
        utc(2026, 10, 4, 15, 15),
    ]


def test_the_time_itself_is_due() -> None:
    schedule = Schedule(cron="0 3 * * 1", time_zone=AMSTERDAM)
    due = utc(2026, 3, 2, 2, 0)
    assert schedule.last_due(due) == due
    assert schedule.last_due(due + timedelta(microseconds=1)) == due
    assert schedule.last_due(due - timedelta(microseconds=1)) == due - timedelta(days=7)


def test_a_time_that_the_clocks_show_twice_is_found_while_they_show_it_again() -> None:
    # 02:30 came at 00:30 UTC; at 01:15 UTC the clocks show 02:15 for the second time.
    schedule = Schedule(cron="30 2 * * *", time_zone=AMSTERDAM)
    assert schedule.last_due(utc(2026, 10, 25, 1, 15)) == utc(2026, 10, 25, 0, 30)
    assert schedule.last_due(utc(2026, 10, 25, 1, 45)) == utc(2026, 10, 25, 0, 30)


def test_the_29th_of_february_was_due_years_ago() -> None:
    assert Schedule(cron="0 0 29 2 *").last_due(utc(2026, 3, 1)) == utc(2024, 2, 29)


@settings(max_examples=60, deadline=None)
@given(
    minute=st.sampled_from(["0", "30", "15,45", "*/20", "59"]),
    hour=st.sampled_from(["*", "0", "1", "2", "3", "*/2", "23"]),
    zone=st.sampled_from(
        ["Etc/UTC", AMSTERDAM, "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"]
    ),
    until=st.integers(0, 365 * 24 * 60).map(lambda minutes: utc(2026, 1, 1) + timedelta(minutes=minutes)),
)
def test_the_last_due_time_is_the_clocks_latest(minute: str, hour: str, zone: str, until: datetime) -> None:
    due = present(Schedule(cron=f"{minute} {hour} * * *", time_zone=zone).last_due(until))
    assert due <= until
    # Looked for by hand: the latest minute whose first showing on the clocks is named by the expression.
    clock = ZoneInfo(zone)
    named = _minutes(minute)
    candidates = (until.replace(second=0) - timedelta(minutes=back) for back in range(2 * 24 * 60))
    plain = next(
        each
        for each in candidates
        if _shown(each, clock).minute in named
        and (hour.startswith("*") or _shown(each, clock).hour == int(hour))
        and (hour.startswith("*") or minute.startswith("*") or _shown(each, clock).fold == 0)
        and (not hour.startswith("*/") or _shown(each, clock).hour % 2 == 0)
    )
    # What the clocks left out is moved, so it may be later than what they showed, and is never earlier.
    assert due >= plain
    if due != plain:
        offsets = {(due + timedelta(hours=ahead)).astimezone(clock).utcoffset() for ahead in (-2, 2)}
        assert len(offsets) == 2


def _minutes(field: str) -> set[int]:
    return set(range(0, 60, 20)) if field == "*/20" else {int(each) for each in field.split(",")}


def _shown(moment: datetime, clock: ZoneInfo) -> datetime:
    return moment.astimezone(clock)


@pytest.mark.parametrize(
    "cron",
    [
        "0 0 30 2 *", "0 0 31 2,4,6 *", "* * * *", "* * * * * *", "60 * * * *", "x * * * *", "", "@reboot",
        "0 0 0 * *", "*/0 * * * *", "5-1 * * * *", "L L L L L",
    ],
)  # fmt: skip
def test_an_impossible_expression_is_a_fault(cron: str) -> None:
    (fault,) = schedule_faults(cron, "Etc/UTC", ("when", 0, "schedule"))
    assert fault.path == "$.when[0].schedule.cron"
    assert fault.allowed or fault.repair


@pytest.mark.parametrize(
    "cron",
    [
        "0 0 29 2 *",
        "0 0 L * *",
        "0 0 * * MON#5",
        "0 9-17 * jan mon-fri",
        "*/5 * * * *",
        "0 0 31 * *",
        "0 0 * * 7",
    ],
)
def test_a_possible_expression_is_not_a_fault(cron: str) -> None:
    assert list(schedule_faults(cron, "Etc/UTC", ())) == []


@pytest.mark.parametrize(
    ("zone", "repair"),
    [
        ("Europe/Amsterdm", "did you mean 'Europe/Amsterdam'?"),
        ("europe/amsterdam", "did you mean 'Europe/Amsterdam'?"),
        ("Amsterdam", "did you mean 'Europe/Amsterdam'?"),
        ("New York", "did you mean 'America/New_York'?"),
        ("localtime", ""),
        ("../../etc/passwd", ""),
        ("PST", ""),
        ("", ""),
        ("x" * 10_000, ""),
    ],
)
def test_an_unknown_zone_is_a_fault_that_names_the_nearest(zone: str, repair: str) -> None:
    (fault,) = schedule_faults("* * * * *", zone, ())
    assert (fault.path, fault.repair) == ("$.time_zone", repair)


def test_every_zone_can_be_used() -> None:
    assert len(time_zones()) > 400
    for zone in time_zones():
        assert Schedule(cron="30 2 * * *", time_zone=zone).last_due(utc(2026, 3, 29, 12)) is not None


@pytest.mark.parametrize(
    ("cron", "zone", "after", "due"),
    [
        ("0 3 * * 1", "Etc/UTC", utc(2026, 11, 23, 2, 59), utc(2026, 11, 23, 3)),
        ("0 3 * * 1", "Etc/UTC", utc(2026, 11, 23, 3), utc(2026, 11, 30, 3)),
        (
            "30 2 * * *",
            "Europe/Amsterdam",
            utc(2026, 3, 28, 12),
            utc(2026, 3, 29, 1),
        ),  # skipped by the clocks
        ("30 2 * * *", "Europe/Amsterdam", utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30)),  # not twice
        ("0 0 29 2 *", "Etc/UTC", utc(2026, 1, 1), utc(2028, 2, 29)),
    ],
)
def test_the_next_due_time_is_the_first_after(cron: str, zone: str, after: datetime, due: datetime) -> None:
    assert Schedule(cron=cron, time_zone=zone).next_due(after) == due


NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


def fault_of(cron: str, zone: str = "Etc/UTC") -> Fault:
    (fault,) = schedule_faults(cron, zone, ("schedule",))
    return fault


@pytest.mark.parametrize(
    ("cron", "same"),
    [
        *NICKNAMES.items(),
        (" @Daily ", "0 0 * * *"),
        ("0 3 * * ?", "0 3 * * *"),
        ("0 3 ? * MON-FRI", "0 3 * * MON-FRI"),
        ("0 3 1 * ?", "0 3 1 * *"),
        ("0 3 ? * FRI#2", "0 3 * * FRI#2"),
        ("0 3 * * 7", "0 3 * * SUN"),
        ("0 3 * * sun", "0 3 * * 0"),
    ],
)
def test_an_expression_with_one_meaning_is_understood(cron: str, same: str) -> None:
    assert list(schedule_faults(cron, "Etc/UTC", ())) == []
    assert next_due(cron, "Etc/UTC", NOW) == next_due(same, "Etc/UTC", NOW)


@pytest.mark.parametrize(
    ("cron", "repair"),
    [
        ("0 22-2 * * *", "write '0 22-23,0-2 * * *'"),
        ("0 3 * * FRI-MON", "write '0 3 * * FRI-SAT,SUN-MON'"),
        ("0 3 * * SAT-SUN", "write '0 3 * * SAT,SUN'"),
        ("0 3 * * 6-1", "write '0 3 * * 6,0-1'"),
        ("0 3 * NOV-FEB *", "write '0 3 * NOV-DEC,JAN-FEB *'"),
        ("0 3 * * MON-SUN", "write '0 3 * * MON-SAT,SUN'"),
        ("TZ=Europe/Paris 0 10 * * *", "write cron: '0 10 * * *' and time_zone: 'Europe/Paris'"),
        ("CRON_TZ=Europe/Paris @daily", "write cron: '@daily' and time_zone: 'Europe/Paris'"),
    ],
)
def test_an_expression_of_another_scheduler_is_answered_with_the_same_meaning(cron: str, repair: str) -> None:
    assert fault_of(cron).repair == repair


@pytest.mark.parametrize(
    ("cron", "says"),
    [
        ("@reboot", "one of @hourly, @daily"),
        ("@every 1h", "write the times, as in 0 3 * * 1"),
        ("0 3 15W * *", "W and L-3 have no form here"),
        ("0 3 L-3 * *", "W and L-3 have no form here"),
        ("0 3 ? * 2", "name the day of the week, as in MON: Sunday is 1 in Quartz and 0 in cron"),
        ("TZ=UTC+2 0 10 * * *", "write 'Etc/GMT-2'"),
        ("TZ=Europe/Pari 0 10 * * *", "did you mean 'Europe/Paris'?"),
    ],
)
def test_an_expression_without_an_equal_is_answered_with_what_there_is(cron: str, says: str) -> None:
    assert says in fault_of(cron).repair


@pytest.mark.parametrize(
    "cron", ["30 0 3 * * ?", "30 0 3 * * 1", "0 0 12 ? * 2-6 2026", "cron(0 3 ? * MON 2026)", "60 * * * *",
             "0 24 * * *", "0 3 * *", "0 3 * * monthly", "x", "0 0 3 ? * MON", "0 3 * * monday", "? ? ? ? ?", "0 3 * * L"]
)  # fmt: skip
def test_an_expression_that_would_lose_its_meaning_gets_no_repair(cron: str) -> None:
    fault = fault_of(cron)
    assert fault.repair == ""
    assert "without seconds and years" in fault.allowed


def test_a_number_out_of_range_is_answered_with_the_range() -> None:
    assert "hour 0 to 23" in fault_of("0 24 * * *").allowed


@pytest.mark.parametrize(
    ("zone", "repair"),
    [
        ("UTC+2", "write 'Etc/GMT-2', whose sign is inverted, or a city's zone"),
        ("utc-05:00", "write 'Etc/GMT+5', whose sign is inverted, or a city's zone"),
        ("GMT+1", "write 'Etc/GMT-1'"),
        ("+02:00", "write 'Etc/GMT-2'"),
        ("UTC +2", "write 'Etc/GMT-2'"),
        ("Etc/UTC+2", "write 'Etc/GMT-2'"),
        ("Etc/GMT+02", "did you mean 'Etc/GMT+2'?"),
        ("UTC+5:30", ""),
        ("GMT+15", ""),
    ],
)
def test_an_offset_as_a_zone_is_answered_with_the_zone_that_has_it(zone: str, repair: str) -> None:
    assert fault_of("0 3 * * *", zone).repair[: len(repair) or None] == repair
