"""A loopback proxy that can fail one named request: answer with an error, lose the response, or cut the connection."""

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit


@dataclass(frozen=True, kw_only=True)
class ProxyFault:
    """What happens to the next request whose line begins with `on`.

    `status` is answered without forwarding it; `lose_answer` forwards it and then cuts the connection;
    neither cuts it at once.
    """

    on: str
    status: int | None = None
    message: str = "spoiled"
    details: tuple[Mapping[str, object], ...] = ()
    lose_answer: bool = False


@dataclass
class Proxy:
    """The proxy's address, the requests it forwarded, and the faults that occurred."""

    url: str
    target: str
    faults: list[ProxyFault] = field(default_factory=list)
    injected: list[ProxyFault] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stalled: threading.Event = field(default_factory=threading.Event)
    _stall: tuple[str, int] | None = None
    _released: threading.Event = field(default_factory=threading.Event)

    def stall_at(self, on: str, *, nth: int) -> None:
        """Hold the nth request from now whose line begins with `on`; it is never forwarded."""
        self._stall = (on, nth)

    def let_go(self) -> None:
        """Cut the held connection."""
        self._released.set()

    def holds(self, line: str) -> bool:
        """Whether this request was the one to hold; returns once it may be cut."""
        with self.lock:
            if self._stall is None or not line.startswith(self._stall[0]):
                return False
            on, left = self._stall
            self._stall = (on, left - 1) if left > 1 else None
            if left > 1:
                return False
        self.stalled.set()
        self._released.wait()
        return True

    def next_fault(self, line: str) -> ProxyFault | None:
        with self.lock:
            fault = next((fault for fault in self.faults if line.startswith(fault.on)), None)
            if fault is not None:
                self.faults.remove(fault)
                self.injected.append(fault)
            return fault


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = (
        True  # else each answer waits for the client's delayed acknowledgement of its headers
    )
    proxy: ClassVar[Proxy]

    def _pass(self) -> None:
        line = f"{self.command} {self.path}"
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.proxy.holds(line):
            self.close_connection = True
            return
        fault = self.proxy.next_fault(line)
        if fault is not None and fault.status is not None:
            error = {
                "error": {"code": fault.status, "message": fault.message, "details": list(fault.details)}
            }
            self._answer(fault.status, {"Content-Type": "application/json"}, json.dumps(error).encode())
            return
        if fault is not None and not fault.lose_answer:
            self.close_connection = True
            return
        self.proxy.passed.append(line)
        status, headers, content = self._ask(body)
        if fault is not None:
            self.close_connection = True
            return
        self._answer(status, headers, content)

    do_GET = do_POST = do_PUT = do_DELETE = _pass  # noqa: N815  # the base class looks for these names

    def _ask(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection(urlsplit(self.proxy.target).netloc)
        try:
            headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: Mapping[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Do not log: the proxy records its requests."""


@contextmanager
def proxy_to(target: str) -> Iterator[Proxy]:
    """A proxy before `target`, served in threads until the block ends."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    proxy = Proxy(url=f"http://127.0.0.1:{server.server_port}", target=target)
    handler.proxy = proxy  # type: ignore[attr-defined]  # the new class inherits the declaration
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.let_go()
        server.shutdown()
        server.server_close()
        thread.join()
