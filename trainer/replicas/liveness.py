"""Whether the processes of other replicas still answer, checked without TensorFlow.

TensorFlow's calls to a replica whose process is frozen, or whose machine has vanished, wait without
limit. A gRPC server sends a SETTINGS frame as soon as a connection is open (RFC 9113, 3.4). Waiting for
that frame distinguishes a working process from a mere listening socket.
"""

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn

from trainer.events import report
from trainer.replicas.ending import end_with, end_without_peer

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # and empty SETTINGS
FRAME_HEADER_BYTES = 9
TYPE_AT = 3  # in a frame's header
SETTINGS = 4
ANSWER_WITHIN_S = 5.0
EVERY_S = 2.0
FIRST_EVERY_S = 0.5  # while replicas are starting
LOST_AFTER_S = 45.0
"""A replica that answered before is lost after this long without an answer. With ANSWER_WITHIN_S and EVERY_S the loss
is noticed within the 60 s that are allowed; a replica that restarts on its machine is back sooner."""


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
            while len(header) < FRAME_HEADER_BYTES:
                if not (more := connection.recv(FRAME_HEADER_BYTES - len(header))):
                    return Answer.ABSENT
                header += more
            return Answer.ANSWERS if header[TYPE_AT] == SETTINGS else Answer.ABSENT
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
    """When each of `addresses` last answered, in seconds of the caller's clock."""

    addresses: tuple[str, ...]
    answered_at: dict[str, float] = field(default_factory=dict)
    last: dict[str, Answer] = field(default_factory=dict)

    def note(self, answers: Mapping[str, Answer], now: float) -> None:
        self.last |= answers
        self.answered_at |= {address: now for address, answer in answers.items() if answer is Answer.ANSWERS}

    @property
    def missing(self) -> tuple[str, ...]:
        """Those that have never answered."""
        return tuple(address for address in self.addresses if address not in self.answered_at)

    def gone(self, now: float, *, after_s: float = LOST_AFTER_S) -> tuple[str, ...]:
        """Those that once answered, and have not for `after_s` seconds."""
        return tuple(
            address
            for address in self.addresses
            if address in self.answered_at and now - self.answered_at[address] >= after_s
        )

    def silent(self, now: float, *, after_s: float = LOST_AFTER_S) -> tuple[str, ...]:
        """Those of `gone` that were silent last: TensorFlow would wait for them without limit."""
        return tuple(
            address for address in self.gone(now, after_s=after_s) if self.last[address] is Answer.SILENT
        )


def await_all(
    addresses: tuple[str, ...],
    *,
    within_s: float,
    asked: Callable[[Iterable[str]], Mapping[str, Answer]] = answers_of,
) -> tuple[str, ...]:
    """Wait at most `within_s` seconds until each has answered once; returns those that have not."""
    attendance = Attendance(addresses=addresses)
    deadline = time.monotonic() + within_s
    while attendance.missing:
        attendance.note(asked(attendance.missing), time.monotonic())
        if not attendance.missing or time.monotonic() >= deadline:
            break
        time.sleep(FIRST_EVERY_S)
    return attendance.missing


class End(StrEnum):
    """Why a replica that waits for its chief exits."""

    DONE = "the chief exported the model and exited"
    LOST = "the chief is gone"
    NEVER_CAME = "the chief did not start within --peers_within_s"


def ending(
    chief: Attendance, now: float, *, has_export: bool, waited_s: float, peers_within_s: float
) -> End | None:
    """Why to stop waiting, or None; a chief that restarts soon finds its servers unchanged."""
    if chief.missing:
        return End.NEVER_CAME if waited_s >= peers_within_s else None
    if has_export and chief.last[chief.addresses[0]] is Answer.ABSENT:
        return End.DONE
    return End.LOST if chief.gone(now) else None


def carry_out(end: End, replica: str) -> NoReturn:
    """Report why, and exit."""
    message = f"{replica} exits: {end}"
    match end:
        case End.DONE:
            report("serving_finished", f"{replica} finished: {end}", replica=replica)
            end_with(0)
        case End.LOST:
            end_without_peer("peer_lost", message, replica=replica, peer="chief-0")
        case End.NEVER_CAME:
            end_without_peer("peers_missing", message, replica=replica)
