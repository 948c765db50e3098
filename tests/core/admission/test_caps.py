"""Caps: how many runs may start in an hour, and what those of a day may cost."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.admission_cases import answer, document, policy, shipped_prices
from tests.core.shipped import REQUEST_RULES
from tests.memory import ManualClock, MemoryObjects
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.caps import COUNTED_MAX, CountedEnd, CountedStart, over_cap
from trainmaster.orchestrator.core.admission.cost import currency_problem
from trainmaster.orchestrator.core.admission.prices import prices_from
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.policy.admission import Caps, UnknownPrices
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.stores.admission import Starts

NOON = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


def run(
    name: str, minutes: float = 0, cost: str | None = None, end: tuple[float, str] | None = None
) -> CountedStart:
    """`end`: the minute of its mark, and what the run cost."""
    return CountedStart(
        run_id=name,
        created_at=NOON + timedelta(minutes=minutes),
        cost=None if cost is None else Decimal(cost),
        end=None if end is None else CountedEnd(created_at=at(end[0]), version=0, cost=Decimal(end[1])),
    )


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


TWO = Caps(runs_per_hour=2)


def test_runs_up_to_the_cap_start_and_the_next_is_told_when_to_retry() -> None:
    runs = [run("a"), run("b", 1), run("c", 2)]
    assert [over_cap(TWO, runs, each) is None for each in runs] == [True, True, False]
    reached = present(over_cap(TWO, runs, runs[2]))
    assert reached.window == "runs_per_hour/2026-11-21T12"
    assert "2 runs were started in the hour from 12:00 UTC" in reached.fault.problem
    assert "after 13:00 UTC" in reached.fault.repair
    assert reached.fault.found == "one more, after 2"


@pytest.mark.parametrize(("before", "repair"), [(1, "matrix; if"), (2, "matrix, after 13:00 UTC; if")])
def test_a_matrix_above_the_cap_needs_fewer_values_and_without_any_room_also_time(
    before: int, repair: str
) -> None:
    reached = present(over_cap(TWO, [run(str(n)) for n in range(before)], replace(run("m", 1), runs=3)))
    assert f"with fewer values in its {repair}" in reached.fault.repair


def test_a_run_counts_itself_once_whether_its_mark_is_listed_or_not() -> None:
    assert over_cap(TWO, [run("a"), run("b")], run("b")) is None
    assert over_cap(TWO, [run("a")], run("b")) is None
    assert over_cap(TWO, [run("a"), run("b")], run("c", 1)) is not None


def test_with_more_marks_than_are_counted_no_run_starts() -> None:
    marks = [run("a")] * COUNTED_MAX
    assert over_cap(Caps(runs_per_hour=2), marks, run("b")) is None
    reached = present(over_cap(Caps(runs_per_hour=2), [*marks, run("a")], run("b")))
    assert (reached.window, reached.fault.found) == ("runs_counted/2026-11-21", "one more, after 50,000")


def test_a_run_counts_in_the_hour_of_its_mark_whatever_the_store_says_when_it_came() -> None:
    edge = NOON.replace(minute=0) + timedelta(hours=1)
    late = [
        CountedStart(run_id=name, created_at=edge + timedelta(seconds=n), cost=None, hour=NOON)
        for n, name in enumerate("abc")
    ]
    next_hour = CountedStart(run_id="d", created_at=edge + timedelta(seconds=9), cost=None, hour=edge)
    runs = [*late, next_hour]
    assert [over_cap(TWO, runs, each) is None for each in runs] == [True, True, False, True]


def test_of_marks_of_the_same_moment_the_one_that_was_there_first_goes() -> None:
    runs = [CountedStart(run_id=name, created_at=NOON, cost=None, version=n) for n, name in enumerate("zyx")]
    assert [over_cap(TWO, runs, each) is None for each in runs] == [True, True, False]


def test_hours_are_utcs_whatever_the_clocks_zone() -> None:
    there = CountedStart(
        run_id="z", created_at=NOON.astimezone(timezone(timedelta(hours=5, minutes=45))), cost=None
    )
    reached = present(over_cap(TWO, [run("a", -1), run("b", -1)], there))
    assert reached.window == "runs_per_hour/2026-11-21T12"


TEN_A_DAY = Caps(cost_per_day=Decimal(10))


def test_the_runs_of_a_day_cost_together_at_most_the_cap() -> None:
    runs = [run("a", -600, "6"), run("b", 0, "4.01"), run("c", 1, "4")]
    assert [over_cap(TEN_A_DAY, runs, each) is None for each in runs] == [True, False, True]
    reached = present(over_cap(TEN_A_DAY, runs, runs[1]))
    assert reached.window == "cost_per_day/2026-11-21"
    assert "may still cost 6.00 USD" in reached.fault.problem
    assert reached.fault.found == "at most 4.01 USD for this run"
    assert reached.fault.allowed == "4.00 USD more today"


def test_a_cost_that_is_unknown_counts_as_nothing() -> None:
    assert over_cap(TEN_A_DAY, [run("a", 0, "10")], run("b", 1)) is None
    assert over_cap(TEN_A_DAY, [run("a", 0)], run("b", 1, "10")) is None


def test_an_ended_run_counts_with_what_it_cost_for_the_runs_marked_after_its_end_alone() -> None:
    a, b, c = run("a", 0, "8", end=(2, "0.5")), run("b", 1, "9"), run("c", 3, "9.5")
    assert over_cap(TEN_A_DAY, [a, b, c], c) is None
    reached = present(over_cap(TEN_A_DAY, [a, b, c], b))
    assert reached.fault.problem.startswith(
        "the runs started on 2026-11-21 (UTC) have cost or may still cost 8.00 USD, "
    )
    assert "which then counts with its real cost" in reached.fault.repair
    assert over_cap(TEN_A_DAY, [a, c], run("d", 4, "0.01")) is not None


ENDS = st.none() | st.tuples(st.integers(0, 60), st.integers(0, 12))


@given(st.lists(st.tuples(st.integers(-90, 90), st.integers(0, 12), ENDS), min_size=1, max_size=7))
def test_a_decision_is_the_same_whichever_ends_its_reader_sees_beside_those_that_came_before(
    drawn: list[tuple[int, int, tuple[int, int] | None]],
) -> None:
    def seen(until: float) -> list[CountedStart]:
        """All marks that exist at that minute."""
        return [
            run(
                f"r{index}",
                began,
                str(most),
                end=(began + end[0], str(min(end[1], most))) if end and began + end[0] <= until else None,
            )
            for index, (began, most, end) in enumerate(drawn)
            if began <= until
        ]

    accepted = list[CountedStart]()
    for last in sorted(seen(1000), key=lambda mark: mark.order):
        marks = [seen(minute) for minute in range(int((last.created_at - NOON).total_seconds()) // 60, 151)]
        answers = {over_cap(TEN_A_DAY, each, last) is None for each in marks}
        assert len(answers) == 1
        if answers == {True}:
            cost = sum(
                other.end.cost if other.end and other.end.created_at <= last.created_at else other.cost or 0
                for other in accepted
            )
            assert cost + (last.cost or 0) <= 10
            accepted.append(last)


RUNS = st.lists(st.tuples(st.integers(-90, 90), st.none() | st.integers(0, 12)), min_size=1, max_size=6).map(
    lambda drawn: [
        run(f"r{index}", at, None if cost is None else str(cost)) for index, (at, cost) in enumerate(drawn)
    ]
)
CAPS = st.builds(
    Caps,
    runs_per_hour=st.none() | st.integers(1, 3),
    cost_per_day=st.none() | st.integers(1, 15).map(Decimal),
)


@given(CAPS, RUNS)
def test_every_observer_of_the_marks_reaches_the_same_answer(caps: Caps, runs: list[CountedStart]) -> None:
    answers = {each.run_id: over_cap(caps, runs, each) for each in runs}
    accepted = [each for each in runs if answers[each.run_id] is None]
    for order in (runs[::-1], *(runs[first:] + runs[:first] for first in range(len(runs)))):
        assert {each.run_id: over_cap(caps, order, each) for each in runs} == answers
    assert all(over_cap(caps, accepted, each) is None for each in accepted)
    for each in runs:
        if answers[each.run_id] is not None:
            assert over_cap(caps, accepted, each) is not None


def test_the_policys_terms_are_read_with_exact_amounts() -> None:
    written = {
        "caps": {"runs_per_hour": 7, "currency": "EUR", "cost_per_run": 0.1, "unknown_prices": "refuse"},
        "limits": [{"jobs": 2, "per": {"label": "team"}}],
    }
    admission = policy(written).admission
    assert admission.caps == Caps(
        runs_per_hour=7, currency="EUR", cost_per_run=Decimal("0.1"), unknown_prices=UnknownPrices.REFUSE
    )
    assert admission.limits[0].per_label == "team"
    assert (admission.priced, admission.caps.counted) == (True, True)


def test_the_shipped_policy_caps_runs_per_hour_and_cost_and_estimates_every_run() -> None:
    shipped = present(REQUEST_RULES.policy).admission
    assert shipped.caps == Caps(runs_per_hour=100, cost_per_run=Decimal(1000), cost_per_day=Decimal(10_000))
    assert (shipped.limits, shipped.estimates) == ((), True)
    assert currency_problem(shipped.caps, prices_from(shipped_prices())) is None


def test_the_shipped_caps_allow_eight_a100_for_a_day_but_not_four_such_machines() -> None:
    def shipped(workers: int) -> Request | Refused:
        cluster = {"chief": {"gpu": "A100:8"}, "workers": {"gpu": "A100:8", "count": workers}}
        if not workers:
            del cluster["workers"]
        return answer(
            document(cluster=cluster), under=REQUEST_RULES.policy, prices=prices_from(shipped_prices())
        )

    allowed, refused = shipped(0), shipped(3)
    assert isinstance(allowed, Request)
    assert allowed.warnings == ()
    assert Decimal(800) < (present(allowed.estimate).at_most or 0) < Decimal(1000)
    assert isinstance(refused, Refused)
    assert [fault.path for fault in refused.faults] == ["$.cluster.workers"]


def test_an_object_among_the_marks_that_is_none_is_passed_over_and_one_of_unreadable_cost_counts() -> None:
    objects = MemoryObjects(ManualClock(NOON))
    starts = Starts(objects, "ledger")
    starts.mark("a", NOON, Decimal(6))
    day = f"started/{NOON:%Y-%m-%d}"
    for name, metadata in (
        (f"{day}/", {}),
        (f"{day}/12/folder/b", {}),
        (f"{day}/12/c", {"cost": "much"}),
        (f"{day}/ended/a", {"cost": "?"}),
    ):
        objects.write("ledger", name, b"", if_generation=None, metadata=metadata)
    found = starts.of_day(NOON.date())
    assert [(each.run_id, each.cost, each.end) for each in found] == [("a", 6, None), ("c", None, None)]
