"""A job that floods the stack with connections keeps neither the stack nor other jobs from theirs."""

import contextlib
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.waiting import is_closed, wait_until

from .conftest import Replica, job_gateways

CONNECT = b"CONNECT storage.googleapis.com:443 HTTP/1.1\r\n\r\n"


@pytest.fixture
def networks(replica: Replica, tmp_path: Path) -> Iterator[list[int]]:
    yield from job_gateways(replica, tmp_path, 2)


def answer(port: int) -> bytes:
    """The status line of an unauthenticated request, which a gateway with room answers with 407."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(CONNECT)
        return connection.recv(100).split(b"\r\n")[0]


def test_a_job_that_fills_its_share_of_the_gateway_leaves_that_of_another_job(networks: list[int]) -> None:
    flooded, other = networks
    with contextlib.ExitStack() as held:
        for _ in range(500):
            connection = socket.create_connection(("127.0.0.1", flooded), timeout=60)
            held.enter_context(connection)
            connection.sendall(CONNECT[:20])
        wait_until(lambda: answer(flooded) == b"HTTP/1.1 503 Service Unavailable")
        assert answer(other) == b"HTTP/1.1 407 Proxy Authentication Required"
    wait_until(lambda: answer(flooded) == b"HTTP/1.1 407 Proxy Authentication Required")


def test_a_replica_that_floods_its_metadata_server_is_disconnected(replica: Replica) -> None:
    host, port = replica.environment["GCE_METADATA_HOST"].split(":")
    request = urllib.request.Request(f"http://{host}:{port}/", headers={"Metadata-Flavor": "Google"})
    with contextlib.ExitStack() as held:
        connections = [socket.create_connection((host, int(port)), timeout=60) for _ in range(250)]
        for connection in connections:
            held.enter_context(connection)
        ended = [each for each in connections[-50:] if is_closed(each)]
        assert len(ended) == 50
        connections[0].sendall(
            f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nMetadata-Flavor: Google\r\n\r\n".encode()
        )
        assert connections[0].recv(100).startswith(b"HTTP/1.1 200")
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.status == 200
