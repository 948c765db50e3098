"""The backlog against a simple model: any order of takes, acknowledgements, failures and time."""

import math

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from trainstack.pubsub.delivery.backlog import Backlog, BacklogEntry, DeliveryPolicy, Holder, MessageLease

DEADLINE_S = 10.0


class Model(RuleBasedStateMachine):
    """Every message is owed until it is acknowledged or given up, and held by at most one lease."""

    leases = Bundle("leases")

    @initialize(backoff=st.booleans(), attempts=st.sampled_from([None, 3]))
    def begin(self, backoff: bool, attempts: int | None) -> None:
        patience = {"min_backoff_s": 5.0, "max_backoff_s": 20.0} if backoff else {}
        self.backlog = Backlog()
        self.policy = self.backlog.policy = DeliveryPolicy(**patience, max_attempts=attempts)
        self.now = 0.0
        self.published = 0
        self.owed: set[int] = set()
        self.failures: dict[int, int] = {}
        self.not_before: dict[int, float] = {}
        self.out: dict[int, MessageLease] = {}
        self.holder = Holder(max_messages=20, deadline_s=DEADLINE_S)

    @rule(size=st.integers(1, 100))
    def publish(self, size: int) -> None:
        self.published += 1
        self.owed.add(self.published)
        self.backlog.add(BacklogEntry(message_id=self.published, size=size))

    @rule(target=leases, count=st.integers(1, 5))
    def take(self, count: int) -> object:
        taken = self.backlog.take(self.now, self.holder, count=count)
        assert len(taken) <= count
        for lease in taken:
            message_id = lease.entry.message_id
            assert message_id in self.owed
            assert message_id not in self.out
            assert self.not_before.get(message_id, 0) <= self.now
            self.out[message_id] = lease
        return multiple(*taken)

    @rule(lease=leases)
    def acknowledge(self, lease: MessageLease) -> None:
        self.backlog.ack(lease.entry.message_id)
        self._gone(lease.entry.message_id)

    @rule(lease=leases)
    def give_back(self, lease: MessageLease) -> None:
        failed = self.backlog.fail(self.now, lease.serial)
        assert bool(failed) is self._is_out(lease)
        self._settle(failed)

    @rule(lease=leases, seconds=st.integers(1, 30))
    def extend(self, lease: MessageLease, seconds: int) -> None:
        found = self.backlog.extend(self.now, serial=lease.serial, deadline_s=seconds)
        assert found is self._is_out(lease)

    @rule(seconds=st.floats(0.5, 30))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        ended = {message_id for message_id, lease in self.out.items() if lease.deadline <= self.now}
        failed = self.backlog.expire(self.now)
        assert {entry.message_id for entry in failed} == ended
        self._settle(failed)

    def _is_out(self, lease: MessageLease) -> bool:
        return self.out.get(lease.entry.message_id) is lease

    def _settle(self, failed: list[BacklogEntry]) -> None:
        for entry in failed:
            message_id = entry.message_id
            self.out.pop(message_id)
            self.failures[message_id] = self.failures.get(message_id, 0) + 1
            assert entry.failures == self.failures[message_id]
            assert entry.settled is (entry.failures == self.policy.max_attempts)
            self.not_before[message_id] = self.now + self.policy.delay_s(entry.failures)
            if entry.settled:
                self._gone(message_id)

    def _gone(self, message_id: int) -> None:
        self.owed.discard(message_id)
        self.out.pop(message_id, None)

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "backlog"):
            assert self.holder.messages == len(self.out)
            assert self.holder.bytes == sum(lease.entry.size for lease in self.out.values())

    def teardown(self) -> None:
        """Whatever happened, patience brings every owed message in the end, and nothing else."""
        if not hasattr(self, "backlog"):
            return
        self.policy = self.backlog.policy = DeliveryPolicy()
        self.now += 1000
        self._settle(self.backlog.expire(self.now))
        seen: list[int] = []
        while batch := self.backlog.take(self.now, Holder(), count=100):
            for lease in batch:
                seen.append(lease.entry.message_id)
                self.backlog.ack(lease.entry.message_id)
        assert sorted(seen) == sorted(self.owed)
        assert self.backlog.wake_at() == math.inf


TestBacklog = Model.TestCase
TestBacklog.settings = settings(max_examples=75, stateful_step_count=40, deadline=None)


def test_back_off_doubles_from_its_minimum_to_its_maximum() -> None:
    policy = DeliveryPolicy(min_backoff_s=1, max_backoff_s=10)
    assert [policy.delay_s(failures) for failures in range(1, 7)] == [1, 2, 4, 8, 10, 10]
    assert policy.delay_s(10**6) == 10
