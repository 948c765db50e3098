"""The part of workers and parameter servers: they serve the chief until they are ended, or it is gone for good."""

import time
from enum import StrEnum
from pathlib import Path

import tensorflow as tf

from trainer.cluster import Cluster, Role
from trainer.ending import end_with, end_without_peer
from trainer.events import report
from trainer.liveness import EVERY_S, Answer, Attendance, answers_of
from trainer.manifest import MANIFEST_NAME
from trainer.strategy import resolver


class End(StrEnum):
    """Why a server ends by itself."""

    DONE = "the chief has exported the model and is gone"
    LOST = "the chief is gone"
    NEVER_CAME = "the chief has not come within --peers_within_s"


def ending(
    chief: Attendance, now: float, *, has_export: bool, waited_s: float, peers_within_s: float
) -> End | None:
    """Whether to serve no longer; a chief that is restarted soon finds its servers as it left them."""
    if chief.missing:
        return End.NEVER_CAME if waited_s >= peers_within_s else None
    if has_export and chief.last[chief.addresses[0]] is Answer.ABSENT:
        return End.DONE
    return End.LOST if chief.gone(now) else None


def serve(cluster: Cluster, *, model: Path, processors: int, peers_within_s: float) -> None:
    """Serve the chief's requests, and end this process with 0 after its export, else with PEER_LOST.

    `model` is the directory that the chief exports to. A restarted chief takes back servers that
    run, and a running chief takes back a restarted worker. TensorFlow's servers cannot be stopped:
    this does not return.
    """
    found = resolver(cluster)
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=processors, inter_op_parallelism_threads=max(2, processors)
    )
    exported_before = _stamp(model)
    server = tf.distribute.Server(
        found.cluster_spec(), job_name=str(cluster.role), task_index=cluster.index, config=config
    )
    report("serving", f"{cluster.replica} serves at {server.target}", replica=cluster.replica)
    chief = Attendance(addresses=cluster.members[Role.CHIEF])
    started = time.monotonic()
    end = None
    while end is None:
        answers, now = answers_of(chief.addresses), time.monotonic()
        chief.note(answers, now)
        end = ending(
            chief,
            now,
            has_export=(stamp := _stamp(model)) is not None and stamp != exported_before,
            waited_s=now - started,
            peers_within_s=peers_within_s,
        )
        time.sleep(EVERY_S)
    _end(cluster, end)


def _end(cluster: Cluster, end: End) -> None:
    message = f"{cluster.replica} ends: {end}"
    match end:
        case End.DONE:
            report("serving_finished", f"{cluster.replica} is done: {end}", replica=cluster.replica)
            end_with(0)
        case End.LOST:
            end_without_peer("peer_lost", message, replica=cluster.replica, peer="chief-0")
        case End.NEVER_CAME:
            end_without_peer("peers_missing", message, replica=cluster.replica)


def _stamp(model: Path) -> int | None:
    """When an export was finished in this directory, in nanoseconds; None: none was."""
    try:
        return (model / MANIFEST_NAME).stat().st_mtime_ns
    except FileNotFoundError:
        return None
