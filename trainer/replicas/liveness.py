"""Whether the processes of other replicas still answer, checked without TensorFlow; a replica that lost one exits.

TensorFlow's calls to a replica whose process is frozen, or whose machine has vanished, wait without
limit. A gRPC server sends a SETTINGS frame as soon as a connection is open (RFC 9113, 3.4). Waiting for
that frame distinguishes a working process from a mere listening socket.
"""

import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum

from trainer.replicas.cluster import Cluster
from trainer.replicas.ending import end_for_loss, end_without_peer

SETTINGS_FRAME = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # an empty one
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SETTINGS_FRAME
TYPE_AT = 3  # in a frame's header, which is all of an empty frame
ANSWER_WITHIN_S = 5.0
EVERY_S = 2.0
FIRST_EVERY_S = 0.5  # while replicas are starting
LOST_AFTER_S = 45.0
"""A replica that may restart on its machine is lost after this long without an answer. With ANSWER_WITHIN_S and
EVERY_S the loss is noticed within the 60 s that are allowed."""


class Answer(StrEnum):
    """ABSENT: no process listens there. SILENT: no reply, as from a frozen process or a lost machine."""

    ANSWERS = "answers"
    ABSENT = "absent"
    SILENT = "silent"


def answer_of(address: str, *, within_s: float = ANSWER_WITHIN_S) -> Answer:
    """How the gRPC server at `host:port` answers; takes at most `within_s` for each of connecting and reading."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=within_s) as connection:
            connection.sendall(PREFACE)
            header = b""
            while len(header) < len(SETTINGS_FRAME):
                if not (more := connection.recv(len(SETTINGS_FRAME) - len(header))):
                    return Answer.ABSENT
                header += more
            return Answer.ANSWERS if header[TYPE_AT] == SETTINGS_FRAME[TYPE_AT] else Answer.ABSENT
    except TimeoutError:
        return Answer.SILENT
    except OSError:  # refused, reset, or a name that is not known yet
        return Answer.ABSENT


def answers_of(addresses: Iterable[str]) -> dict[str, Answer]:
    """How each address answers; all are asked concurrently."""
    asked = tuple(addresses)
    with ThreadPoolExecutor(max_workers=max(1, min(32, len(asked)))) as pool:
        return dict(zip(asked, pool.map(answer_of, asked), strict=True))


@dataclass(kw_only=True)
class Attendance:
    """When each address last answered, in seconds of the monotonic clock, and how it answered last."""

    answered_at: dict[str, float]
    last: dict[str, Answer] = field(default_factory=dict)

    def note(self, answers: Mapping[str, Answer], now: float) -> None:
        self.last |= answers
        self.answered_at |= {address: now for address, answer in answers.items() if answer is Answer.ANSWERS}

    def gone(self, now: float, *, after_s: float = LOST_AFTER_S) -> tuple[str, ...]:
        """Those that have not answered for `after_s` seconds."""
        return tuple(address for address, then in self.answered_at.items() if now - then >= after_s)


def await_peers(cluster: Cluster, names: Mapping[str, str], *, within_s: float) -> None:
    """Return once all of these replicas answer at the same time; exit with PEER_LOST after `within_s` seconds.

    `names` has the replicas' names by address.
    """
    deadline = time.monotonic() + within_s
    while missing := [each for each, answer in answers_of(names).items() if answer is not Answer.ANSWERS]:
        if time.monotonic() >= deadline:
            places = ", ".join(f"{names[address]} at {address}" for address in missing)
            end_without_peer(
                "peers_missing",
                f"{cluster.replica} waited {within_s:g} s (--peers_within_s) for {places} and gives up. Check that "
                f"each replica started and that they can connect to each other.",
                replica=cluster.replica,
                missing=missing,
            )
        time.sleep(FIRST_EVERY_S)


def watch(
    cluster: Cluster,
    names: Mapping[str, str],
    lost: Callable[[Attendance, float], Sequence[str]],
    *,
    until: threading.Event | None = None,
) -> None:
    """From now on this process exits with PEER_LOST once `lost` names an address, whatever it is waiting for.

    `lost` gets the attendance of the replicas that `names` has by address, and the time. Each of them counts as
    answering now. `until` ends the watch.
    """
    ended = until or threading.Event()
    attendance = Attendance(answered_at=dict.fromkeys(names, time.monotonic()))

    def run() -> None:
        while not ended.wait(EVERY_S):
            answers, now = answers_of(names), time.monotonic()
            attendance.note(answers, now)
            for address in lost(attendance, now):
                if not ended.is_set():
                    silence_s = now - attendance.answered_at[address]
                    why = (
                        f"it has not answered for {silence_s:.0f} s"
                        if silence_s
                        else "another process answers"
                    )
                    end_for_loss(cluster, names[address], why)

    threading.Thread(target=run, name="peer-watch", daemon=True).start()
