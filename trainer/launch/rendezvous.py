"""The key-value store over HTTP that Horovod's processes find each other by.

Its protocol: https://github.com/horovod/horovod/blob/master/horovod/common/gloo/http_store.cc. A process
puts its own addresses under /SCOPE/KEY, asks for those of the others until they are there (404: not yet), and
deletes its own once all are connected.
"""

import os
import socket
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

LARGEST_VALUE = 1 << 20  # bytes; a real one has a few hundred
PAUSE_S = 0.5
LOOK_S = 0.5  # how soon after the command has ended its rendezvous ends
LEAVES_WITHIN_S = 5.0  # a port that an earlier attempt's rendezvous still has is free by then


class Rendezvous(ThreadingHTTPServer):
    """A store at `address`, bound already and not yet served. Ends when the process that it is a child of does."""

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
        """A peer that hangs up has ended, and says so itself. Any: as the standard library has them."""


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
        """Nothing: a line for each request would bury the job's own."""


def serve_beside_this_process(host: str, port: int, patience_s: float = LEAVES_WITHIN_S) -> None:
    """Serve a rendezvous from a child of this process for as long as this process lives, also after an exec.

    Raises:
        OSError: the port is taken, and was for `patience_s` seconds.
    """
    rendezvous = _bound((host, port), os.getpid(), time.monotonic() + patience_s)
    if os.fork():
        rendezvous.socket.close()  # the child's alone
        return
    try:
        # The job's output ends with the command, not with its helper.
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
    """Whether somebody listens there now or does so within `seconds`; names that do not resolve yet are tried again."""
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
