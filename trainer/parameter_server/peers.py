"""Detects when the chief has lost a replica that it needs. Runs in a thread: TensorFlow's calls wait without limit."""

import threading
import time
from collections.abc import Callable

from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.ending import end_without_peer
from trainer.replicas.liveness import EVERY_S, LOST_AFTER_S, Answer, Attendance, answers_of, await_all
from trainer.replicas.peers import end_for_loss

ABSENT_AFTER_S = 10.0
"""A parameter server without a process is lost sooner than a silent one: its variables are gone for good."""


def await_peers(cluster: Cluster, *, within_s: float) -> None:
    """Return when every parameter server and every worker has answered once, or exit with PEER_LOST."""
    names = cluster.replicas_of(Role.PARAMETER_SERVER, Role.WORKER)
    if missing := await_all(tuple(names), within_s=within_s):
        end_without_peer(
            "peers_missing",
            f"{cluster.replica} waited {within_s:g} s (--peers_within_s) for "
            f"{', '.join(f'{names[address]} at {address}' for address in missing)} and gives up. Check that each "
            f"replica started and that they can connect to each other.",
            replica=cluster.replica,
            waited_s=within_s,
        )


def guard(cluster: Cluster, *, idle_s: Callable[[], float] = lambda: 0.0) -> None:
    """From now on this process exits with PEER_LOST once `loss` finds one, whatever it is waiting for.

    `idle_s` returns the seconds since a step was last finished.
    """
    threading.Thread(target=_watch, args=(cluster, idle_s), name="peers", daemon=True).start()


def loss(
    servers: Attendance, workers: Attendance, now: float, *, idle_s: float = 0.0
) -> tuple[str, str] | None:
    """The address of a replica whose loss ends the run, and what happened to it; or None.

    A worker may leave and return, or stay away while others do its steps. A silent worker is a loss:
    TensorFlow waits for the step that it has. So is one that is away while no step is finished:
    TensorFlow takes workers back only when all are available.
    """
    for address in servers.gone(now, after_s=ABSENT_AFTER_S):
        if servers.last[address] is Answer.ABSENT:
            return address, "it is not running, so its variables are lost"
    for address in (*servers.gone(now), *workers.silent(now)):
        return address, f"it has not answered for {LOST_AFTER_S:g} s"
    gone = workers.gone(now)
    if gone and (idle_s >= LOST_AFTER_S or len(gone) == len(workers.addresses)):
        return gone[0], f"it has been away for {LOST_AFTER_S:g} s, and no step was finished meanwhile"
    return None


def _watch(cluster: Cluster, idle_s: Callable[[], float]) -> None:
    servers = Attendance(addresses=cluster.members[Role.PARAMETER_SERVER])
    workers = Attendance(addresses=cluster.members[Role.WORKER])
    names = cluster.replicas_of(Role.PARAMETER_SERVER, Role.WORKER)
    while True:
        answers, now = answers_of(names), time.monotonic()
        for attendance in (servers, workers):
            attendance.note({address: answers[address] for address in attendance.addresses}, now)
        if (found := loss(servers, workers, now, idle_s=idle_s())) is not None:
            address, why = found
            end_for_loss(cluster, names[address], why)
        time.sleep(EVERY_S)
