"""The key-value store over HTTP through which Horovod's processes find each other.

Its protocol: https://github.com/horovod/horovod/blob/master/horovod/common/gloo/http_store.cc. A process
puts its addresses under /SCOPE/KEY, polls for those of the others (404: not yet), and
deletes its own once all are connected.

`horovodrun` would start the processes by ssh, which replicas of Vertex AI do not serve.
"""

import os
import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

LARGEST_VALUE = 1 << 20  # bytes; real values have a few hundred
PAUSE_S = 0.5
LOOK_S = 0.5  # the rendezvous exits this long after the command
LEAVES_WITHIN_S = 5.0  # by then an earlier attempt's rendezvous has released the port


class Rendezvous(ThreadingHTTPServer):
    """A store bound to `address`, not serving yet. Exits with its parent process."""

    daemon_threads = True
    request_queue_size = 128  # all replicas ask at once

    def __init__(self, address: tuple[str, int], parent: int) -> None:
        super().__init__(address, _Exchange)
        self.values: dict[str, bytes] = {}
        self.lock = Lock()
        self._parent = parent

    def service_actions(self) -> None:
        if os.getppid() != self._parent:
            os._exit(0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that a peer drops: it has exited and reports that itself. Any: as in socketserver."""


class _Exchange(BaseHTTPRequestHandler):
    server: Rendezvous
    timeout = 30  # seconds for one request

    def do_GET(self) -> None:
        with self.server.lock:
            value = self.server.values.get(self.path)
        self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isdecimal() and int(length) <= LARGEST_VALUE):
            self._answer(400, b"")
            return
        value = self.rfile.read(int(length))
        with self.server.lock:
            self.server.values[self.path] = value
        self._answer(200, b"")

    def do_DELETE(self) -> None:
        with self.server.lock:
            self.server.values.pop(self.path, None)
        self._answer(200, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing: a line per request would bury the job's log."""


def serve_beside_this_process(host: str, port: int, patience_s: float = LEAVES_WITHIN_S) -> None:
    """Serve a rendezvous from a child process for as long as this process lives, also after an exec.

    Raises:
        OSError: the port is still taken after `patience_s` seconds.
    """
    rendezvous = _bound((host, port), os.getpid(), time.monotonic() + patience_s)
    if os.fork():
        rendezvous.socket.close()  # the child's alone
        return
    try:
        # The job's output must end with the command, not with this child.
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(quiet, stream)
        rendezvous.serve_forever(poll_interval=LOOK_S)
    finally:
        os._exit(1)


def _bound(address: tuple[str, int], parent: int, deadline: float) -> Rendezvous:
    while True:
        try:
            return Rendezvous(address, parent)
        except OSError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.1)


def answers_within(host: str, port: int, seconds: float) -> bool:
    """Whether a process listens there now or within `seconds`; names that do not resolve yet are retried."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), timeout=max(0.1, min(10.0, seconds))).close()
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(min(PAUSE_S, max(0.0, deadline - time.monotonic())))
        else:
            return True
