"""From the network of a job, the gateway is the only way out: for http:// too, and never to this machine itself."""

import base64
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Replica, job_gateways
from .test_egress import TinyProxy, proxies, proxy, refusal
from .test_gateway import status

__all__ = ["proxies"]
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.fixture
def index() -> Iterator[TinyProxy]:
    """A package index on this machine, which jobs may reach."""
    with proxy(RESPONSE) as running:
        yield running


@pytest.fixture
def listener(replica: Replica, tmp_path: Path, index: TinyProxy) -> Iterator[int]:
    """The port of a gateway as the network of a job has it."""
    for (port,) in job_gateways(replica, tmp_path, 1, {("127.0.0.1", index.port)}):
        yield port


def asked(port: int, line: str, token: str) -> socket.socket:
    """A connection on which the request was sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    shown = base64.b64encode(f"any:{token}".encode()).decode()
    fields = f"Host: h\r\nAccept: */*\r\nProxy-Authorization: Basic {shown}\r\nProxy-Connection: keep-alive"
    connection.sendall(f"{line} HTTP/1.1\r\n{fields}\r\n\r\n".encode())
    return connection


def test_an_http_request_arrives_without_the_gateways_credentials(
    replica: Replica, proxies: pytest.MonkeyPatch, listener: int, index: TinyProxy
) -> None:
    line = f"GET http://127.0.0.1:{index.port}/simple/?page=1"
    with asked(listener, line, replica.identity.token) as connection:
        connection.sendall(b"x")  # the tiny server sends it back
        assert refusal(connection).startswith("HTTP/1.1 200 OK\r\n")
    assert (
        index.head == b"GET /simple/?page=1 HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize("scheme", ["http://", ""])
def test_an_http_request_goes_by_way_of_the_users_own_proxy_with_its_credentials(
    replica: Replica, proxies: pytest.MonkeyPatch, listener: int, scheme: str
) -> None:
    with proxy(RESPONSE) as users:
        proxies.setenv("http_proxy", f"{scheme}me:se%20cret@127.0.0.1:{users.port}")
        with asked(listener, "GET http://nowhere.invalid/a", replica.identity.token) as connection:
            connection.sendall(b"x")
            assert refusal(connection).startswith("HTTP/1.1 200 OK\r\n")
    credentials = base64.b64encode(b"me:se cret").decode()
    assert users.head.startswith(b"GET http://nowhere.invalid/a HTTP/1.1\r\n")
    assert f"\r\nProxy-Authorization: Basic {credentials}\r\n".encode() in users.head
    assert replica.identity.token.encode() not in users.head


@pytest.mark.parametrize("method", ["CONNECT", "GET"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:7f00:1]", "169.254.169.254"])  # fmt: skip
def test_an_address_of_this_machine_is_refused_even_by_way_of_a_proxy(
    replica: Replica, proxies: pytest.MonkeyPatch, listener: int, method: str, host: str
) -> None:
    proxies.setenv("http_proxy", "http://127.0.0.1:9")
    proxies.setenv("https_proxy", "http://127.0.0.1:9")
    target = f"{host}:1" if method == "CONNECT" else f"http://{host}:1/"
    with asked(listener, f"{method} {target}", replica.identity.token) as connection:
        told = refusal(connection)
    assert told.startswith("HTTP/1.1 403 Forbidden\r\n")
    assert f"{host.strip('[]')}:1 is an address of this machine, which jobs cannot reach" in told


@pytest.mark.parametrize("line", ["GET http://127.0.0.1:1/", "CONNECT 127.0.0.1:1"])
def test_without_a_good_token_nothing_is_reached(replica: Replica, listener: int, line: str) -> None:
    with asked(listener, line, "guessed") as connection:
        assert status(connection) == 407


@pytest.mark.parametrize(
    "line", ["GET /", "GET https://a/", "GET http://", "GET http://a:x/", "G=T http://a/"]
)
def test_what_is_neither_connect_nor_an_http_request_is_refused(
    replica: Replica, listener: int, line: str
) -> None:
    with asked(listener, line, replica.identity.token) as connection:
        assert status(connection) == 405
