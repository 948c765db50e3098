"""Whether the processes of other replicas still answer, asked from outside of TensorFlow.

TensorFlow's own calls to a replica whose process is frozen, or whose machine has gone without a
word, wait without limit. A gRPC server speaks first: as soon as a connection is open it sends a
SETTINGS frame (RFC 9113, 3.4). Waiting for that frame tells a process that works from one that only
has a listening socket, and it needs no TensorFlow.
"""

import socket
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn

from trainer.ending import end_with, end_without_peer
from trainer.events import report

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"  # and empty SETTINGS
FRAME_HEADER_BYTES = 9
TYPE_AT = 3  # in a frame's header
SETTINGS = 4
ANSWER_WITHIN_S = 5.0
EVERY_S = 2.0
FIRST_EVERY_S = 0.5  # while all are only starting
LOST_AFTER_S = 45.0
"""Without an answer a replica that had one is lost. With ANSWER_WITHIN_S and EVERY_S it stays below the 60 s after
which nobody may still wait, and a replica that is restarted on its machine comes back sooner."""


class Answer(StrEnum):
    """ABSENT: nobody listens there now. SILENT: nothing came back, as of a frozen process or a lost machine."""

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
    """How each answers, asked at once."""
    asked = tuple(addresses)
    with ThreadPoolExecutor(max_workers=max(1, min(32, len(asked)))) as pool:
        return dict(zip(asked, pool.map(answer_of, asked), strict=True))


@dataclass(kw_only=True)
class Attendance:
    """Since when each of `addresses` has not answered, by a clock in seconds that the caller keeps."""

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
        """Those of `gone` whose last answer was silence: what waits for them waits without limit."""
        return tuple(
            address for address in self.gone(now, after_s=after_s) if self.last[address] is Answer.SILENT
        )


def await_all(
    addresses: tuple[str, ...],
    *,
    within_s: float,
    asked: Callable[[Iterable[str]], Mapping[str, Answer]] = answers_of,
) -> tuple[str, ...]:
    """Wait until each has answered once, at most `within_s` seconds; those that have not."""
    attendance = Attendance(addresses=addresses)
    deadline = time.monotonic() + within_s
    while attendance.missing:
        attendance.note(asked(attendance.missing), time.monotonic())
        if not attendance.missing or time.monotonic() >= deadline:
            break
        time.sleep(FIRST_EVERY_S)
    return attendance.missing


class End(StrEnum):
    """Why a replica that waits on its chief ends by itself."""

    DONE = "the chief has exported the model and is gone"
    LOST = "the chief is gone"
    NEVER_CAME = "the chief has not come within --peers_within_s"


def ending(
    chief: Attendance, now: float, *, has_export: bool, waited_s: float, peers_within_s: float
) -> End | None:
    """Whether to wait no longer; a chief that is restarted soon finds its servers as it left them."""
    if chief.missing:
        return End.NEVER_CAME if waited_s >= peers_within_s else None
    if has_export and chief.last[chief.addresses[0]] is Answer.ABSENT:
        return End.DONE
    return End.LOST if chief.gone(now) else None


def carry_out(end: End, replica: str) -> NoReturn:
    """Say why, and end this process."""
    message = f"{replica} ends: {end}"
    match end:
        case End.DONE:
            report("serving_finished", f"{replica} is done: {end}", replica=replica)
            end_with(0)
        case End.LOST:
            end_without_peer("peer_lost", message, replica=replica, peer="chief-0")
        case End.NEVER_CAME:
            end_without_peer("peers_missing", message, replica=replica)
