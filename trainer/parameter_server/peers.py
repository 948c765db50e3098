"""When the chief has lost what it cannot do without. It is asked in a thread: calls of TensorFlow wait without limit."""

import os
import sys
import threading
import time

from trainer.cluster import Cluster, Role
from trainer.liveness import (
    EVERY_S,
    LOST_AFTER_S,
    LOST_STATUS,
    Answer,
    Attendance,
    PeerLost,
    answers_of,
    await_all,
)

ABSENT_AFTER_S = 10.0
"""A parameter server that nobody is behind any more is lost sooner than a silent one: its variables are gone for good."""


def await_peers(cluster: Cluster, *, within_s: float) -> None:
    """Wait until every parameter server and every worker has answered once.

    Raises:
        PeerLost: some had not after `within_s` seconds.
    """
    names = _names(cluster)
    if missing := await_all(tuple(names), within_s=within_s):
        raise PeerLost(
            f"After {within_s:g} s {', '.join(f'{names[address]} ({address})' for address in missing)} had not come."
        )


def guard(cluster: Cluster) -> None:
    """From now on this process ends with LOST_STATUS once `lost` says so, whatever it is waiting for."""
    threading.Thread(target=_watch, args=(cluster,), name="peers", daemon=True).start()


def lost(servers: Attendance, workers: Attendance, now: float) -> str | None:
    """What makes it useless to wait on, or None.

    A worker may go and come back. A silent one may not: TensorFlow waits for the step that it has.
    """
    absent = tuple(
        address
        for address in servers.gone(now, after_s=ABSENT_AFTER_S)
        if servers.last[address] is Answer.ABSENT
    )
    if gone := tuple(dict.fromkeys(absent + servers.gone(now))):
        return f"the parameter server at {', '.join(gone)} is gone"
    if silent := workers.silent(now):
        return f"the worker at {', '.join(silent)} is connected and has not answered for {LOST_AFTER_S:g} s"
    if len(workers.gone(now)) == len(workers.addresses):
        return f"no worker has answered for {LOST_AFTER_S:g} s"
    return None


def _watch(cluster: Cluster) -> None:
    servers = Attendance(addresses=cluster.members[Role.PARAMETER_SERVER])
    workers = Attendance(addresses=cluster.members[Role.WORKER])
    while True:
        answers, now = answers_of(servers.addresses + workers.addresses), time.monotonic()
        for attendance in (servers, workers):
            attendance.note({address: answers[address] for address in attendance.addresses}, now)
        if (why := lost(servers, workers, now)) is not None:
            print(f"{cluster.replica} ends: {why}.", file=sys.stderr, flush=True)  # noqa: T201 - the job's log
            os._exit(LOST_STATUS)
        time.sleep(EVERY_S)


def _names(cluster: Cluster) -> dict[str, str]:
    return {
        address: f"{role}-{index}"
        for role in (Role.PARAMETER_SERVER, Role.WORKER)
        for index, address in enumerate(cluster.members[role])
    }
