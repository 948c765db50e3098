"""The order of a job's states, and the consequences of its replicas' exits."""

import signal

import pytest

from trainstack.jobs.replicas.exits import ReplicaEnd, exit_status
from trainstack.jobs.resource.job import CHIEF, JobReplica, ResourceState, may_follow
from trainstack.jobs.runners.restarts import (
    MAX_JOB_RESTARTS,
    MAX_WORKER_RESTARTS,
    Decision,
    RestartAction,
    RestartPolicy,
)

WORKER = JobReplica(pool=1, index=0)
OTHER = JobReplica(pool=1, index=1)
SUCCEED, CARRY_ON = Decision(RestartAction.SUCCEED), Decision(RestartAction.CARRY_ON)


def restart_replicas(*lost: ReplicaEnd) -> Decision:
    return Decision(RestartAction.RESTART_REPLICAS, lost)


def restart_job(cause: ReplicaEnd) -> Decision:
    return Decision(RestartAction.RESTART_JOB, (cause,))


def fail(cause: ReplicaEnd) -> Decision:
    return Decision(RestartAction.FAIL, (cause,))


def restarts(*, with_the_job: bool = False, retries_disabled: bool = False) -> RestartPolicy:
    return RestartPolicy(with_the_job=with_the_job, retries_disabled=retries_disabled)


def chief(status: int, *, preempted: bool = False) -> ReplicaEnd:
    return ReplicaEnd(replica=CHIEF, status=status, preempted=preempted)


def worker(status: int, *, preempted: bool = False) -> ReplicaEnd:
    return ReplicaEnd(replica=WORKER, status=status, preempted=preempted)


def other(status: int) -> ReplicaEnd:
    return ReplicaEnd(replica=OTHER, status=status)


def decisions(rules: RestartPolicy, one: ReplicaEnd, times: int) -> list[Decision]:
    return [rules.decide([one]) for _ in range(times)]


def test_nothing_follows_a_terminal_state() -> None:
    ended = [state for state in ResourceState if state.is_terminal]
    assert {state.name for state in ended} == {"SUCCEEDED", "FAILED", "CANCELLED"}
    assert not any(may_follow(before, after) for before in ended for after in ResourceState)


def test_every_unfinished_state_can_be_cancelled_and_can_fail() -> None:
    for state in (ResourceState.QUEUED, ResourceState.PENDING, ResourceState.RUNNING):
        assert may_follow(state, ResourceState.CANCELLING)
        assert may_follow(state, ResourceState.FAILED)
    assert may_follow(ResourceState.CANCELLING, ResourceState.CANCELLED)


def test_a_job_does_not_run_before_it_has_room() -> None:
    assert not may_follow(ResourceState.QUEUED, ResourceState.RUNNING)
    assert not may_follow(ResourceState.PENDING, ResourceState.SUCCEEDED)


@pytest.mark.parametrize("status", [6, 134, 11, 139])
def test_a_crash_restarts_the_job_three_times(status: int) -> None:
    found = decisions(restarts(), chief(status), MAX_JOB_RESTARTS + 1)
    assert found == [restart_job(chief(status))] * 3 + [fail(chief(status))]


def test_a_crash_is_final_where_retries_are_disabled() -> None:
    assert restarts(retries_disabled=True).decide([chief(139)]) == fail(chief(139))


def test_a_lost_worker_is_restarted_five_times_then_the_job() -> None:
    lost = worker(137)
    found = decisions(restarts(), lost, MAX_WORKER_RESTARTS + 1)
    assert found == [restart_replicas(lost)] * 5 + [restart_job(lost)]


@pytest.mark.parametrize("with_the_job", [False, True])
def test_a_worker_lost_for_ever_ends_the_job_after_every_restart_is_used(*, with_the_job: bool) -> None:
    rounds = (MAX_WORKER_RESTARTS + 1) * MAX_JOB_RESTARTS + MAX_WORKER_RESTARTS
    rules = restarts(with_the_job=with_the_job)
    found = decisions(rules, worker(137), rounds + 1)
    assert [one.action is RestartAction.FAIL for one in found] == [False] * rounds + [True]
    assert found[-1] == fail(worker(137))
    assert rules.of_the_job == MAX_JOB_RESTARTS


def test_each_worker_has_restarts_of_its_own() -> None:
    rules = restarts()
    decisions(rules, worker(143), MAX_WORKER_RESTARTS)
    assert rules.decide([other(143)]) == restart_replicas(other(143))


def test_disabled_retries_override_restarting_with_a_worker() -> None:
    rules = restarts(with_the_job=True, retries_disabled=True)
    assert rules.decide([worker(137)]) == restart_replicas(worker(137))


@pytest.mark.parametrize("status", [0, 1, 2, 134, 137, 143])
@pytest.mark.parametrize("replica", [CHIEF, WORKER])
def test_a_preempted_replica_is_lost_with_any_exit_status(status: int, replica: JobReplica) -> None:
    gone = ReplicaEnd(replica=replica, status=status, preempted=True)
    assert restarts(with_the_job=True).decide([gone]) == restart_job(gone)
    assert restarts().decide([gone]) == restart_replicas(gone)


LOST = worker(137)
PREEMPTED = worker(0, preempted=True)


@pytest.mark.parametrize(
    ("exits", "alone", "together"),
    [
        # One exit. An ordinary code is final.
        ([chief(0)], SUCCEED, SUCCEED),
        ([worker(0)], CARRY_ON, CARRY_ON),
        ([LOST], restart_replicas(LOST), restart_job(LOST)),
        *(([worker(code)], fail(worker(code)), fail(worker(code))) for code in (1, 2, 126, 127, 128)),
        # A loss, and what it brings about, in any order. An ordinary exit code is final unless all restart together.
        ([LOST, chief(134)], restart_job(chief(134)), restart_job(LOST)),
        ([chief(134), LOST], restart_job(chief(134)), restart_job(LOST)),
        ([LOST, chief(1)], fail(chief(1)), restart_job(LOST)),
        ([chief(1), LOST], fail(chief(1)), restart_job(LOST)),
        ([LOST, chief(134), other(1)], fail(other(1)), restart_job(LOST)),
        ([PREEMPTED, chief(134)], restart_job(chief(134)), restart_job(PREEMPTED)),
        # Two machines at once.
        ([LOST, other(137)], restart_replicas(LOST, other(137)), restart_job(LOST)),
        # No machine is lost: the first failure is the cause.
        ([worker(1), chief(134)], fail(worker(1)), fail(worker(1))),
        ([worker(139), chief(1)], restart_job(worker(139)), restart_job(worker(139))),
        ([chief(134), other(134)], restart_job(chief(134)), restart_job(chief(134))),
        ([worker(3), other(4)], fail(worker(3)), fail(worker(3))),
        # The chief was done.
        ([LOST, chief(0)], SUCCEED, SUCCEED),
        ([worker(134), chief(0)], SUCCEED, SUCCEED),
        ([chief(0), worker(1)], SUCCEED, SUCCEED),
        ([worker(1), chief(0)], fail(worker(1)), fail(worker(1))),
        ([worker(0), other(0)], CARRY_ON, CARRY_ON),
        ([worker(0), other(137)], restart_replicas(other(137)), restart_job(other(137))),
    ],
)
def test_exits_that_come_together_are_judged_together(
    exits: list[ReplicaEnd], alone: Decision, together: Decision
) -> None:
    assert restarts().decide(exits) == alone
    assert restarts(with_the_job=True).decide(exits) == together


def test_a_loss_that_takes_its_peers_with_it_is_counted_once() -> None:
    rules = restarts(with_the_job=True)
    rules.decide([LOST, chief(134), other(1)])
    assert (rules.of_the_job, dict(rules.of_replicas)) == (0, {WORKER: 1})
    rules = restarts()
    rules.decide([LOST, chief(134), other(134)])
    assert (rules.of_the_job, dict(rules.of_replicas)) == (1, {})


def test_a_worker_restarted_alone_restarts_with_all_when_its_peers_crash_next() -> None:
    rules = restarts()
    assert rules.decide([LOST]) == restart_replicas(LOST)
    assert rules.decide([chief(134)]) == restart_job(chief(134))
    assert (rules.of_the_job, dict(rules.of_replicas)) == (1, {})


def test_a_loss_that_takes_its_peers_with_it_is_final_where_retries_are_disabled() -> None:
    rules = restarts(with_the_job=True, retries_disabled=True)
    assert rules.decide([LOST, chief(134)]) == fail(chief(134))


def test_a_signal_becomes_the_status_that_a_container_shows() -> None:
    assert exit_status(-signal.SIGKILL) == 137
    assert exit_status(3) == 3
