"""The start of a synchronous cluster, whose members start in any order, some minutes late, some never.

While TensorFlow waits for members, in the constructor of MultiWorkerMirroredStrategy, no Python runs: a
replica could neither give up nor react to SIGTERM (TensorFlow 2.21; it holds the interpreter's lock). So
this module waits first: it listens at this replica's address and connects to the others'.
"""

import socket
import time

from trainer.faults import Unusable
from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.ending import end_without_peer

KNOCK_EVERY_S = 0.25
OPENS_WITHIN_S = 2.0


def gather(cluster: Cluster, *, within_s: float) -> None:
    """Return when all training replicas are up at the same time; exit with PEER_LOST after `within_s` seconds.

    Must be called before the strategy is built; frees the address for it. TensorFlow's own wait, which is
    short then, has the same limit.

    Raises:
        Unusable: the cluster has no chief to write checkpoints and the export.
    """
    if not cluster.is_multi_worker:
        return
    if Role.CHIEF not in cluster.members:
        raise Unusable(
            f"{cluster.source} lists {len(cluster.trainers)} workers and no chief, which writes checkpoints and the "
            f"export. Rename the first worker to `chief`."
        )
    deadline = time.monotonic() + within_s
    own = cluster.members[cluster.role][cluster.index]
    with _listener(own) as listener:
        while missing := [address for address in cluster.trainers if address != own and not _opens(address)]:
            if time.monotonic() > deadline:
                end_without_peer(
                    "peers_missing",
                    f"{cluster.replica} gives up after {within_s:g} s (--peers_within_s): no replica answers at "
                    f"{', '.join(missing)}. Check that these replicas started and that this one can connect to them.",
                    replica=cluster.replica,
                    missing=missing,
                )
            _answer(listener, KNOCK_EVERY_S)
    _bound_registration(cluster, within_s)


def _listener(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    try:
        return socket.create_server((host, int(port)))
    except OSError:
        # The cluster's name for this machine is not local to it: use all interfaces, as TensorFlow does.
        return socket.create_server(("", int(port)))


def _answer(listener: socket.socket, seconds: float) -> None:
    """Accept connections for that many seconds, so that the queue never fills."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        listener.settimeout(left)
        try:
            listener.accept()[0].close()
        except TimeoutError:
            return


def _opens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=OPENS_WITHIN_S).close()
    except OSError:
        return False
    return True


def _bound_registration(cluster: Cluster, within_s: float) -> None:
    """Configure the coordination service as MultiWorkerMirroredStrategy would, except for its timeout.

    The strategy keeps a configuration that already exists.
    """
    from tensorflow.compiler.xla.tsl.protobuf import coordination_config_pb2 as config
    from tensorflow.python.eager import context

    context.context().configure_coordination_service(
        service_type="standalone",
        service_leader="/job:chief/replica:0/task:0",
        cluster_register_timeout_in_ms=int(within_s * 1000),
        coordinated_jobs=[
            config.CoordinatedJob(name=str(role), num_tasks=len(addresses))
            for role, addresses in cluster.members.items()
            if role in {Role.CHIEF, Role.WORKER}
        ],
    )
