"""The start of a synchronous cluster, whose members start in any order, some minutes late, some never.

While TensorFlow waits for members, in the constructor of MultiWorkerMirroredStrategy, no Python runs: a
replica could neither give up nor react to SIGTERM (TensorFlow 2.21; it holds the interpreter's lock). So
this module waits first: it answers at this replica's address and asks the others.
"""

import errno
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from trainer.faults import Unusable
from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.liveness import PREFACE, SETTINGS_FRAME, await_peers

GREETED_WITHIN_S = 1.0
FREE_WITHIN_S = 30.0
"""What the process that a restarted replica replaces has, at most, to end and free its address."""
RETRY_EVERY_S = 0.2


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
    names = cluster.replicas_of(Role.CHIEF, Role.WORKER)
    own = cluster.members[cluster.role][cluster.index]
    del names[own]
    with answering(own):
        await_peers(cluster, names, within_s=within_s)
    _bound_registration(cluster, within_s)


@contextmanager
def answering(address: str, *, free_within_s: float = FREE_WITHIN_S) -> Iterator[None]:
    """Answer at `address` as a gRPC server does, so that the others count this replica as started.

    Raises:
        OSError: another process has the address, and has not freed it after `free_within_s` seconds.
    """
    host, _, port = address.rpartition(":")
    listener = _free_listener(host, int(port), within_s=free_within_s)

    def answer() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the context has ended
            with connection, suppress(OSError):
                connection.settimeout(GREETED_WITHIN_S)
                connection.recv(len(PREFACE))  # left unread, it would reset the connection
                connection.sendall(SETTINGS_FRAME)

    thread = threading.Thread(target=answer, name="gathering", daemon=True)
    thread.start()
    with listener:
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _free_listener(host: str, port: int, *, within_s: float) -> socket.socket:
    """A listener as soon as the address is free: a restarted replica may start before its old process has ended."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return _listener(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise
        time.sleep(RETRY_EVERY_S)


def _listener(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise
        # The cluster's name for this machine is not local to it: use all interfaces, as TensorFlow does.
        return socket.create_server(("", port))


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
