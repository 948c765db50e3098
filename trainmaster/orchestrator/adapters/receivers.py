"""POSTs to receivers on the internet, over TLS, to an address that was checked; and the secrets, each a file.

Not through `requests`: it would follow redirects, use proxies and passwords from the environment, and look the host's
name up again after the check.
"""

import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import cached_property, partial
from http.client import HTTPConnection
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from urllib.parse import urlsplit

from trainmaster.orchestrator.adapters.total_limit import Deadline, LimitPassed, within
from trainmaster.orchestrator.core.notices.deliveries import Answer
from trainmaster.orchestrator.core.notices.payloads import Post
from trainmaster.orchestrator.core.policy.receivers import LOOPBACK_HOST, is_public, url_problem
from trainmaster.orchestrator.core.sizes import KIB

LIMIT_S = 10.0
SECRET_MAX_BYTES = 64 * KIB
"""Of a version of a secret: https://cloud.google.com/secret-manager/quotas"""
FILE = "value"
"""In the folder of a secret, as trainmaster/deploy/terraform/functions.tf mounts it."""


def addresses_of(host: str, port: int) -> Sequence[str]:
    """The host's addresses, each once, without the zones of link-local ones."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))


class InternetReceivers:
    """Receivers with public addresses, and a local stack's own. No text that it returns has a secret or a URL."""

    def __init__(
        self,
        *,
        secrets: Path | None,
        loopback: str | None,
        ca_file: str | None = None,
        look_up: Callable[[str, int], Sequence[str]] = addresses_of,
        may_reach: Callable[[IPv4Address | IPv6Address], bool] = is_public,
    ) -> None:
        """`secrets`: their folder; `loopback`: HOST:PORT of a stack's receiver; `ca_file`: by default certifi's."""
        self._secrets, self._loopback, self._ca_file = secrets, loopback, ca_file
        self._look_up, self._may_reach = look_up, may_reach

    def secret(self, name: str) -> str | None:
        """Read anew each time: a new version takes effect at once."""
        if self._secrets is None:
            return None
        path = self._secrets / name
        with suppress(OSError, ValueError), (path / FILE if path.is_dir() else path).open("rb") as file:
            text = file.read(SECRET_MAX_BYTES).decode("ascii").strip()
            return text if text and text.isprintable() else None
        return None

    def post(self, post: Post) -> Answer:
        if problem := url_problem(post.url):
            return Answer(problem=f"its URL: {problem}")
        deadline = Deadline.after(LIMIT_S)
        connection = _Connection(post.url, deadline, self._socket)
        try:
            return within(deadline, partial(_answer, connection, post))
        except (LimitPassed, TimeoutError):
            return Answer(problem=f"no answer within {LIMIT_S:g} s")
        except NotPublicError as refused:
            return Answer(problem=str(refused))
        except Exception as error:
            return Answer(problem=f"no answer: {type(error).__name__}")
        finally:
            connection.abort()

    def _socket(self, host: str, port: int, deadline: Deadline) -> socket.socket:
        """A connection to the first address of the host that accepts it; to none unless all of them are public."""
        if host == LOOPBACK_HOST:
            if not self._loopback:
                raise NotPublicError(f"only a local stack has {LOOPBACK_HOST}")
            address, _, local_port = self._loopback.rpartition(":")
            return socket.create_connection((address, int(local_port)), deadline.left_s)
        addresses = self._look_up(host, port)
        if not all(self._may_reach(ip_address(each)) for each in addresses):
            raise NotPublicError("its host has a private address")
        for number, address in enumerate(addresses, start=1):
            try:
                plain = socket.create_connection((address, port), deadline.left_s)
                break
            except OSError:
                if number == len(addresses):
                    raise
        return self._tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        import certifi  # not at the start of every function

        return ssl.create_default_context(cafile=self._ca_file or certifi.where())


class NotPublicError(OSError):
    """Nothing may be sent to the host."""


def _answer(connection: "_Connection", post: Post) -> Answer:
    """The status alone: a body could quote what was sent, and is not read."""
    path = urlsplit(post.url).path or "/"
    headers = {"User-Agent": "trainmaster", "Connection": "close", **post.headers}
    connection.request("POST", path, body=post.body, headers=headers)
    with closing(connection.getresponse()) as response:
        return Answer(status=response.status)


class _Connection(HTTPConnection):
    """A connection by the sockets of `open_socket`, which another thread may end."""

    def __init__(
        self, url: str, deadline: Deadline, open_socket: Callable[[str, int, Deadline], socket.socket]
    ) -> None:
        parts = urlsplit(url)
        super().__init__(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        self.default_port = 443 if parts.scheme == "https" else 80  # which the header Host leaves out
        self._deadline, self._open_socket = deadline, open_socket

    def connect(self) -> None:
        """Also called for what is left to send after `abort`: the deadline has passed then, and nothing is sent."""
        self.sock = self._open_socket(self.host, self.port, self._deadline)
        if isinstance(self.sock, ssl.SSLSocket):  # only now: `abort` finds the socket
            self.sock.do_handshake()
        self.sock.settimeout(self._deadline.left_s)

    def abort(self) -> None:
        """End the connection, also while another thread waits for it."""
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
        self.close()
