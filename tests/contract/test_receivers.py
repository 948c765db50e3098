"""POSTs to receivers over real sockets: to the address that was checked, within the limit, and nowhere else."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest

from trainmaster.orchestrator.adapters import receivers
from trainmaster.orchestrator.adapters.receivers import InternetReceivers
from trainmaster.orchestrator.core.notices.deliveries import Answer
from trainmaster.orchestrator.core.notices.payloads import Post
from trainmaster.orchestrator.core.policy.receivers import is_public
from trainstack.gateway.authority import OWN, Authority

HOST = "hooks.googleapis.com"
"""One of the names in the authority's certificate."""
SECRET = "t0ken"


class Server(ThreadingHTTPServer):
    """Answers each POST with `status`, and keeps what came."""

    status = 200
    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        if context is not None:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.got: list[tuple[str, dict[str, str], bytes]] = []

    def handle_error(self, *_: object) -> None:
        """Clients may leave."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("Location", f"https://{HOST}/elsewhere")
        self.end_headers()
        self.wfile.write(b"x" * 100_000)

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def server(authority: Authority) -> Iterator[Server]:
    yield from served(Server(authority.context))


def served(server: Server) -> Iterator[Server]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def sent(authority: Authority) -> Callable[..., Answer]:
    """Posts to HOST at a port, of which a look-up gives these addresses; loopback counts as public here."""

    def send(
        port: int, *addresses: str, host: str = HOST, ca_file: Path | None = authority.trust / OWN
    ) -> Answer:
        sender = InternetReceivers(
            secrets=None,
            loopback=None,
            ca_file=str(ca_file) if ca_file else None,
            look_up=lambda _host, _port: addresses or ("127.0.0.1",),
            may_reach=lambda address: is_public(address) or address == ip_address("127.0.0.1"),
        )
        return sender.post(post(f"https://{host}:{port}/hook/{SECRET}"))

    return send


def post(url: str) -> Post:
    return Post(url=url, body=b'{"a": 1}', headers={"Authorization": f"Bearer {SECRET}"})


def test_a_post_arrives_whole_under_the_name_of_its_host(server: Server, sent: Callable[..., Answer]) -> None:
    assert sent(server.server_port) == Answer(status=200)
    ((path, headers, body),) = server.got
    assert (path, body) == (f"/hook/{SECRET}", b'{"a": 1}')
    assert headers["Host"] == f"{HOST}:{server.server_port}"
    assert headers["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("status", [301, 302, 307, 404, 429, 500])
def test_an_answer_is_its_status_and_no_redirect_is_followed(
    status: int, server: Server, sent: Callable[..., Answer]
) -> None:
    server.status = status
    assert sent(server.server_port) == Answer(status=status)
    assert len(server.got) == 1


@pytest.mark.parametrize(
    "addresses",
    [
        ("10.0.0.1",),
        ("127.0.0.1", "10.0.0.1"),
        ("169.254.169.254",),
        ("::1",),
        ("::ffff:10.0.0.1",),
        ("fe80::1",),
    ],
)
def test_nothing_is_sent_to_a_host_with_a_private_address_among_its_own(
    addresses: tuple[str, ...], server: Server, sent: Callable[..., Answer]
) -> None:
    assert sent(server.server_port, *addresses) == Answer(problem="its host has a private address")
    assert server.got == []


def test_the_next_address_has_its_turn_where_one_does_not_accept(
    server: Server, sent: Callable[..., Answer], authority: Authority
) -> None:
    sender = InternetReceivers(
        secrets=None,
        loopback=None,
        ca_file=str(authority.trust / OWN),
        look_up=lambda _host, _port: ("127.0.0.2", "127.0.0.1"),
        may_reach=lambda _: True,
    )
    assert sender.post(post(f"https://{HOST}:{server.server_port}/")) == Answer(status=200)


@pytest.mark.parametrize("case", ["another host's certificate", "an unknown authority"])
def test_a_certificate_must_be_the_hosts_and_of_a_known_authority(
    case: str, server: Server, sent: Callable[..., Answer]
) -> None:
    changed = {"host": "example.com"} if case.startswith("another") else {"ca_file": None}
    assert sent(server.server_port, **changed) == Answer(problem="no answer: SSLCertVerificationError")
    assert server.got == []


def test_one_that_does_not_speak_tls_or_http_or_listen_has_no_answer_and_no_secret_is_named(
    sent: Callable[..., Answer],
) -> None:
    for plain in served(Server(None)):
        answer = sent(plain.server_port)
        assert answer.problem.startswith("no answer: SSL")
    answer = sent(plain.server_port)
    assert answer.problem == "no answer: ConnectionRefusedError"
    assert SECRET not in answer.problem


@pytest.mark.parametrize("stage", ["before TLS", "before the answer"])
def test_one_that_hangs_is_given_up_and_its_connection_ended(
    stage: str, authority: Authority, sent: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "LIMIT_S", 0.5)
    ended = threading.Event()

    def hang(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        if stage == "before the answer":
            connection = authority.context.wrap_socket(connection, server_side=True)
        with connection:
            while connection.recv(65536):
                pass
        ended.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=hang, args=[listener], daemon=True).start()
        assert sent(listener.getsockname()[1]) == Answer(problem="no answer within 0.5 s")
        assert ended.wait(10)


@pytest.mark.parametrize(
    "url",
    ["http://example.com/", "https://127.0.0.1/", "https://u:p@example.com/", "nonsense", "https://[::1"],
)
def test_a_secret_that_holds_no_url_of_a_public_host_is_not_used(
    url: str, sent: Callable[..., Answer]
) -> None:
    answer = InternetReceivers(secrets=None, loopback=None).post(post(url))
    assert answer.problem.startswith("its URL: ")
    assert url not in answer.problem


def test_the_loopback_receiver_is_reached_where_a_stack_names_it_and_nothing_else_is() -> None:
    for plain in served(Server(None)):
        stack = InternetReceivers(secrets=None, loopback=f"127.0.0.1:{plain.server_port}")
        assert stack.post(post("http://receiver.localhost/a")) == Answer(status=200)
        assert [path for path, _, _ in plain.got] == ["/a"]
        for url in (
            f"http://127.0.0.1:{plain.server_port}/",
            f"http://receiver.localhost:{plain.server_port}/",
        ):
            assert stack.post(post(url)).problem.startswith("its URL: ")
        cloud = InternetReceivers(secrets=None, loopback=None)
        assert (
            cloud.post(post("http://receiver.localhost/a")).problem
            == "only a local stack has receiver.localhost"
        )
        assert len(plain.got) == 1


def test_a_secret_is_a_file_or_the_file_that_a_deployment_mounts_in_a_folder_of_its_name(
    tmp_path: Path,
) -> None:
    sender = InternetReceivers(secrets=tmp_path, loopback=None)
    (tmp_path / "plain").write_text("value\n")
    (tmp_path / "mounted").mkdir()
    (tmp_path / "mounted" / "value").write_text("first")
    assert (sender.secret("plain"), sender.secret("mounted")) == ("value", "first")
    (tmp_path / "mounted" / "value").write_text("second")
    assert sender.secret("mounted") == "second"
    for content in (b"", b" \n", b"two\nlines", "é".encode(), b"\xff", b"a\x00"):
        (tmp_path / "plain").write_bytes(content)
        assert sender.secret("plain") is None
    assert sender.secret("missing") is None
    assert InternetReceivers(secrets=None, loopback=None).secret("plain") is None
