"""The presence of other replicas: waited for at the start, watched from then on; a replica that loses another exits.

Members start in any order, some minutes late, some never. While TensorFlow waits for them, in the constructor of
MultiWorkerMirroredStrategy, no Python runs: a replica could neither give up nor react to SIGTERM (TensorFlow 2.21; it
holds the interpreter's lock). So each waits here first: it answers at its address and asks the others.

TensorFlow's calls to a replica whose process is frozen, or whose machine has vanished, wait without
limit. A gRPC server sends a SETTINGS frame as soon as a connection is open (RFC 9113, 3.4). Waiting for
that frame distinguishes a working process from a mere listening socket.
"""

import errno
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum

from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole
from trainer.replicas.ending import end_for_loss, end_without_peer

SETTINGS_FRAME = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # an empty one
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS_FRAME
TYPE = slice(3, 4)  # in a frame's header, which is all of an empty frame
ANSWER_WITHIN_S = 5.0
EVERY_S = 2.0
FIRST_EVERY_S = 0.5  # while replicas are starting
LOST_AFTER_S = 45.0
"""A replica that may restart on its machine is lost after this long without an answer. With ANSWER_WITHIN_S and
EVERY_S the loss is noticed within the 60 s that are allowed."""
SILENT_AFTER_S = 18.0
"""Of one that trains in step; with the time between two questions, a frozen peer is lost after 25 s at most."""
ABSENT_AFTER_S = 3.0
"""Without a process, twice in a row: one that is started again cannot join a training in step."""
GREETED_WITHIN_S = 1.0
FREE_WITHIN_S = 30.0
"""What the process that a restarted replica replaces has, at most, to end and free its address."""
RETRY_EVERY_S = 0.2

_idle_s: list[Callable[[], float]] = [lambda: 0.0]


class PeerAnswer(StrEnum):
    """ABSENT: no process listens there. SILENT: no reply, as from a frozen process or a lost machine.

    REPLACED: another process than the one that the training began with answers.
    """

    ANSWERS = "answers"
    ABSENT = "absent"
    SILENT = "silent"
    REPLACED = "replaced"


def answer_of(address: str, *, within_s: float = ANSWER_WITHIN_S) -> PeerAnswer:
    """How the gRPC server at `host:port` answers; takes at most `within_s` for each of connecting and reading."""
    host, _, port = address.rpartition(":")
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), timeout=within_s) as connection,
            connection.makefile("rb") as reading,
        ):
            connection.sendall(PREFACE)
            is_settings = reading.read(len(SETTINGS_FRAME))[TYPE] == SETTINGS_FRAME[TYPE]
            return PeerAnswer.ANSWERS if is_settings else PeerAnswer.ABSENT
    except TimeoutError:
        return PeerAnswer.SILENT
    except OSError:  # refused, reset, or a name that is not known yet
        return PeerAnswer.ABSENT


def answers_of(addresses: Iterable[str]) -> dict[str, PeerAnswer]:
    """How each address answers; all are asked concurrently."""
    asked = tuple(addresses)
    with ThreadPoolExecutor(max_workers=max(1, min(32, len(asked)))) as pool:
        return dict(zip(asked, pool.map(answer_of, asked), strict=True))


@dataclass(kw_only=True)
class Attendance:
    """When each address last answered, in seconds of the monotonic clock, and how it answered last."""

    answered_at: dict[str, float]
    last: dict[str, PeerAnswer] = field(default_factory=dict)

    def note(self, answers: Mapping[str, PeerAnswer], now: float) -> None:
        self.last |= answers
        self.answered_at |= {
            address: now for address, answer in answers.items() if answer is PeerAnswer.ANSWERS
        }

    def gone_addresses(self, now: float, *, after_s: float = LOST_AFTER_S) -> tuple[str, ...]:
        """Those that have not answered for `after_s` seconds."""
        return tuple(address for address, then in self.answered_at.items() if now - then >= after_s)


def await_peers(cluster: ClusterSpec, names: Mapping[str, str], *, within_s: float) -> None:
    """Return once all of these replicas answer at the same time; exit with PEER_LOST after `within_s` seconds.

    `names` has the replicas' names by address.
    """
    deadline = time.monotonic() + within_s
    while missing := [peer for peer, answer in answers_of(names).items() if answer is not PeerAnswer.ANSWERS]:
        if time.monotonic() >= deadline:
            places = ", ".join(f"{names[address]} at {address}" for address in missing)
            end_without_peer(
                "peers_missing",
                f"{cluster.replica} waited {within_s:g} s (--peers_within_s) for {places} and gives up. Check that "
                f"each replica started and that they can connect to each other.",
                missing=missing,
            )
        time.sleep(FIRST_EVERY_S)


def watch_replicas(
    cluster: ClusterSpec,
    names: Mapping[str, str],
    lost: Callable[[Attendance, float], Sequence[str]],
    *,
    until: threading.Event | None = None,
    answers_of: Callable[[Mapping[str, str]], Mapping[str, PeerAnswer]] = answers_of,
) -> None:
    """From now on this process exits with PEER_LOST once `lost` names an address, whatever it is waiting for.

    `lost` gets the attendance of the replicas that `names` has by address, and the time. Each of them counts as
    answering now. `until` ends the watch; `answers_of` asks all of them.
    """
    ended = until or threading.Event()
    attendance = Attendance(answered_at=dict.fromkeys(names, time.monotonic()))

    def watch_peers() -> None:
        while not ended.wait(EVERY_S):
            answers, now = answers_of(names), time.monotonic()
            attendance.note(answers, now)
            for address in lost(attendance, now):
                if not ended.is_set():
                    is_replaced = attendance.last[address] is PeerAnswer.REPLACED
                    silent = f"it has not answered for {now - attendance.answered_at[address]:.0f} s"
                    end_for_loss(
                        cluster, names[address], "another process answers" if is_replaced else silent
                    )

    threading.Thread(target=watch_peers, name="peer-watch", daemon=True).start()


def lost_in_step(peers: Attendance, now: float) -> Sequence[str]:
    """The addresses of replicas whose loss ends a training in step: every one that does not come back by itself."""
    waits_s = {PeerAnswer.REPLACED: 0.0, PeerAnswer.ABSENT: ABSENT_AFTER_S, PeerAnswer.SILENT: SILENT_AFTER_S}
    return [
        address
        for answer, wait_s in waits_s.items()
        for address in peers.gone_addresses(now, after_s=wait_s)
        if peers.last[address] is answer
    ]


def lost_by_coordinator(
    peers: Attendance, now: float, *, workers: Collection[str], idle_s: float = 0.0
) -> Sequence[str]:
    """The addresses of replicas whose loss ends a training with parameter servers.

    A worker may leave and return, or stay away while others do its steps. A silent worker is a loss:
    TensorFlow waits for the step that it has. So is one that is away while no step is finished:
    TensorFlow takes workers back only when all are available.
    """
    gone = peers.gone_addresses(now)
    needed = [name for name in gone if name not in workers or peers.last[name] is PeerAnswer.SILENT]
    is_stuck = idle_s >= LOST_AFTER_S or len(gone) == len(workers)
    return needed or (gone if is_stuck else ())


def judge_by(idle_s: Callable[[], float]) -> None:
    """Ask `idle_s` from now on for the seconds since a step was last finished; 0 until then."""
    _idle_s[:] = [idle_s]


def gather_replicas(cluster: ClusterSpec, *, within_s: float) -> None:
    """Return when all replicas that train are up at the same time; exit with PEER_LOST after `within_s` seconds.

    Must be called before the strategy is built. Of a cluster that trains in step it frees this replica's address for
    that; TensorFlow's own wait, which is short then, has the same limit. A coordinating chief waits for parameter
    servers, too, and from then on exits with PEER_LOST once a loss ends the training, whatever it is waiting for.

    Raises:
        Unusable: the cluster has no chief to write checkpoints and the export.
    """
    if cluster.has_parameter_servers:
        needed = cluster.replicas_of(ReplicaRole.PARAMETER_SERVER, ReplicaRole.WORKER)
        workers = cluster.members[ReplicaRole.WORKER]
        await_peers(cluster, needed, within_s=within_s)
        watch_replicas(
            cluster,
            needed,
            lambda peers, now: lost_by_coordinator(peers, now, workers=workers, idle_s=_idle_s[0]()),
        )
    elif cluster.is_multi_worker:
        if ReplicaRole.CHIEF not in cluster.members:
            raise Unusable(
                f"{cluster.source} lists {len(cluster.trainers)} workers and no chief, which writes checkpoints and the "
                f"export. Rename the first worker to `chief`."
            )
        names = cluster.replicas_of(ReplicaRole.CHIEF, ReplicaRole.WORKER)
        address = cluster.members[cluster.role][cluster.index]
        del names[address]
        with answering_at(address):
            await_peers(cluster, names, within_s=within_s)
        _bound_registration(cluster, within_s)


@contextmanager
def answering_at(address: str) -> Iterator[None]:
    """Answer at `address` as a gRPC server does, so that the others count this replica as started.

    Raises:
        OSError: another process has the address, and has not freed it after FREE_WITHIN_S seconds.
    """
    host, _, port = address.rpartition(":")
    listener = _free_listener(host, int(port))

    def answer_connections() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return  # the context has ended
            with connection, suppress(OSError):
                connection.settimeout(GREETED_WITHIN_S)
                connection.recv(len(PREFACE))  # left unread, it would reset the connection
                connection.sendall(SETTINGS_FRAME)

    thread = threading.Thread(target=answer_connections, name="gathering", daemon=True)
    thread.start()
    with listener:
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _free_listener(host: str, port: int) -> socket.socket:
    """A listener as soon as the address is free: a restarted replica may start before its old process has ended."""
    deadline = time.monotonic() + FREE_WITHIN_S
    while True:
        try:
            return socket.create_server((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE and host:
                host = (
                    ""  # this machine has another name in the cluster: use all interfaces, as TensorFlow does
                )
            elif error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise
        time.sleep(RETRY_EVERY_S)


def _bound_registration(cluster: ClusterSpec, within_s: float) -> None:
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
            if role in {ReplicaRole.CHIEF, ReplicaRole.WORKER}
        ],
    )
