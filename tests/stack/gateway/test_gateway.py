"""The gateway's connections: to whom, to where, and which are refused."""

import asyncio
import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.stack.waiting import in_time
from trainstack.gateway.authority import Authority
from trainstack.transcoding.grpc_server import LazyGrpcServer

from .conftest import Replica, bearer

STORAGE = "storage.googleapis.com:443"


def connect(replica: Replica, target: str, token: str | None) -> socket.socket:
    """A connection on which CONNECT was sent."""
    connection = socket.create_connection(("127.0.0.1", replica.gateway.port), timeout=30)
    shown = base64.b64encode(f"any:{token}".encode()).decode()
    credentials = f"Proxy-Authorization: Basic {shown}\r\n" if token is not None else ""
    connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{credentials}\r\n".encode())
    return connection


def status(connection: socket.socket) -> int:
    return int(connection.recv(1 << 16).split(b" ")[1])


@pytest.mark.parametrize("token", [None, "", "guessed", "é"])
def test_without_a_good_token_nothing_is_reached(replica: Replica, token: str | None) -> None:
    with connect(replica, STORAGE, token) as connection:
        assert status(connection) == 407


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ("GET http://storage.googleapis.com/ HTTP/1.1", 405),
        ("POST / HTTP/1.1", 405),
        ("CONNECT storage.googleapis.com HTTP/1.1", 400),
        ("CONNECT storage.googleapis.com:70000 HTTP/1.1", 400),
        ("CONNECT :443 HTTP/1.1", 400),
        ("CONNECT a:²", 400),
    ],
)
def test_a_request_other_than_connect_is_refused(replica: Replica, asked: str, code: int) -> None:
    with socket.create_connection(("127.0.0.1", replica.gateway.port), timeout=30) as connection:
        connection.sendall(f"{asked}\r\n\r\n".encode())
        assert status(connection) == code


def test_a_head_without_an_end_is_refused(replica: Replica) -> None:
    with socket.create_connection(("127.0.0.1", replica.gateway.port), timeout=30) as connection:
        connection.sendall(b"CONNECT a:1 HTTP/1.1\r\n" + b"x: y\r\n" * 100_000)
        assert status(connection) == 431


def test_a_host_that_does_not_answer_is_a_502(replica: Replica) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with connect(replica, f"127.0.0.1:{port}", replica.identity.token) as connection:
        assert status(connection) == 502


def test_the_certificate_is_trusted_where_the_bundle_is_named_and_nowhere_else(
    replica: Replica, through: httpx.Client
) -> None:
    proxy = replica.identity.variables["https_proxy"]
    url = "https://storage.googleapis.com/storage/v1/b?project=project-1"
    assert through.get(url, headers=bearer(replica.identity.token)).status_code == 200
    with (
        httpx.Client(proxy=proxy, verify=ssl.create_default_context(), trust_env=False) as client,
        pytest.raises(httpx.ConnectError, match="certificate"),
    ):
        client.get(url)


@pytest.mark.parametrize("host", ["storage.googleapis.com", "pubsub.googleapis.com", "run.googleapis.com"])
@pytest.mark.parametrize(
    ("offered", "protocol"), [(["h2", "http/1.1"], "http/1.1"), (["h2"], "h2")], ids=["curl", "gRPC"]
)
def test_http_2_is_for_clients_that_offer_nothing_else(
    replica: Replica, host: str, offered: list[str], protocol: str
) -> None:
    trusting = ssl.create_default_context(cafile=replica.identity.variables["SSL_CERT_FILE"])
    trusting.set_alpn_protocols(offered)
    with connect(replica, f"{host}:443", replica.identity.token) as connection:
        assert status(connection) == 200
        with trusting.wrap_socket(connection, server_hostname=host) as secured:
            assert secured.selected_alpn_protocol() == protocol


def test_only_the_owner_reads_the_key_also_in_a_folder_that_was_there(tmp_path: Path) -> None:
    folder = tmp_path / "gateway"
    folder.mkdir(mode=0o755)
    Authority(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / "server.pem").stat().st_mode & 0o777 == 0o600
    assert b"PRIVATE" not in b"".join(path.read_bytes() for path in (folder / "trust").iterdir())


@contextmanager
def echo() -> Iterator[int]:
    """The port of a server that sends one message back."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.sendall(connection.recv(100))

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1]
        thread.join(30)


@in_time
async def test_a_grpc_server_starts_with_its_first_client_and_not_after_the_stop() -> None:
    server = LazyGrpcServer(base_url="http://127.0.0.1:1", services=dict)
    first, again = await asyncio.gather(server.port(), server.port())
    await server.stop()
    assert first == again > 0
    assert await server.port() == 0
