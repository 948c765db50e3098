"""Whether a replica answers, asked of real sockets."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.trainer.conftest import ROOT
from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole
from trainer.replicas.liveness import (
    ABSENT_AFTER_S,
    LOST_AFTER_S,
    SETTINGS_FRAME,
    SILENT_AFTER_S,
    Attendance,
    PeerAnswer,
    answer_of,
    answering_at,
    gather_replicas,
    lost_by_coordinator,
    lost_in_step,
)
from trainstack.process.ports import free_ports


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
        (SETTINGS_FRAME, PeerAnswer.ANSWERS),
        (b"", PeerAnswer.ABSENT),
        (b"HTTP/1.1 400 Bad Request\r\n", PeerAnswer.ABSENT),
        (None, PeerAnswer.SILENT),
    ],
)
def test_a_working_server_is_told_from_a_frozen_one_and_from_another_service(
    says: bytes | None, answer: PeerAnswer
) -> None:
    with listener(says) as address:
        assert answer_of(address, within_s=0.5 if says is None else 10) is answer


def test_an_unused_port_and_an_unknown_name_count_as_absent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert answer_of(address, within_s=0.5) is PeerAnswer.ABSENT
    assert answer_of("no-such-host.invalid:2222", within_s=0.5) in {PeerAnswer.ABSENT, PeerAnswer.SILENT}


GATHERS = """
import sys
from trainer.replicas.cluster import ClusterSpec
from trainer.replicas.liveness import await_peers

here, away = sys.argv[1:]
await_peers(ClusterSpec(), {here: "worker-0"}, within_s=60)
await_peers(ClusterSpec(), {here: "worker-0", away: "worker-1"}, within_s=0.1)
"""


@pytest.mark.slow
def test_a_replica_that_does_not_start_in_time_is_named_and_the_wait_ends_with_134() -> None:
    (port,) = free_ports(1)
    with listener(SETTINGS_FRAME) as here:
        done = subprocess.run(
            [sys.executable, "-c", GATHERS, here, f"127.0.0.1:{port}"],
            cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 134, done.stderr
    event = json.loads(done.stdout)
    assert (event["event"], event["missing"]) == ("peers_missing", [f"127.0.0.1:{port}"])
    assert f"for worker-1 at 127.0.0.1:{port} and gives up" in event["message"]


def test_a_waiting_replica_answers_as_a_grpc_server_does() -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    for _ in range(2):  # the address is free again
        with answering_at(address):
            assert [answer_of(address) for _ in range(3)] == [PeerAnswer.ANSWERS] * 3
        assert answer_of(address) is PeerAnswer.ABSENT


TAKES = """
import socket, sys
from trainer import survive
from trainer.replicas.cluster import ClusterSpec, ReplicaRole

taker, address = sys.argv[1:]
with survive.end_on_error():
    if taker == "socket":
        socket.create_server(("127.0.0.1", int(address.rpartition(":")[2])))
    from trainer.devices.strategy import strategy_for

    members = {ReplicaRole.CHIEF: (address,), ReplicaRole.WORKER: ("127.0.0.1:1",)}
    strategy_for(ClusterSpec(members=members), mirrored=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("taker", ["socket", "TensorFlow"])
def test_a_replica_whose_port_is_taken_says_so_and_ends_with_134(taker: str) -> None:
    with listener(None) as address:
        done = subprocess.run(
            [sys.executable, "-c", TAKES, taker, address],
            cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert done.returncode == 134, done.stderr
    event = json.loads(done.stdout)
    assert (event["event"], event["severity"]) == ("address_taken", "ERROR")
    assert "another process has this replica's address" in event["message"]


def test_a_replica_that_trains_in_step_is_lost_once_no_process_is_there_and_later_if_it_is_silent() -> None:
    peers = Attendance(answered_at=dict.fromkeys("ab", 0.0))
    peers.note({"a": PeerAnswer.SILENT, "b": PeerAnswer.ABSENT}, ABSENT_AFTER_S - 1)
    assert list(lost_in_step(peers, ABSENT_AFTER_S - 1)) == [], "one lost connection"
    assert list(lost_in_step(peers, ABSENT_AFTER_S)) == ["b"]
    peers.note({"b": PeerAnswer.ANSWERS}, ABSENT_AFTER_S)
    assert list(lost_in_step(peers, SILENT_AFTER_S - 1)) == []
    peers.note({"b": PeerAnswer.ANSWERS}, SILENT_AFTER_S)
    assert list(lost_in_step(peers, SILENT_AFTER_S)) == ["a"]
    peers.note({"a": PeerAnswer.ANSWERS, "b": PeerAnswer.REPLACED}, SILENT_AFTER_S + 1)
    assert list(lost_in_step(peers, SILENT_AFTER_S + 1)) == ["b"], "a process that was restarted alone"


ANSWERS, ABSENT, SILENT = PeerAnswer.ANSWERS, PeerAnswer.ABSENT, PeerAnswer.SILENT


@pytest.mark.parametrize(
    ("servers", "workers", "after_s", "idle_s", "expected"),
    [
        ((ANSWERS,), (ANSWERS, ANSWERS), LOST_AFTER_S, 999, None),
        ((ABSENT, ANSWERS), (ANSWERS,), LOST_AFTER_S - 1, 0, None),
        ((ANSWERS, ABSENT), (ANSWERS,), LOST_AFTER_S, 0, "ps-1"),
        ((SILENT,), (ANSWERS,), LOST_AFTER_S - 1, 999, None),
        ((SILENT,), (ANSWERS,), LOST_AFTER_S, 0, "ps-0"),
        ((ANSWERS,), (ANSWERS, SILENT), LOST_AFTER_S, 0, "worker-1"),
        ((ANSWERS,), (ABSENT, SILENT, ANSWERS), LOST_AFTER_S, 0, "worker-1"),
        ((ANSWERS,), (ABSENT, ANSWERS), LOST_AFTER_S, 0, None),
        ((ANSWERS,), (ABSENT, ANSWERS), LOST_AFTER_S, LOST_AFTER_S, "worker-0"),
        ((ANSWERS,), (ABSENT, ABSENT), LOST_AFTER_S - 1, 999, None),
        ((ANSWERS,), (ABSENT, ABSENT), LOST_AFTER_S, 0, "worker-0"),
    ],
)
def test_a_coordinator_tolerates_an_absent_worker_but_no_lost_parameter_server(
    servers: tuple[PeerAnswer, ...],
    workers: tuple[PeerAnswer, ...],
    after_s: float,
    idle_s: float,
    expected: str | None,
) -> None:
    """All answered at 0 s, and answer as given `after_s` seconds later."""
    answers = {f"ps-{number}": answer for number, answer in enumerate(servers)}
    away = {f"worker-{number}": answer for number, answer in enumerate(workers)}
    peers = Attendance(answered_at=dict.fromkeys(answers | away, 0.0))
    peers.note(answers | away, after_s)
    found = lost_by_coordinator(peers, after_s, workers=away, idle_s=idle_s)
    assert (found[0] if found else None) == expected


def test_a_cluster_without_a_chief_is_refused_and_a_single_replica_does_not_wait() -> None:
    workers = ClusterSpec(
        role=ReplicaRole.WORKER,
        members={ReplicaRole.WORKER: ("127.0.0.1:1", "127.0.0.1:2")},
        source="TF_CONFIG",
    )
    with pytest.raises(Unusable, match="lists 2 workers and no chief"):
        gather_replicas(workers, within_s=0.0)
    gather_replicas(ClusterSpec(), within_s=0.0)
