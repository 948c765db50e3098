"""A pass along the queue: whose turn it is, and what it costs to find out."""

from datetime import UTC, datetime, timedelta

import pytest

from trainmaster.orchestrator.core.admission.queue import Order, Place, QueuePass

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Watched(Place):
    """A place that counts how often its order is read."""

    asked = 0

    @property
    def order(self) -> Order:
        Watched.asked += 1
        return super().order


def place(number: int, limits: tuple[str, ...] = (), blocked_on_limit: str | None = None) -> Place:
    return Watched(
        run_id=f"run-{number:04}",
        region="us-central1",
        priority=50,
        arrived_at=START + timedelta(seconds=number),
        classes=(f"class-{number % 3}",),
        not_before=START,
        limits=limits,
        blocked_on_limit=blocked_on_limit,
    )


@pytest.mark.parametrize("limits", [(), ("all",)], ids=["no limit", "a limit"])
def test_a_pass_that_finds_no_room_costs_what_the_length_of_the_queue_does(limits: tuple[str, ...]) -> None:
    length = 500
    queue_pass = QueuePass(places=[place(number, limits) for number in range(length)], began_at=START)
    Watched.asked, refused = 0, []
    for each in queue_pass.places:
        if not queue_pass.skips(each):
            refused.append(each.run_id)
            queue_pass.close(each.quota_class)
    assert refused == ["run-0000", "run-0001", "run-0002"], "the first of each class"
    assert Watched.asked < 5 * length


def test_a_run_that_joins_late_is_seen_by_those_behind_it() -> None:
    queue_pass = QueuePass(places=[place(3, ("all",))], began_at=START)
    queue_pass.add(place(1, ("all",), blocked_on_limit="all"))
    first, last = queue_pass.places
    assert (first.run_id, last.run_id) == ("run-0001", "run-0003")
    assert not queue_pass.skips(first)
    assert queue_pass.ahead_at_limit(last) is first
