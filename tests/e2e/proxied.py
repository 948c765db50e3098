"""A proxy between the functions and Vertex AI, for tests that lose, hold or hide its traffic."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import yaml

from .project import ROOT

TIMEOUT_S = 10
LEASE_S = TIMEOUT_S + 60
"""How long no other process submits a run's job once a function has begun."""
_COLLECTIONS = ("/customJobs", "/hyperparameterTuningJobs")
_FUNCTIONS_OF_A_DROP = ("on-request-uploaded", "on-job-log", "on-tick")
Proxy = TypeVar("Proxy", bound="VertexProxy")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A response of Vertex AI."""

    status: int
    content_type: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request of a function."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def creates_job(self) -> bool:
        return self.method == "POST" and self.path.partition("?")[0].endswith(_COLLECTIONS)


class VertexProxy:
    """Forwards everything to `target`; a test overrides `answer`."""

    def __init__(self) -> None:
        self.target = ""
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                # The client may have been killed, or no longer waits.
                with contextlib.suppress(ConnectionError):
                    proxy._take(self)

            do_POST = do_DELETE = do_GET  # noqa: N815  # the names that http.server looks for

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request: Request, pass_on: Callable[[], Answer]) -> Answer | None:  # noqa: ARG002  # for those that override it
        """The response; None cuts the connection. Called in a separate thread for each connection."""
        return pass_on()

    def _take(self, caller: BaseHTTPRequestHandler) -> None:
        body = caller.rfile.read(int(caller.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in caller.headers.items() if name.lower() != "host"}
        request = Request(method=caller.command, path=caller.path, headers=headers, body=body)
        told = self.answer(request, lambda: self._passed_on(request))
        if told is None:
            caller.close_connection = True
            return
        caller.send_response(told.status)
        caller.send_header("Content-Type", told.content_type)
        caller.send_header("Content-Length", str(len(told.content)))
        caller.end_headers()
        caller.wfile.write(told.content)

    def _passed_on(self, request: Request) -> Answer:
        address = urlsplit(self.target)
        connection = HTTPConnection(address.hostname or "", address.port or 0, timeout=30)
        try:
            connection.request(request.method, request.path, body=request.body, headers=request.headers)
            answer = connection.getresponse()
            return Answer(
                status=answer.status, content_type=answer.headers["Content-Type"], content=answer.read()
            )
        finally:
            connection.close()


@contextlib.contextmanager
def running(proxy: Proxy) -> Iterator[Proxy]:
    thread = threading.Thread(target=proxy.server.serve_forever)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.server.shutdown()
        proxy.server.server_close()
        thread.join()


def quick_topology(folder: Path, *, vertex_url: str | None = None, timeout_s: int = TIMEOUT_S) -> Path:
    """The project's own with no more functions than a dropped request needs, their leases soon over.

    They talk to Vertex AI at `vertex_url`, if that is given.
    """
    topology = yaml.safe_load((ROOT / "trainmaster" / "deploy" / "topology.yaml").read_text())
    if vertex_url:
        topology["environment"]["VERTEX_EMULATOR_HOST"] = vertex_url
    topology["functions"] = {
        name: {**topology["functions"][name], "timeout_s": timeout_s} for name in _FUNCTIONS_OF_A_DROP
    }
    for sink in topology["sinks"].values():
        sink["filter_file"] = str(ROOT / "trainmaster" / "deploy" / sink["filter_file"])
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump(topology))
    return path
