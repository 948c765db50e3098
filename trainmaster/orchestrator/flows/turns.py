"""Turns in a tick: which items get one, in which order and for how long, and what happens to those that fail.

An item is a run, a rule or a dropped rule. None may cost another its turn:

    time        each part of a tick has a share of the function's time; what it did not reach comes first next time
    death       a tick that finds the mark of a dead one is careful: it marks each item before the work, one at a time,
                and goes backwards, so that the items which the dead tick did not reach come first
    suspicion   an item whose mark stays behind comes last from then on
    quarantine  after ATTEMPTS_MAX failures in a row an item gets no more turns; the flow of its kind says so

A tick renews its own mark while it works; one whose mark is older than DEAD_AFTER is dead. If it was only slow, two
ticks do the same work, as they may at any time. A normal tick pays one listing and one write for all of this, and one
deletion; a tick without work pays nothing.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.names import attempt_object, attempts_prefix, tick_object
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.stores.attempts import Attempt, Item, ItemKind, Traces

RUNS_SHARE, QUEUE_SHARE, RULES_SHARE, DROPS_SHARE = 0.4, 0.2, 0.2, 0.1
"""Of the function's time. The rest is spare: a call that has begun may take long. Rules also get what others leave."""
RENEWED_EVERY, DEAD_AFTER = timedelta(seconds=10), timedelta(seconds=30)
ATTEMPTS_MAX = 3
RUN_RETRIED_AFTER = timedelta(hours=1)
"""How long a run in quarantine waits for its next turn. A rule or a drop waits until it is dropped again."""
PROCESSOR_MAX_S = 10.0
"""The processor time of one turn, beyond which it counts as failed. A normal one takes a few milliseconds."""
DIED = "the function died at it, or ran out of memory or time"

_Result = TypeVar("_Result")


@dataclass(frozen=True, kw_only=True)
class Done(Generic[_Result]):
    """What came of an item's turn: a result, or the error that ended it."""

    item: Item
    result: _Result | None = None
    error: Exception | None = None


def error_text(error: Exception | None) -> str:
    """The message of a foreseen error, or the traceback of a bug in this program."""
    if error is None or isinstance(error, TrainmasterError):
        return str(error)
    return "".join(traceback.format_exception(error))


def severity_of(error: Exception | None) -> str:
    """A foreseen error is a warning; a bug in this program is critical."""
    return "WARNING" if error is None or isinstance(error, TrainmasterError) else "CRITICAL"


def run_item(run_id: str, order: str = "") -> Item:
    return Item(kind=ItemKind.RUN, name=run_id, generation=1, order=order)


class Turns:
    """The turns of one tick. The traces of earlier ticks are read when the first item needs a turn."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._read: Traces | None = None
        self._read_at = services.began_at
        self._places: dict[str, str] = {}
        self._failed_now: set[Item] = set()
        self._renewed_at = services.began_at

    @property
    def _traces(self) -> Traces:
        """Read once. Not a `cached_property`: in Python 3.11 all instances share its lock, and this reads a bucket."""
        if self._read is None:
            traces = self._services.attempts.read()
            self._read_at = self._services.clock.now()
            self._renew(self._read_at)
            self._places = dict(traces.places)
            self._read = traces
        return self._read

    @property
    def _dead(self) -> Sequence[str]:
        """The marks of ticks that died."""
        ticks = self._traces.ticks
        return [name for name, at in ticks.items() if self._read_at - at >= DEAD_AFTER]

    @property
    def careful(self) -> bool:
        """Whether an earlier tick died."""
        return bool(self._dead)

    @property
    def backwards(self) -> bool:
        """Whether another tick has not ended: it died, or is still at work."""
        return bool(self._traces.ticks)

    def until(self, *shares: float) -> datetime:
        """When a part must end so that these shares of the function's time are left."""
        return self._services.began_at + self._services.timeout * (0.9 - sum(shares))

    def order(self, kind: ItemKind, items: Iterable[Item]) -> list[Item]:
        """The items that get a turn now, in their order. Traces of items that no longer exist are removed."""
        there = sorted(items, key=lambda item: item.order)
        if not there:
            return []
        traces = self._traces
        self._tidy(kind, there)
        behind = self._behind(kind, there)
        rotated = [*behind, *there[: len(there) - len(behind)]]
        first = [item for item in rotated if traces.of(item) is None and self.may_take(item)]
        last = [item for item in rotated if traces.of(item) is not None and self.may_take(item)]
        return [*(reversed(first) if self.backwards else first), *last]

    def _behind(self, kind: ItemKind, there: Sequence[Item]) -> Sequence[Item]:
        """The items from which the tick begins, to the end of the list.

        A careful tick continues where the last one died, so that several deadly items delay the others once each.
        """
        traced = ((item, self._traces.of(item)) for item in there)
        deadly = [(attempt.at, item.order) for item, attempt in traced if attempt and not attempt.failure]
        if deadly and self.careful:
            _, place = max(deadly)
            return [item for item in there if item.order >= place]
        place = self._traces.places.get(self._direction(kind), self._traces.places.get(kind, ""))
        return [item for item in there if item.order > place]

    def may_take(self, item: Item) -> bool:
        """Whether the item gets a turn now: no other tick works on it, it is not in quarantine and has not just failed."""
        attempt = self._traces.of(item)
        if item in self._failed_now:
            return False
        if attempt is None:
            return True
        # An end that only the tick can find must be found some day, so a run is tried again now and then.
        is_due = item.kind is ItemKind.RUN and self._services.clock.now() - attempt.at >= RUN_RETRIED_AFTER
        return self._is_over(attempt) and (attempt.number < ATTEMPTS_MAX or is_due)

    def items_in_quarantine(self, items: Iterable[Item]) -> list[tuple[Item, str]]:
        """The items that get no more turns, and why."""
        found = ((item, self._traces.of(item)) for item in items)
        return [
            (item, attempt.failure or DIED)
            for item, attempt in found
            if attempt is not None and attempt.number >= ATTEMPTS_MAX and self._is_over(attempt)
        ]

    def take(self, item: Item, work: Callable[[], _Result]) -> _Result:
        """The result of the work, and count the attempt if it fails; a failed service is not the item's failure.

        Raises:
            Exception: whatever the work raises.
        """
        services, past = self._services, self._traces.of(item)
        number = 1 if past is None else past.number + 1
        marked = self.careful or past is not None
        now = services.clock.now()
        if now - self._renewed_at >= RENEWED_EVERY:
            with suppress(TrainmasterError):
                self._renew(now)
        if marked:
            services.attempts.begin(item, number)
        began_s = services.clock.processor_s()
        try:
            result = work()
        except TrainmasterError:
            if past is not None:
                self._record_failure(item, past.number, past.failure or DIED)
            elif marked:
                self._forget_failures(item)
            raise
        except Exception as error:
            self._record_failure(item, number, f"{type(error).__name__}: {error}")
            raise
        spent_s = services.clock.processor_s() - began_s
        if spent_s > PROCESSOR_MAX_S:
            failure = f"it took {spent_s:.0f} s of processor time, more than {PROCESSOR_MAX_S:.0f} s"
            self._record_failure(item, number, failure)
        elif marked:
            self._forget_failures(item)
        return result

    def give_turns(
        self, items: Sequence[Item], work: Callable[[Item], _Result], *, until: datetime, at_once: int = 1
    ) -> Iterator[Done[_Result]]:
        """Give each item its turn, in this order, as long as there is time: at least one gets it.

        What is left comes first in the next tick. Yields in the same order; ends with the first that got no turn.
        """

        def take_turn(number: int, item: Item) -> Done[_Result] | None:
            if number > 0 and self._services.clock.now() >= until:
                return None
            try:
                return Done(item=item, result=self.take(item, lambda: work(item)))
            except Exception as error:  # for the caller, who reports it and continues with the other items
                return Done(item=item, error=error)

        at_once = 1 if items and self.careful else at_once
        for number, done in enumerate(_iter_results(take_turn, items, at_once)):
            if done is None:
                self._stop(items[:number], items[number])
                return
            yield done
        if items:
            self._places.pop(self._direction(items[0].kind), None)

    def end(self) -> None:
        """The tick has ended in good order, whatever failed in it."""
        if self._read is None:
            return
        with suppress(TrainmasterError):  # the next tick is careful then
            if self._places != self._traces.places:
                self._services.attempts.keep_places(self._places)
            for name in (*self._dead, tick_object(self._services.attempt)):
                self._services.attempts.remove(name)

    def _stop(self, had: Sequence[Item], first: Item) -> None:
        """Keep the place, so that the next tick of the same direction begins with `first`."""
        fresh = [item for item in had if self._traces.of(item) is None]
        if self._traces.of(first) is not None:
            self._places.pop(self._direction(first.kind), None)  # only items that failed before are left
        elif self.backwards:
            self._places[self._direction(first.kind)] = first.order
        elif fresh:
            self._places[self._direction(first.kind)] = fresh[-1].order

    def _direction(self, kind: ItemKind) -> str:
        """The name of the place: the two directions must not undo each other's progress."""
        return f"{kind}-backwards" if self.backwards else kind

    def _renew(self, now: datetime) -> None:
        self._renewed_at = now
        self._services.attempts.mark_tick(self._services.attempt)

    def _tidy(self, kind: ItemKind, there: Sequence[Item]) -> None:
        kept = {attempt_object(kind, item.name): item.generation for item in there}
        for name, attempt in self._traces.attempts.items():
            is_old = name.startswith(attempts_prefix(kind)) and kept.get(name) != attempt.generation
            if is_old and self._is_over(attempt):
                self._services.attempts.remove(name)

    def _is_over(self, attempt: Attempt) -> bool:
        """Whether no tick works on it: that one failed, or is dead."""
        return bool(attempt.failure) or self._services.clock.now() - attempt.at >= DEAD_AFTER

    def _record_failure(self, item: Item, number: int, failure: str) -> None:
        self._failed_now.add(item)
        with suppress(TrainmasterError):
            self._services.attempts.begin(item, number, failure)

    def _forget_failures(self, item: Item) -> None:
        with suppress(TrainmasterError):
            self._services.attempts.forget(item)


def _iter_results(
    work: Callable[[int, Item], _Result], items: Sequence[Item], at_once: int
) -> Iterator[_Result]:
    """The results in the items' order, of as many at once. No more work is begun once the caller stops."""
    if at_once == 1:
        yield from map(work, range(len(items)), items)
        return
    with ThreadPoolExecutor(at_once) as pool:
        yield from pool.map(work, range(len(items)), items)
