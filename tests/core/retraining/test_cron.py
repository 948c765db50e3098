"""Cron as other schedulers write it: understood where it has one meaning, and else answered with what to write."""

from datetime import UTC, datetime

import pytest

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.retraining.times.schedule import NICKNAMES, next_due, schedule_faults

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
