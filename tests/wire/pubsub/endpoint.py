"""A push endpoint that keeps what it gets and answers as it is told."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(kw_only=True)
class Endpoint:
    """`answers` are used up one by one; after the last, everything is answered 204."""

    url: str
    answers: list[int] = field(default_factory=list)
    bodies: list[dict[str, object]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def messages(self) -> list[dict[str, object]]:
        return [message for body in self.bodies if isinstance(message := body["message"], dict)]


@contextlib.contextmanager
def listening(*answers: int) -> Iterator[Endpoint]:
    """An endpoint on a picked port, in threads of its own."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
                endpoint.bodies.append(
                    json.loads(raw) if raw.startswith(b"{") else {"message": {}, "raw": raw}
                )
                status = endpoint.answers.pop(0) if endpoint.answers else 204
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False  # closing the server waits for its connections to be closed

    lock = threading.Lock()
    with Server(("127.0.0.1", 0), Handler) as server:
        endpoint = Endpoint(url=f"http://127.0.0.1:{server.server_address[1]}/fn?x=1", answers=list(answers))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            thread.join()
