"""Decides what follows when replicas end: nothing, the end of the job, or a restart of some or all replicas.

One loss causes others: soon after a machine is lost, its peers end too, each with a different status. So all
exits known at one time are judged together, and one loss is counted once.

Source: https://cloud.google.com/vertex-ai/docs/training/understanding-training-service, read 2026-11.

There is no fixed pause after an exit: a process itself shows whether its end has begun.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from trainstack.jobs.replicas.exits import ReplicaEnd, ReplicaFailure
from trainstack.jobs.resource.job import JobReplica

MAX_WORKER_RESTARTS = 5
MAX_JOB_RESTARTS = 3
MAX_INTERNAL_ATTEMPTS = 3


class RestartAction(Enum):
    """What to do after exits."""

    SUCCEED = "the chief finished, so the job succeeds"
    CARRY_ON = "nothing"
    RESTART_REPLICAS = "these replicas restart with the same addresses; the others keep running"
    RESTART_JOB = "every replica is stopped and restarted with the same addresses"
    FAIL = "the job has failed"


@dataclass(frozen=True)
class Decision:
    """What to do, and the exits that caused it."""

    action: RestartAction
    causes: tuple[ReplicaEnd, ...] = ()


@dataclass(kw_only=True)
class RestartPolicy:
    """Counts restarts of one job and decides what its replicas' exits cause.

    Attributes:
        with_the_job: `restartJobOnWorkerRestart`; `retries_disabled` overrides it.
        retries_disabled: `disableRetries`.
        of_the_job: how often all replicas were restarted because of a crash or a replica that was lost repeatedly.
        of_replicas: how often each was lost since then.
    """

    with_the_job: bool
    retries_disabled: bool
    of_the_job: int = 0
    of_replicas: Counter[JobReplica] = field(default_factory=Counter)

    def decide(self, exits: Sequence[ReplicaEnd]) -> Decision:
        """Decide on `exits`, all known at one time, in the order they ended; counts a restart once.

        If the whole job restarts with a lost replica, every other exit counts as a consequence of that loss,
        even an earlier one: a failing program does not cause the loss of another machine. Otherwise the first
        failure is the cause, and an ordinary exit code ends the job, as it would alone.
        """
        failed = [one for one in exits if one.failure is not None]
        if any(one.is_success for one in exits) and not _fails_before_success(exits):
            return Decision(RestartAction.SUCCEED)
        if not failed:
            return Decision(RestartAction.CARRY_ON)
        lost = [one for one in failed if one.failure is ReplicaFailure.LOST]
        if lost and self.with_the_job and not self.retries_disabled:
            return self._restart_lost(lost[:1], everyone=True)
        if permanent := [one for one in failed if one.failure is ReplicaFailure.PERMANENT]:
            crashed_first = failed[0].failure is ReplicaFailure.CRASH
            return (
                self._restart_job(failed[0])
                if crashed_first
                else Decision(RestartAction.FAIL, (permanent[0],))
            )
        if crashed := [one for one in failed if one.failure is ReplicaFailure.CRASH]:
            return self._restart_job(crashed[0])
        return self._restart_lost(lost, everyone=False)

    def _restart_lost(self, lost: Sequence[ReplicaEnd], *, everyone: bool) -> Decision:
        for one in lost:
            if self.of_replicas[one.replica] >= MAX_WORKER_RESTARTS:
                return self._restart_job(one)
        self.of_replicas.update(one.replica for one in lost)
        return Decision(
            RestartAction.RESTART_JOB if everyone else RestartAction.RESTART_REPLICAS, tuple(lost)
        )

    def _restart_job(self, cause: ReplicaEnd) -> Decision:
        if self.retries_disabled or self.of_the_job >= MAX_JOB_RESTARTS:
            return Decision(RestartAction.FAIL, (cause,))
        self.of_the_job += 1
        self.of_replicas.clear()
        return Decision(RestartAction.RESTART_JOB, (cause,))


def _fails_before_success(exits: Sequence[ReplicaEnd]) -> bool:
    """Whether a program failed permanently before the chief finished."""
    for one in exits:
        if one.is_success:
            return False
        if one.failure is ReplicaFailure.PERMANENT:
            return True
    return False
