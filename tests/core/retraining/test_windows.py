"""A rule never fires before its time or in a window of its blackout, and says until when it is held."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.core.deciding import DATA, HOURLY, MANUAL, call, fired, held, tick
from tests.core.retraining_cases import (
    DAY,
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    batch,
    document,
    dropped,
    faults,
    fresh,
    pictures,
    rule,
)
from trainmaster.orchestrator.core.retraining.decision import Fire, NothingDue, limits_end
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.state import with_launch
from trainmaster.orchestrator.core.retraining.waiting import with_arrivals

OFFICE = {"cron": "0 8 * * MON-FRI", "for_s": 36_000, "time_zone": "Europe/Amsterdam"}
"""08:00 to 18:00 in Amsterdam; NOON is a Wednesday in winter."""
HOLIDAYS = {"from": "2026-03-04T00:00:00+01:00", "until": "2026-03-06T00:00:00+01:00"}
SIX = datetime(2026, 3, 4, 17, tzinfo=UTC)


@pytest.mark.parametrize(
    ("limits", "until", "says"),
    [
        ({"blackout": [OFFICE]}, SIX, "it is held until 2026-03-04T17:00:00.000000Z by its blackout"),
        (
            {"blackout": [HOLIDAYS]},
            datetime(2026, 3, 5, 23, tzinfo=UTC),
            "it is held until 2026-03-05T23:00:00.000000Z by its blackout",
        ),
        (
            {"not_before": "2026-03-04T18:00:00Z"},
            SIX + HOUR,
            "it is held until 2026-03-04T18:00:00.000000Z by its not_before",
        ),
        # The holidays end within office hours, and these end after the rule may fire.
        (
            {"blackout": [OFFICE, {**HOLIDAYS, "until": "2026-03-05T12:00:00Z"}], "not_before": "2026-03-01T00:00:00Z"},
            SIX + DAY,
            "it is held until 2026-03-05T17:00:00.000000Z by its blackout",
        ),
    ],
)  # fmt: skip
def test_an_order_is_held_until_the_window_closes(limits: dict[str, Any], until: datetime, says: str) -> None:
    one = rule(MANUAL, **limits)
    assert held(call(one, fresh(one), NOON)).reason == says
    assert held(call(one, fresh(one), until - SECOND)).reason == says
    assert isinstance(call(one, fresh(one), until), Fire)
    assert limits_end(one, NOON, fired_last_at=None, fired_at=()) == until


def test_a_scheduled_time_in_a_window_is_passed_over() -> None:
    one = rule(HOURLY, blackout=[OFFICE])
    hold = held(tick(one, fresh(one), NOON + HOUR))
    assert tick(one, hold.state, NOON + HOUR + MINUTE) == NothingDue()
    later = SIX - HOUR
    state = held(tick(one, hold.state, later)).state
    assert tick(one, state, SIX - SECOND) == NothingDue()
    assert fired(tick(one, state, SIX)).firing.event_id == "schedule/2026-03-04T17:00:00.000000Z"


def test_with_queue_one_the_newest_waits_for_the_end_of_the_window() -> None:
    one = rule(HOURLY, MANUAL, blackout=[OFFICE], while_running="queue_one")
    state = held(call(one, fresh(one), NOON, order="order/1")).state
    state = held(tick(one, state, NOON + HOUR)).state
    assert fired(tick(one, state, SIX)).firing.event_id.startswith("schedule/")


def test_data_that_arrives_in_a_window_fires_after_it() -> None:
    one = rule(DATA, blackout=[OFFICE])
    state = with_arrivals(fresh(one), one, [batch("x", pictures(3))])
    hold = held(tick(one, state, NOON + HOUR))
    assert tick(one, hold.state, NOON + 2 * HOUR) == hold, "nothing new to write"
    fire = fired(tick(one, hold.state, SIX))
    assert fire.firing.values["data.count"] == "3"
    assert with_launch(fire.state).held is None


@pytest.mark.parametrize(
    ("more", "path", "says"),
    [
        ({"not_before": "2026-12-24"}, "$.not_before", "not a time with its zone"),
        ({"not_before": 5}, "$.not_before", "expected a string"),
        ({"blackout": []}, "$.blackout", "too few entries"),
        ({"blackout": [dict(OFFICE) for _ in range(11)]}, "$.blackout", "too many entries"),
        ({"blackout": ["0 3 * * *"]}, "$.blackout[0]", "expected a mapping"),
        ({"blackout": [{"cron": "0 8 * * *"}]}, "$.blackout[0].for_s", "missing"),
        ({"blackout": [{"for_s": 60}]}, "$.blackout[0].cron", "missing"),
        ({"blackout": [{"from": "2026-12-24T00:00:00Z"}]}, "$.blackout[0].until", "missing"),
        ({"blackout": [{**OFFICE, "from": "2026-12-24T00:00:00Z"}]}, "$.blackout[0].from", "not allowed"),
        ({"blackout": [{**OFFICE, "time_zone": "UTC+2"}]}, "$.blackout[0].time_zone", "unknown time zone"),
        ({"blackout": [{**OFFICE, "cron": "0 0 30 2 *"}]}, "$.blackout[0].cron", "never occurs"),
        ({"blackout": [{**OFFICE, "for": 1}]}, "$.blackout[0].for", "unknown key"),
        ({"blackout": [{**HOLIDAYS, "from": "24 Dec"}]}, "$.blackout[0].from", "not a time with its zone"),
        (
            {"blackout": [{"from": HOLIDAYS["until"], "until": HOLIDAYS["from"]}]},
            "$.blackout[0].until",
            "ends before it begins",
        ),
    ],
)
def test_a_window_that_cannot_be_meant_is_a_fault_at_its_place(
    more: dict[str, Any], path: str, says: str
) -> None:
    found = faults(dropped(document(MANUAL, **more)))
    assert says in found[path].problem, found
    assert list(found) == [path]


def test_every_fault_of_the_windows_is_reported_at_once() -> None:
    blackout = [{"cron": "61 * * * *", "for_s": 1}, {"from": "x", "until": "y"}]
    assert sorted(faults(dropped(document(MANUAL, not_before="soon", blackout=blackout)))) == [
        "$.blackout[0].cron",
        "$.blackout[0].for_s",
        "$.blackout[1].from",
        "$.blackout[1].until",
        "$.not_before",
    ]


@pytest.mark.parametrize(
    "blackout",
    [[OFFICE], [HOLIDAYS], [{"cron": "0 0 * * *", "for_s": 86_340}], [{"cron": "@daily", "for_s": 60}, HOLIDAYS]],
)  # fmt: skip
def test_a_window_that_closes_is_no_fault(blackout: list[Any]) -> None:
    assert isinstance(dropped(document(MANUAL, blackout=blackout)), Rule)
