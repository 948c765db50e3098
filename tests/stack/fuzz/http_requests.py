"""HTTP requests that are nearly right, as bytes, and what came back for them.

Bytes, for no client library would send most of these. The same ones for the same `Random`.
"""

import json
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any
from urllib.parse import quote

from tests.core.fuzz.mutation import TOKENS, changed, content_like, spoiled, text

Headers = tuple[tuple[str, str], ...]
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "BREW")
PATHS = (
    *(
        "..",
        "%2e%2e",
        "%2E%2E%2F%2E%2E%2Fetc%2Fpasswd",
        "../../../../etc/passwd",
        ".",
        "%00",
        "%ff",
        "%",
        "%2",
    ),
    *("%0d%0aX-Evil:%201", "//", "?", ";", "*", "a%2Fb", "%25%32%65", "~root", "%f0%9f%92%a9", "x" * 300),
    *("..%5c..%5c", "%c0%ae%c0%ae", "%2fetc%2fpasswd", "-1", "0", "1" * 40, "$(id)", "{}", "%ed%a0%80"),
)
HEADERS = (
    ("content-type", "text/plain"),
    ("content-type", "multipart/related; boundary="),
    ("content-type", "multipart/mixed; boundary=\x80"),
    ("content-type", "application/json; charset=utf-99"),
    ("content-encoding", "gzip"),
    ("content-length", "-1"),
    ("content-length", "99999999999999999999"),
    ("transfer-encoding", "chunked"),
    ("range", "bytes=-5"),
    ("range", "bytes=9-1"),
    ("range", "bytes=0-99999999999999999999"),
    ("content-range", "bytes 5-2/1"),
    ("content-range", "bytes */*"),
    ("expect", "100-continue"),
    ("x-goog-encryption-key", "!"),
    ("x-http-method-override", "DELETE"),
    ("x-forwarded-host", "evil.example"),
    ("accept-encoding", "gzip;q=x"),
    ("if-none-match", "\x85"),
    ("connection", "upgrade"),
)
_LENGTHS = ("content-length", "transfer-encoding", "expect", "connection")
FOREIGN: Headers = (
    ("host", "evil.example"),
    ("host", "127.0.0.1.evil.example"),
    ("origin", "https://evil.example"),
    ("origin", "null"),
    ("sec-fetch-site", "cross-site"),
)
"""Each of these alone says that a page of another site is behind the request."""


@dataclass(frozen=True, kw_only=True)
class HttpRequest:
    """One request; `foreign` says that it bears a mark of another site. `raw` stands for all of it where given."""

    verb: str
    target: str
    headers: Headers = ()
    body: bytes = b""
    foreign: bool = False
    raw: bytes = b""

    @property
    def may_lack_its_end(self) -> bool:
        """Whether the server may rightly wait for more."""
        return bool(self.raw) or any(name in _LENGTHS for name, _ in self.headers)

    def bytes_to(self, host: str) -> bytes:
        if self.raw:
            return self.raw
        names = {name for name, _ in self.headers}
        more = [] if "host" in names else [("host", host)]
        if not names & {"content-length", "transfer-encoding"}:
            more.append(("content-length", str(len(self.body))))
        lines = [f"{self.verb} {self.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in (*more, *self.headers, ("connection", "close"))]
        return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + self.body


@dataclass(frozen=True)
class Shape:
    """A method of a service: its path with `{}` for each variable, its query's keys, and a sound body if it takes one."""

    verb: str
    path: str
    query: Sequence[str] = ()
    documents: Sequence[Any] = ()
    headers: Headers = ()
    written: Callable[[bytes], bytes] = field(default=bytes)


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Requests of one service: its shapes, and words that it knows, to stand where they should not."""

    shapes: Sequence[Shape]
    words: Sequence[str]

    def request(self, random: Random) -> HttpRequest:
        shape = random.choice(self.shapes)
        found = HttpRequest(
            verb=shape.verb if random.random() < 0.95 else random.choice(METHODS),
            target=self._target(shape, random),
            headers=tuple({"content-type": "application/json", **dict(shape.headers)}.items()),
            body=self._body(shape, random),
        )
        return self._odd(found, random)

    def _odd(self, found: HttpRequest, random: Random) -> HttpRequest:
        kind = random.random()
        if kind < 0.08:
            mark = random.choice(FOREIGN)
            # A form's post, the one that a browser sends without asking first.
            kept = tuple(header for header in found.headers if header[0] != "content-type")
            return replace(found, headers=(*kept, ("content-type", "text/plain"), mark), foreign=True)
        if kind < 0.25:
            name, value = random.choice(HEADERS)
            kept = tuple(header for header in found.headers if header[0] != name)
            return replace(found, headers=(*kept, (name, value)))
        if kind < 0.32:
            return replace(found, raw=spoiled(found.bytes_to("127.0.0.1"), random) + b"\r\n\r\n")
        return found

    def _target(self, shape: Shape, random: Random) -> str:
        path = "".join(
            self._variable(random) * bool(at) + part for at, part in enumerate(shape.path.split("{}"))
        )
        if random.random() < 0.03:
            path += "/" + random.choice(PATHS)
        # Few values are sound, and one that is not ends it all.
        keys = shape.query if random.random() < 0.5 else ()
        pairs = [f"{key}={self._value(random)}" for key in keys if random.random() < 0.5]
        return path + ("&" if "?" in path else "?") * bool(pairs) + "&".join(pairs)

    def _variable(self, random: Random) -> str:
        """Mostly the first word, which the services know, so that most requests get past the front door."""
        kind = random.random()
        if kind < 0.15:
            return random.choice(PATHS)
        return quote(self.words[0] if kind < 0.6 else random.choice(self.words), safe="")

    def _value(self, random: Random) -> str:
        if random.random() < 0.5:
            return quote(random.choice(self.words), safe="")
        return random.choice((random.choice(PATHS), quote(text(random), safe="", errors="replace"), "1", "0"))

    def _body(self, shape: Shape, random: Random) -> bytes:
        if not shape.documents:
            return b"" if random.random() < 0.9 else random.choice(TOKENS)
        document = random.choice(shape.documents)
        if isinstance(document, bytes):
            return document if random.random() < 0.3 else spoiled(document, random)
        if random.random() < 0.5:
            try:
                return shape.written(json.dumps(changed(document, random, self.words)).encode())
            except RecursionError:
                return b"["
        return shape.written(content_like(document, random, self.words, as_json=True))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back; `status` 0 when the connection was closed without an answer."""

    status: int
    body: bytes


def asked(host: str, port: int, request: HttpRequest, *, timeout_s: float = 20.0) -> Answer:
    """Send the request on a separate connection and read to the end of the answer.

    A request that may lack its end waits as long as its sender does: not long.

    Raises:
        TimeoutError: a whole request was neither answered nor its connection closed.
    """
    wait_s = 0.1 if request.may_lack_its_end else timeout_s
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.settimeout(wait_s)
        found = bytearray()
        try:
            connection.sendall(request.bytes_to(f"{host}:{port}"))
            while chunk := connection.recv(1 << 16):
                found += chunk
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused while it was sent, perhaps with an answer before
        except TimeoutError:
            if not request.may_lack_its_end:
                raise
        return _answer_of(bytes(found))


def _answer_of(found: bytes) -> Answer:
    head, _, body = found.partition(b"\r\n\r\n")
    while head.startswith(b"HTTP/1.1 100"):
        head, _, body = body.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    status = int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0
    return Answer(status=status, body=body)
