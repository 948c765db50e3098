"""Objects that pages share: made once, bounded, and dropped."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from trainmaster.web.shared import Shared

AGES_S = 1000.0


class Counter:
    """Counts its looks."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.looks = 0

    def look(self) -> int:
        self.looks += 1
        return self.looks


@pytest.fixture(autouse=True)
def none_made() -> None:
    Counter.made = 0


def ask(
    shared: Shared,
    key: str,
    age_s: float = 0.0,
    make: Callable[[], Counter] = Counter,
    idle_s: float = AGES_S,
) -> int:
    return shared.ask(key, make=make, look=Counter.look, age_s=age_s, idle_s=idle_s)


def test_two_tabs_share_one_object_and_within_its_age_one_look() -> None:
    shared = Shared(most=2)
    assert [ask(shared, "run", AGES_S) for _ in range(3)] == [1, 1, 1]
    shared.expire()
    assert ask(shared, "run", AGES_S) == 2
    assert Counter.made == 1


def test_threads_that_ask_at_once_share_one_look() -> None:
    shared, all_here = Shared(most=2), threading.Barrier(8)

    def tab(_: int) -> int:
        all_here.wait(60)
        return ask(shared, "run", AGES_S)

    with ThreadPoolExecutor(8) as tabs:
        assert set(tabs.map(tab, range(8))) == {1}


def test_the_object_that_was_not_asked_for_longest_goes_first() -> None:
    shared = Shared(most=2)
    for key in ("a", "b", "a", "c", "a"):
        ask(shared, key)
    assert len(shared) == 2
    assert Counter.made == 3
    ask(shared, "b")
    assert Counter.made == 4


def test_what_is_idle_is_dropped_with_the_next_request() -> None:
    clock = [0.0]
    shared = Shared(most=10, clock=lambda: clock[0])
    for key in ("a", "b", "c"):
        ask(shared, key, idle_s=2.0)
        clock[0] += 1.5
    assert len(shared) == 2


def test_an_error_is_raised_and_not_kept() -> None:
    def fail() -> Counter:
        raise OSError("no service")

    shared = Shared(most=2)
    with pytest.raises(OSError, match="no service"):
        ask(shared, "run", AGES_S, fail)
    assert ask(shared, "run", AGES_S) == 1
