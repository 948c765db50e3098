"""A receiver of POSTs on this machine, in place of one on the internet: it answers 200, and keeps what came."""

import json
import threading
from contextlib import suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BODY_MAX_BYTES, FILE_MAX_BYTES = 64 << 10, 1 << 20
RECEIVED = Path("receiver") / "received.jsonl"
"""In the state folder: a line for each request, the newest last; the file begins anew when it is large."""


class Receiver(ThreadingHTTPServer):
    """Serves in a thread from its construction until `close`. Its `address` is HOST:PORT."""

    daemon_threads = True

    def __init__(self, state: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.address = f"127.0.0.1:{self.server_port}"
        self._file, self._lock = state / RECEIVED, threading.Lock()
        self._file.parent.mkdir(exist_ok=True, mode=0o700)
        threading.Thread(target=self.serve_forever, name="receiver", daemon=True).start()

    def keep(self, path: str, headers: dict[str, str], body: bytes) -> None:
        came = {
            "at": datetime.now(UTC).isoformat(),
            "path": path,
            "headers": headers,
            "body": body.decode("utf-8", "replace"),
        }
        with self._lock, suppress(OSError):  # a full disk is not the sender's fault
            is_large = self._file.exists() and self._file.stat().st_size > FILE_MAX_BYTES
            with self._file.open("w" if is_large else "a", encoding="utf-8") as file:
                file.write(json.dumps(came) + "\n")

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    timeout = 10

    def do_POST(self) -> None:
        """Of programs only: what a page makes a browser send has an Origin."""
        length = self.headers.get("Content-Length", "")
        if "Origin" in self.headers or not length.isdecimal() or int(length) > BODY_MAX_BYTES:
            self.send_error(400)
            return
        self.server.keep(self.path, dict(self.headers), self.rfile.read(int(length)))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        """The file has what came."""
