"""APIs that answer whatever gcloud asks, and record which methods it calls. They check no permission."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.judges.discovery import api

SERVICES = {
    "artifactregistry": "v1", "cloudbilling": "v1", "cloudkms": "v1", "cloudresourcemanager": "v1", "cloudscheduler": "v1",
    "eventarc": "v1", "iam": "v1", "logging": "v2", "pubsub": "v1", "run": "v1", "secretmanager": "v1", "serviceusage": "v1", "storage": "v1",
    "workloadidentity": "v1",
}  # fmt: skip
"""The version of each that gcloud calls."""
_AFTER = (
    "projects", "namespaces", "locations", "operations", "subscriptions", "topics", "serviceAccounts", "services", "b", "o", "managedFolders", "keyRings", "cryptoKeys", "secrets", "versions",
    "workloadIdentityPools",
)  # fmt: skip
"""Path segments that a name follows."""
_OBJECT = {
    "bucket": "bucket",
    "name": "name",
    "size": "2",
    "generation": "1",
    "metageneration": "1",
    "mediaLink": "http://storage.test/storage/v1/b/bucket/o/name?alt=media",
}


@dataclass
class Recorder:
    """`calls`: verb, service and path of each, with `*` for every name, as in trainmaster/deploy/permissions.yaml.

    `faults`: what Google's discovery documents say against gcloud's calls, bodies included, and against these answers.
    """

    port: int = 0
    calls: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def judge(self, verb: str, url: str, body: bytes, answer: object) -> None:
        service = service_of(url)
        if not service:
            # A question of the doctor's, who uses no proxy: tests/judges/test_answers.py judges it.
            return
        document = api(f"{service}.{SERVICES[service]}")
        route = url.partition(".test")[2]
        self.faults += document.request_faults(verb, route, json.loads(body) if body else None)
        self.faults += document.answer_faults(verb, route, answer) if answer else ()

    def environment(self, folder: Path) -> Mapping[str, str]:
        """What makes gcloud send everything here, as an account without any rights."""
        token = folder / "token"
        token.write_text("none")
        bases = {name: f"http://{name}.test/" for name in SERVICES}
        bases["storage"] += "storage/v1/"
        return {
            **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name.upper()}": base for name, base in bases.items()},
            # As a proxy, for gcloud puts the region before the host of Cloud Run.
            "http_proxy": f"http://127.0.0.1:{self.port}",
            "no_proxy": "",
            "CLOUDSDK_CONFIG": str(folder / "configuration"),
            "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
            "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token),
        }


def service_of(url: str) -> str:
    """The service's name, without the region before it."""
    return (urlsplit(url).hostname or "").removesuffix(".test").rpartition("-")[2]


def call_of(verb: str, url: str) -> str:
    """The method that was called.

    >>> call_of("GET", "http://europe-west4-run.test/v1/projects/p/locations/r/services?alt=json")
    'GET run v1/projects/*/locations/*/services'
    """
    parts, service = urlsplit(url), service_of(url)
    segments = parts.path.lstrip("/").removeprefix("storage/v1/").split("/")
    for number, segment in enumerate(segments):
        if number and segments[number - 1] in _AFTER:
            segments[number] = "*" + "".join(re.findall(r":\w+$", unquote(segment)))
    return f"{verb} {service} {'/'.join(segments)}"


_ANSWERS: Mapping[str, Any] = {
    "GET storage b/*/o/*": _OBJECT,
    "GET storage b/*/o": {"items": [_OBJECT]},
    "POST serviceusage v1/projects/*/services:batchEnable": {"name": "operations/acat.1"},
    "GET serviceusage v1/operations/*": {
        "name": "operations/acat.1",
        "done": True,
        "response": {"@type": "type.googleapis.com/google.protobuf.Empty"},
    },
    "GET storage projects/*/serviceAccount": {
        "email_address": "service-1@gs-project-accounts.iam.gserviceaccount.com"
    },
    "POST pubsub v1/projects/*/topics/*:publish": {"messageIds": ["1"]},
}
"""To every other call the answer is `{}`, as it is to the download of an object."""


@contextmanager
def recording() -> Iterator[Recorder]:
    """A recorder on a free port, until the block ends."""
    recorder = Recorder()

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            call = call_of(self.command, self.path)
            recorder.calls.append(call)
            answer = {} if "alt=media" in self.path else _ANSWERS.get(call, {})
            recorder.judge(self.command, self.path, body, answer)
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = respond  # noqa: N815  # names that http.server looks up

        def log_message(self, *_: object) -> None:
            """Nothing: the test reads `calls`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        recorder.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield recorder
        finally:
            server.shutdown()
            thread.join()
