"""The key-value store over HTTP through which Horovod's processes find each other.

Its protocol: https://github.com/horovod/horovod/blob/master/horovod/common/gloo/http_store.cc. A process
puts its addresses under /SCOPE/KEY, polls for those of the others (404: not yet), and
deletes its own once all are connected.

`horovodrun` would start the processes by ssh, which replicas of Vertex AI do not serve.
"""

import os
import socket
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from trainer.launch.frameworks import coordinator_of, is_on_loopback, rank_of
from trainer.replicas.cluster import Cluster

Result = TypeVar("Result")
LARGEST_VALUE = 1 << 20  # bytes; real values have a few hundred
PAUSE_S = 0.2
LOOK_S = 0.5  # the rendezvous exits this long after the command
LEAVES_WITHIN_S = 5.0  # by then an earlier attempt's rendezvous has released the port


class Rendezvous(ThreadingHTTPServer):
    """A store bound to `address`, not serving yet. Exits with its parent process."""

    daemon_threads = True
    request_queue_size = 128  # all replicas ask at once

    def __init__(self, address: tuple[str, int], parent: int) -> None:
        super().__init__(address, _Exchange)
        self.values: dict[str, bytes] = {}
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
        value = self.server.values.get(self.path)
        self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isdecimal() and int(length) <= LARGEST_VALUE):
            self._answer(400, b"")
            return
        self.server.values[self.path] = self.rfile.read(int(length))
        self._answer(200, b"")

    def do_DELETE(self) -> None:
        self.server.values.pop(self.path, None)
        self._answer(200, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing: a line per request would bury the job's log."""


def join_rendezvous(cluster: Cluster, within_s: float) -> str:
    """Return once the chief serves the rendezvous, or it answers another replica; else the fault after `within_s`."""
    host, port = coordinator_of(cluster)
    if rank_of(cluster) == 0:
        own = host if is_on_loopback(cluster) else ""
        try:
            serve_beside_this_process((own, int(port)), min(LEAVES_WITHIN_S, within_s))
        except OSError as error:
            return f"Cannot serve Horovod's rendezvous on port {port}: {error}. Keep that port free."
        return ""
    timeout_s = max(0.1, min(10.0, within_s))
    try:
        # Names that do not resolve yet are retried, too.
        _retried(lambda: socket.create_connection((host, int(port)), timeout=timeout_s).close(), within_s)
    except OSError:
        return (
            f"The chief did not serve Horovod's rendezvous at {host}:{port} within {within_s:g} s. Start it with "
            f"trainer.launch too, or allow more time with --peers_within_s."
        )
    return ""


def serve_beside_this_process(address: tuple[str, int], within_s: float) -> None:
    """Serve a rendezvous from a child process for as long as this process lives, also after an exec.

    Raises:
        OSError: the port is still taken after `within_s` seconds.
    """
    parent = os.getpid()
    rendezvous = _retried(lambda: Rendezvous(address, parent), within_s)
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


def _retried(attempt: Callable[[], Result], within_s: float) -> Result:
    """What `attempt` returns; its OSErrors are raised only after `within_s` seconds."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            return attempt()
        except OSError:
            if (left_s := deadline - time.monotonic()) <= 0:
                raise
            time.sleep(min(PAUSE_S, left_s))
