"""Hosts that are none of the stack's are reached as this machine reaches them: by its own proxy, where it has one."""

import base64
import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from trainstack.gateway.authority import Authority
from trainstack.gateway.egress import http_variables

from .conftest import Replica
from .test_gateway import connect, echo, status

_NAMES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


class TinyProxy:
    """An HTTP proxy for one connection, which sends a given answer and then echoes; `head` is the request it received."""

    def __init__(self, answer: bytes) -> None:
        self.head = b""
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:  # closed: nothing came
            return
        with connection, contextlib.suppress(OSError):  # the gateway leaves where the answer is too long
            received = b""
            while b"\r\n\r\n" not in received:
                received += connection.recv(1 << 16)
            head, end, more = received.partition(b"\r\n\r\n")
            self.head = head + end
            connection.sendall(self._answer)
            if b" 200 " in self._answer:
                connection.sendall(more or connection.recv(100))

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()


@contextmanager
def proxy(answer: bytes = b"HTTP/1.1 200 Connected\r\nVia: tiny\r\n\r\n") -> Iterator[TinyProxy]:
    running = TinyProxy(answer)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The proxies of this process, which is the gateway's: none, whatever the machine has."""
    for name in _NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def refusal(connection: socket.socket) -> str:
    """The gateway's whole answer."""
    received = b""
    while chunk := connection.recv(1 << 16):
        received += chunk
    return received.decode()


@pytest.mark.parametrize("variable", ["https_proxy", "HTTPS_PROXY", "all_proxy"])
def test_the_gateway_goes_by_way_of_the_users_own_proxy_with_its_credentials(
    replica: Replica, proxies: pytest.MonkeyPatch, variable: str
) -> None:
    with proxy() as own:
        proxies.setenv(variable, f"http://me:p%40ss@127.0.0.1:{own.port}")
        with connect(replica, "pypi.example:443", replica.identity.token) as connection:
            assert status(connection) == 200
            connection.sendall(b"hello")
            assert connection.recv(100) == b"hello"
    head = own.head.decode()
    assert head.startswith("CONNECT pypi.example:443 HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:p@ss').decode()}\r\n" in head
    assert replica.identity.token not in head


def test_hosts_of_no_proxy_are_reached_straight(replica: Replica, proxies: pytest.MonkeyPatch) -> None:
    with proxy() as own, echo() as port:
        proxies.setenv("https_proxy", f"http://127.0.0.1:{own.port}")
        proxies.setenv("no_proxy", "internal.example,127.0.0.1")
        with connect(replica, f"127.0.0.1:{port}", replica.identity.token) as connection:
            assert status(connection) == 200
            connection.sendall(b"hello")
            assert connection.recv(100) == b"hello"
    assert own.head == b""


def test_google_hosts_lead_into_the_stack_even_with_a_proxy(
    replica: Replica, proxies: pytest.MonkeyPatch
) -> None:
    with proxy() as own:
        proxies.setenv("https_proxy", f"http://127.0.0.1:{own.port}")
        with connect(replica, "storage.googleapis.com:443", replica.identity.token) as connection:
            assert status(connection) == 200
    assert own.head == b""


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "answered 'HTTP/1.1 403 Forbidden'"),
        (b"", "closed the connection without a response"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000, "exceeds 262144 bytes"),
    ],
)
def test_a_refusal_of_the_proxy_is_reported(
    replica: Replica, proxies: pytest.MonkeyPatch, answer: bytes, reason: str
) -> None:
    with proxy(answer) as own:
        proxies.setenv("https_proxy", f"127.0.0.1:{own.port}")
        with connect(replica, "pypi.example:443", replica.identity.token) as connection:
            told = refusal(connection)
    assert told.startswith("HTTP/1.1 502 ")
    assert "cannot reach pypi.example:443: " in told
    assert reason in told


@pytest.mark.parametrize("where", ["socks5://{}127.0.0.1:1", "http://{}127.0.0.1:port"])
def test_a_proxy_of_another_form_is_named_without_its_password(
    replica: Replica, proxies: pytest.MonkeyPatch, where: str
) -> None:
    proxies.setenv("https_proxy", where.format("me:secret@"))
    with connect(replica, "pypi.example:443", replica.identity.token) as connection:
        told = refusal(connection)
    assert told.startswith("HTTP/1.1 502 ")
    assert f"must have the form http://host:port, found {where.format('')!r}" in told
    assert "secret" not in told


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"no_proxy": "localhost,127.0.0.1,::1"}),
        (
            {"http_proxy": "http://proxy:1", "no_proxy": "corp.example, .lab"},
            {"http_proxy": "http://proxy:1", "no_proxy": "localhost,127.0.0.1,::1,corp.example,.lab"},
        ),
        ({"no_proxy": "*"}, {"no_proxy": "localhost,127.0.0.1,::1"}),
        (
            {"no_proxy": ".googleapis.com,storage.googleapis.com:443,com,apis.com,a.com"},
            {"no_proxy": "localhost,127.0.0.1,::1,a.com"},
        ),
    ],
)
def test_programs_reach_plain_http_as_this_machine_does_and_google_through_the_gateway(
    proxies: pytest.MonkeyPatch, own: Mapping[str, str], expected: Mapping[str, str]
) -> None:
    for name, value in own.items():
        proxies.setenv(name, value)
    assert http_variables() == {**expected, **{name.upper(): value for name, value in expected.items()}}


def test_the_bundle_has_the_authority_of_a_proxy_that_ends_tls_itself(
    tmp_path: Path, proxies: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.pem").write_text("the company's own\n")
    proxies.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "own.pem"))
    trust = Authority(tmp_path / "gateway").trust
    assert (trust / "bundle.pem").read_text().startswith("the company's own\n")
    assert (trust / "bundle.pem").read_text().endswith((trust / "authority.pem").read_text())
