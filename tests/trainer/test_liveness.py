"""Whether a replica answers, asked of real sockets."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trainer.replicas.liveness import LOST_AFTER_S, Answer, Attendance, answer_of, await_all

SETTINGS_FRAME = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


@contextmanager
def listener(says: bytes | None) -> Iterator[str]:
    """Answers each connection with `says`; None: it listens and never accepts, as a frozen process."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(says or b"")
                    connection.recv(1024)

        thread = threading.Thread(target=answer)
        if says is not None:
            thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        if says is not None:
            thread.join(10)


@pytest.mark.parametrize(
    ("says", "answer"),
    [
        (SETTINGS_FRAME, Answer.ANSWERS),
        (b"", Answer.ABSENT),
        (b"HTTP/1.1 400 Bad Request\r\n", Answer.ABSENT),
        (None, Answer.SILENT),
    ],
)
def test_a_working_server_is_told_from_a_frozen_one_and_from_another_service(
    says: bytes | None, answer: Answer
) -> None:
    with listener(says) as address:
        assert answer_of(address, within_s=0.5 if says is None else 10) is answer


def test_where_nobody_listens_or_the_name_is_unknown_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert answer_of(address, within_s=0.5) is Answer.ABSENT
    assert answer_of("no-such-host.invalid:2222", within_s=0.5) in {Answer.ABSENT, Answer.SILENT}


def test_who_did_not_come_in_time_is_named() -> None:
    with listener(SETTINGS_FRAME) as here, socket.create_server(("127.0.0.1", 0)) as closed:
        away = f"127.0.0.1:{closed.getsockname()[1]}"
        closed.close()
        assert await_all((here,), within_s=5) == ()
        assert await_all((here, away), within_s=0.1) == (away,)


def test_only_who_once_answered_can_be_gone_and_only_after_a_while() -> None:
    attendance = Attendance(addresses=("a", "b", "c"))
    attendance.note({"a": Answer.ANSWERS, "b": Answer.ANSWERS, "c": Answer.ABSENT}, 0)
    assert attendance.missing == ("c",)
    attendance.note({"a": Answer.ABSENT, "b": Answer.SILENT, "c": Answer.ABSENT}, LOST_AFTER_S - 1)
    assert attendance.gone(LOST_AFTER_S - 1) == ()
    assert attendance.gone(LOST_AFTER_S) == ("a", "b")
    assert attendance.silent(LOST_AFTER_S) == ("b",)
    attendance.note({"a": Answer.ANSWERS}, LOST_AFTER_S + 1)
    assert attendance.gone(LOST_AFTER_S + 1) == ("b",)
