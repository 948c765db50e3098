"""The backlog against a simple model: any order of takes, acknowledgements, failures and time."""

import math
from collections.abc import Iterator

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from trainmaster.local.pubsub.checks.policy import Backoff, DeliveryPolicy
from trainmaster.local.pubsub.delivery.backlog import Backlog, Failed
from trainmaster.local.pubsub.delivery.lease import Entry, Holder, Lease

DEADLINE_S = 10.0


class Model(RuleBasedStateMachine):
    """Every message is owed until it is acknowledged or given up, and held by at most one lease."""

    leases = Bundle("leases")

    @initialize(ordered=st.booleans(), backoff=st.booleans(), attempts=st.sampled_from([None, 3]))
    def begin(self, ordered: bool, backoff: bool, attempts: int | None) -> None:
        patience = Backoff(minimum_s=5, maximum_s=20) if backoff else None
        self.policy = DeliveryPolicy(ordered=ordered, backoff=patience, max_attempts=attempts)
        self.backlog = Backlog(self.policy)
        self.now = 0.0
        self.published: dict[int, Entry] = {}
        self.owed: set[int] = set()
        self.failures: dict[int, int] = {}
        self.not_before: dict[int, float] = {}
        self.out: dict[int, Lease] = {}
        self.holder = Holder(max_messages=20, deadline_s=DEADLINE_S)

    @rule(key=st.sampled_from(["", "a", "b"]), size=st.integers(1, 100))
    def publish(self, key: str, size: int) -> None:
        entry = Entry(message_id=len(self.published) + 1, ordering_key=key, size=size)
        self.published[entry.message_id] = entry
        self.owed.add(entry.message_id)
        self.backlog.add(entry)

    @rule(target=leases, count=st.integers(1, 5))
    def take(self, count: int) -> object:
        taken = self.backlog.take(self.now, self.holder, count=count)
        assert len(taken) <= count
        for lease in taken:
            message_id = lease.entry.message_id
            assert message_id in self.owed
            assert message_id not in self.out
            assert self.not_before.get(message_id, 0) <= self.now
            self._in_order(lease)
            self.out[message_id] = lease
        return multiple(*taken)

    def _in_order(self, lease: Lease) -> None:
        if self.policy.ordered and lease.entry.ordering_key:
            for earlier in self._lane(lease):
                if earlier < lease.entry.message_id and earlier in self.owed:
                    assert earlier in self.out, "overtaken by a later message of its key"

    def _lane(self, lease: Lease) -> Iterator[int]:
        return (
            one.message_id for one in self.published.values() if one.ordering_key == lease.entry.ordering_key
        )

    @rule(lease=leases)
    def acknowledge(self, lease: Lease) -> None:
        for done in self.backlog.ack(self.now, message_id=lease.entry.message_id, serial=lease.serial):
            self._gone(done)

    @rule(lease=leases)
    def give_back(self, lease: Lease) -> None:
        self._settle(self.backlog.fail(self.now, lease.serial))

    @rule(lease=leases, seconds=st.integers(1, 30))
    def extend(self, lease: Lease, seconds: int) -> None:
        held = self.backlog.held(lease.serial)
        assert self.backlog.extend(self.now, serial=lease.serial, deadline_s=seconds) is held

    @rule(seconds=st.floats(0.5, 30))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        ends = {message_id: lease.deadline for message_id, lease in self.out.items()}
        failed = self.backlog.expire(self.now)
        assert all(ends[entry.message_id] <= self.now for entry in [*failed.again, *failed.given_up])
        self._settle(failed)
        assert all(lease.acked or lease.deadline > self.now for lease in self.out.values())

    def _settle(self, failed: Failed) -> None:
        for entry in failed.again:
            self.failures[entry.message_id] = self.failures.get(entry.message_id, 0) + 1
            assert entry.failures == self.failures[entry.message_id]
            self.not_before[entry.message_id] = self.now + self.policy.delay_s(entry.failures)
        for entry in failed.given_up:
            assert entry.failures == self.policy.max_attempts
            self._gone(entry.message_id)
        for done in failed.done:
            self._gone(done)
        # Leases that ended, by failing themselves or by standing behind a failed message of their key.
        self.out = {
            key: lease for key, lease in self.out.items() if self.backlog.held(lease.serial) or lease.acked
        }
        again = {entry.ordering_key for entry in failed.again if self.policy.ordered and entry.ordering_key}
        for message_id, lease in list(self.out.items()):
            first = min(
                (one.message_id for one in failed.again if one.ordering_key == lease.entry.ordering_key),
                default=0,
            )
            if lease.entry.ordering_key in again and message_id > first:
                del self.out[message_id]

    def _gone(self, message_id: int) -> None:
        self.owed.discard(message_id)
        self.out.pop(message_id, None)

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "backlog"):
            assert self.holder.messages == len(self.backlog._leases)
            assert self.holder.bytes == sum(lease.entry.size for lease in self.backlog._leases.values())

    def teardown(self) -> None:
        """Whatever happened, patience brings every owed message in the end, and nothing else."""
        if not hasattr(self, "backlog"):
            return
        self.policy = self.backlog.policy = DeliveryPolicy(ordered=self.policy.ordered)
        self.now += 1000
        self._settle(self.backlog.expire(self.now))
        seen: list[Lease] = []
        holder = Holder()
        while batch := self.backlog.take(self.now, holder, count=100):
            for lease in batch:
                seen.append(lease)
                self.backlog.ack(self.now, message_id=lease.entry.message_id, serial=lease.serial)
        assert {lease.entry.message_id for lease in seen} == self.owed
        assert len(seen) == len(self.owed)
        assert len(self.backlog) == 0
        assert self.backlog.wake_at() == math.inf


TestBacklog = Model.TestCase
TestBacklog.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


def test_an_acknowledgement_after_the_deadline_still_counts() -> None:
    backlog = Backlog(DeliveryPolicy())
    backlog.add(Entry(message_id=7, ordering_key="", size=1))
    (lease,) = backlog.take(0, Holder(), count=1)
    backlog.expire(11)
    assert backlog.ack(12, message_id=7, serial=lease.serial) == [7]
    assert backlog.take(13, Holder(), count=1) == []


def test_back_off_doubles_from_its_minimum_to_its_maximum() -> None:
    backoff = Backoff(minimum_s=1, maximum_s=10)
    assert [backoff.delay_s(failures) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]
    assert backoff.delay_s(10**6) == 10


def test_a_message_given_up_does_not_come_back_with_the_one_before_it() -> None:
    backlog = Backlog(DeliveryPolicy(ordered=True, max_attempts=2))
    for message_id in (1, 2):
        backlog.add(Entry(message_id=message_id, ordering_key="k", size=1))
    for _ in range(2):
        first, second = backlog.take(0, Holder(), count=2)
        given_up = backlog.fail(0, second.serial).given_up
        if not given_up:
            backlog.fail(0, first.serial)
            first.entry.failures = 0
    assert [entry.message_id for entry in given_up] == [2]
    backlog.fail(0, first.serial)
    again = backlog.take(0, Holder(), count=2)
    assert [lease.entry.message_id for lease in again] == [1]
