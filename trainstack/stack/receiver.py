"""A receiver of POSTs on this machine, in place of one on the internet: it answers 200, and keeps what came.

So that failures can be rehearsed, a path that ends in `/answer=503` gets that status, and `/answer=hang` no answer.
"""

import json
import threading
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BODY_MAX_BYTES, FILE_MAX_BYTES = 64 << 10, 1 << 20
HANGS_S, STATUSES = 60, frozenset(map(str, range(200, 600)))
RECEIVED = Path("receiver") / "received.jsonl"
"""In the state folder: a line for each request, the newest last; the file begins anew when it is large."""


class Receiver(ThreadingHTTPServer):
    """Serves in a thread from its construction until `close`. Its `address` is HOST:PORT."""

    daemon_threads = True

    def __init__(self, state: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address, self.file = f"127.0.0.1:{self.server_port}", state / RECEIVED
        self.lock = threading.Lock()
        self.file.parent.mkdir(exist_ok=True, mode=0o700)
        threading.Thread(target=self.serve_forever, name="receiver", daemon=True).start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    timeout = 10

    def do_POST(self) -> None:
        """Of programs only: what a page makes a browser send has an Origin."""
        length, file = self.headers.get("Content-Length", ""), self.server.file
        if "Origin" in self.headers or not length.isdecimal() or int(length) > BODY_MAX_BYTES:
            self.send_error(400)
            return
        body = self.rfile.read(int(length)).decode("utf-8", "replace")
        came = {
            "at": datetime.now(UTC).isoformat(),
            "path": self.path,
            "headers": dict(self.headers),
            "body": body,
        }
        with self.server.lock, suppress(OSError):  # a full disk is not the sender's fault
            is_large = file.exists() and file.stat().st_size > FILE_MAX_BYTES
            with file.open("w" if is_large else "a", encoding="utf-8") as lines:
                lines.write(json.dumps(came) + "\n")
        answer = self.path.rpartition("/answer=")[2]
        if answer == "hang":
            self.connection.settimeout(HANGS_S)
            with suppress(OSError):
                self.rfile.read(1)  # until the sender gives up
            return
        self.send_response(int(answer) if answer in STATUSES else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """The file has what came."""
