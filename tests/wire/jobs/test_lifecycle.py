"""Which state may follow which, and what a replica's exit leads to."""

import signal

import pytest

from emulators.jobs.cluster import CHIEF, Replica
from emulators.jobs.lifecycle import (
    MAX_JOB_RESTARTS,
    MAX_WORKER_RESTARTS,
    CarryOn,
    Decision,
    Fail,
    JobState,
    RestartJob,
    RestartReplica,
    Restarts,
    Succeed,
    exit_status,
    may_follow,
)

WORKER = Replica(pool=1, index=0)


def restarts(*, with_the_job: bool = False, retries_disabled: bool = False) -> Restarts:
    return Restarts(with_the_job=with_the_job, retries_disabled=retries_disabled)


def decisions(rules: Restarts, replica: Replica, status: int, times: int) -> list[Decision]:
    return [rules.decide(replica, status) for _ in range(times)]


def test_nothing_follows_a_terminal_state() -> None:
    ended = [state for state in JobState if state.is_terminal]
    assert {state.name for state in ended} == {"SUCCEEDED", "FAILED", "CANCELLED"}
    assert not any(may_follow(before, after) for before in ended for after in JobState)


def test_every_unfinished_state_can_be_cancelled_and_can_fail() -> None:
    for state in (JobState.QUEUED, JobState.PENDING, JobState.RUNNING):
        assert may_follow(state, JobState.CANCELLING)
        assert may_follow(state, JobState.FAILED)
    assert may_follow(JobState.CANCELLING, JobState.CANCELLED)


def test_a_job_does_not_run_before_it_has_room() -> None:
    assert not may_follow(JobState.QUEUED, JobState.RUNNING)
    assert not may_follow(JobState.PENDING, JobState.SUCCEEDED)


def test_the_job_succeeds_with_its_chief_and_not_with_a_worker() -> None:
    assert restarts().decide(CHIEF, 0) == Succeed()
    assert restarts().decide(WORKER, 0) == CarryOn()


@pytest.mark.parametrize("status", [1, 2, 126, 127, 128])
def test_an_ordinary_exit_code_ends_the_job_at_once(status: int) -> None:
    assert restarts(with_the_job=True).decide(WORKER, status) == Fail(replica=WORKER, status=status)


@pytest.mark.parametrize("status", [6, 134, 11, 139])
def test_a_crash_restarts_the_job_three_times(status: int) -> None:
    found = decisions(restarts(), CHIEF, status, MAX_JOB_RESTARTS + 1)
    assert found == [RestartJob()] * 3 + [Fail(replica=CHIEF, status=status)]


def test_a_crash_is_final_where_retries_are_disabled() -> None:
    assert restarts(retries_disabled=True).decide(CHIEF, 139) == Fail(replica=CHIEF, status=139)


def test_a_lost_worker_is_restarted_five_times_then_the_job() -> None:
    found = decisions(restarts(), WORKER, 137, MAX_WORKER_RESTARTS + 1)
    assert found == [RestartReplica(replica=WORKER)] * 5 + [RestartJob()]


def test_a_worker_lost_for_ever_ends_the_job_after_every_restart_is_used() -> None:
    rounds = (MAX_WORKER_RESTARTS + 1) * MAX_JOB_RESTARTS + MAX_WORKER_RESTARTS
    found = decisions(restarts(), WORKER, 137, rounds + 1)
    assert found[-1] == Fail(replica=WORKER, status=137)
    assert found.count(RestartJob()) == MAX_JOB_RESTARTS


def test_each_worker_has_restarts_of_its_own() -> None:
    rules = restarts()
    decisions(rules, WORKER, 143, MAX_WORKER_RESTARTS)
    other = Replica(pool=1, index=1)
    assert rules.decide(other, 143) == RestartReplica(replica=other)


def test_the_whole_job_restarts_with_a_worker_where_asked() -> None:
    assert restarts(with_the_job=True).decide(WORKER, 137) == RestartJob()


def test_disabled_retries_override_restarting_with_a_worker() -> None:
    rules = restarts(with_the_job=True, retries_disabled=True)
    assert rules.decide(WORKER, 137) == RestartReplica(replica=WORKER)


def test_a_signal_becomes_the_status_that_a_container_shows() -> None:
    assert exit_status(-signal.SIGKILL) == 137
    assert exit_status(3) == 3
