"""Waiting for the replicas of a smoke run: until all ended, or it is plain that they will not."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from trainmaster.inspect.smoke.replica import Replica

POLL_S = 0.1
LOOK_EACH_S = 1.0
BUSY_SHARE = 0.02  # of one processor: a process that waits for a peer uses less, one that computes much more


class State(Enum):
    """How a replica came to its end."""

    ENDED = "ended by itself"
    STOPPED = "stopped, as the service stops replicas when the chief has succeeded"
    HUNG = "waited, and used no processor"
    BUSY = "was still at work when the time was over"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Seconds: for the whole run, without work, to end behind the chief, and to end after a peer failed."""

    whole_s: float
    idle_s: float = 60
    behind_chief_s: float = 30
    after_failure_s: float = 60


@dataclass(kw_only=True)
class _Work:
    """When a replica was last seen to use the processor."""

    used_s: float = 0.0
    seen_at: float = field(default_factory=time.monotonic)
    worked_at: float = field(default_factory=time.monotonic)

    def idle_s(self, replica: Replica, now: float) -> float:
        """How long the replica was idle; it is looked at once a second."""
        if now - self.seen_at >= LOOK_EACH_S:
            self.look(replica)
        return now - self.worked_at

    def look(self, replica: Replica) -> None:
        now, used = time.monotonic(), replica.processor_seconds()
        if used is None or used - self.used_s > BUSY_SHARE * (now - self.seen_at):
            self.worked_at = now
        self.used_s, self.seen_at = used or 0.0, now


def watch(replicas: Sequence[Replica], limits: Limits) -> dict[str, State]:
    """How each replica ended, by role; none runs any more. The first replica is the chief."""
    started = time.monotonic()
    work = {replica.role: _Work() for replica in replicas}
    stopped: dict[str, State] = {}
    while running := [each for each in replicas if each.poll() is None and each.role not in stopped]:
        now = time.monotonic()
        for replica in running:
            idle_s = work[replica.role].idle_s(replica, now)
            state = _over(replica, replicas, now=now, started=started, idle_s=idle_s, limits=limits)
            if state is not None:
                stopped[replica.role] = state
        for replica in running:
            _stop(replica, stopped.get(replica.role))
        time.sleep(POLL_S)
    replicas[0].poll()
    return {replica.role: stopped.get(replica.role, State.ENDED) for replica in replicas}


def _stop(replica: Replica, state: State | None) -> None:
    match state:
        case State.HUNG | State.BUSY:
            replica.abort()
        case State.STOPPED:
            replica.end()
        case _:
            pass


def _over(
    replica: Replica,
    replicas: Sequence[Replica],
    *,
    now: float,
    started: float,
    idle_s: float,
    limits: Limits,
) -> State | None:
    """Why a replica that still runs is to be ended now; None: it is not."""
    chief, *_ = replicas
    if chief.poll() == 0 and chief.ended_at is not None and now - chief.ended_at > limits.behind_chief_s:
        return State.STOPPED
    failed = [
        peer.ended_at
        for peer in replicas
        if peer is not replica and peer.poll() and peer.ended_at is not None
    ]
    if failed and now - min(failed) > limits.after_failure_s:
        return State.HUNG
    if idle_s > limits.idle_s:
        return State.HUNG
    if now - started > limits.whole_s:
        long_s = max(2 * LOOK_EACH_S, min(limits.idle_s / 4, limits.whole_s / 2))
        return State.HUNG if idle_s > long_s else State.BUSY
    return None
