"""Runs Docker's registry, from a Debian package, and turns its notifications into those of Artifact Registry.

With Docker's own registry, clients push with the real protocol and get the real digest.
Sources: https://distribution.github.io/distribution/about/notifications/ (the posted envelope) and
https://cloud.google.com/artifact-registry/docs/configure-notifications (the message), read 2026-11.
"""

import asyncio
import json
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from google.api_core.exceptions import GoogleAPICallError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trainstack.http import LoopbackOnly, Server
from trainstack.json_bodies import google_error, json_value
from trainstack.process.ports import free_port, give_back
from trainstack.process.processes import SYSTEM_PATH, Child, ProcessGuard

PROGRAM = "docker-registry"
_START_S = 20.0
_GRACE_S = 2.0

# A push of an image also posts an event for each layer; the image itself is a manifest or an index of
# manifests.
_IMAGES = frozenset(
    {
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
    }
)

Publish = Callable[[bytes], None]


class BadEnvelopeError(Exception):
    """The body is not an envelope of events; the message says why."""


class RegistryFailedError(Exception):
    """The registry cannot run here; the message says why."""


@dataclass(kw_only=True, eq=False)
class Registry:
    """A registry on loopback that keeps its images in a folder and publishes a message for each push.

    A push needs no password. A push to `127.0.0.1:PORT/PATH` is published as `host/PATH`.

    Attributes:
        dir: folder of the images; a later registry on it still has them.
        host: the registry's name in the cloud, `us-central1-docker.pkg.dev`.
        publish: publishes the data of one message; called in a thread, returns once it is published.
        guard: supervises the process.
    """

    dir: Path
    host: str
    publish: Publish
    guard: ProcessGuard
    _child: Child | None = field(default=None, init=False)
    _port: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        routes = [Route("/events", self._receive, methods=["POST"])]
        self._ear = Server(LoopbackOnly(Starlette(routes=routes)))
        self._token = secrets.token_hex(16)
        self._said: deque[bytes] = deque(maxlen=20)

    @property
    def address(self) -> str:
        """`127.0.0.1:PORT`. Valid after `start`."""
        return f"127.0.0.1:{self._port}"

    async def start(self, port: int = 0) -> int:
        """Start, and return the port once the registry answers: `port` if it is free, else another.

        Raises:
            RegistryFailedError: the program is not installed, or does not answer within 20 s.
        """
        program = shutil.which(PROGRAM, path=SYSTEM_PATH)
        if program is None:
            raise RegistryFailedError(
                f"{PROGRAM} is not installed; on Debian: apt-get install --no-install-recommends {PROGRAM}"
            )
        await self._ear.start()
        self._port = free_port(port)
        config = self.dir / "config.yml"
        config.touch(mode=0o600)  # before the token is written to it
        config.write_text(json.dumps(self._config()))  # YAML reads JSON
        self._child = self.guard.start(
            [program, "serve", str(config)],
            env={"PATH": SYSTEM_PATH},
            cwd=self.dir,
            on_lines=lambda _stream, lines: self._said.extend(lines),
        )
        deadline = asyncio.get_running_loop().time() + _START_S
        while not await asyncio.to_thread(_answers, self._port):
            ended = self._child.returncode is not None
            if ended or asyncio.get_running_loop().time() > deadline:
                await self.stop()
                output = b"\n".join(self._said).decode(errors="replace")
                raise RegistryFailedError(
                    f"{PROGRAM} does not answer on port {self._port}. Its output:\n{output}"
                )
            await asyncio.sleep(0.05)
        return self._port

    async def stop(self) -> None:
        """Stop the registry; its images stay. Safe to call twice."""
        child, self._child = self._child, None
        if child is not None:
            await child.stop(grace_s=_GRACE_S)
            give_back([self._port])
        await self._ear.stop()

    def _config(self) -> dict[str, object]:
        """Source: https://distribution.github.io/distribution/about/configuration/."""
        ear = {
            "name": "topic",
            "url": f"{self._ear.url}/events",
            "headers": {"Authorization": [f"Bearer {self._token}"]},
            "timeout": "15s",
            "threshold": 3,
            "backoff": "1s",
        }
        return {
            "version": "0.1",
            "log": {"level": "warn", "accesslog": {"disabled": True}},
            "storage": {
                "filesystem": {"rootdirectory": str(self.dir / "images")},
                "delete": {"enabled": True},
            },
            "http": {"addr": self.address, "secret": secrets.token_hex(16)},
            "notifications": {"endpoints": [ear]},
        }

    async def _receive(self, request: Request) -> Response:
        if not secrets.compare_digest(
            request.headers.get("authorization", "").encode(), f"Bearer {self._token}".encode()
        ):
            return google_error(403, "only the registry itself may report pushes", status="PERMISSION_DENIED")
        body = await request.body()
        try:
            for message in messages_of(body, host=self.host):
                await asyncio.to_thread(self.publish, message)
        except BadEnvelopeError as fault:
            return google_error(400, str(fault), status="INVALID_ARGUMENT")
        except GoogleAPICallError as fault:  # the registry retries
            return google_error(503, str(fault), status="UNAVAILABLE")
        return Response(status_code=204)


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/v2/")
        return connection.getresponse().status == 200  # noqa: PLR2004  HTTP's OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def messages_of(body: bytes, *, host: str) -> list[bytes]:
    """The messages that Artifact Registry at `host` publishes for these events, in their order.

    An event is posted again until it is answered with 2xx, so a message may be duplicated.

    Raises:
        BadEnvelopeError: the body is not an envelope of events.
    """
    try:
        envelope = json_value(body)
    except ValueError as fault:
        raise BadEnvelopeError(f"the body is not valid JSON: {fault}") from fault
    events = envelope.get("events") if isinstance(envelope, dict) else None
    if not isinstance(events, list) or not all(isinstance(event, dict) for event in events):
        raise BadEnvelopeError("the body has no list `events` of objects")
    return [json.dumps(message).encode() for event in events for message in _messages(event, host)]


def _messages(event: dict[str, object], host: str) -> Iterator[dict[str, str]]:
    target = event.get("target")
    if not isinstance(target, dict):
        return
    repository, digest, tag = (str(target.get(key) or "") for key in ("repository", "digest", "tag"))
    image = f"{host}/{repository}"
    named = {"digest": f"{image}@{digest}"} if digest else {}
    tagged = {"tag": f"{image}:{tag}"} if tag else {}
    match event.get("action"):
        case "push" if target.get("mediaType") in _IMAGES and digest:
            yield {"action": "INSERT", **named, **tagged}
        case "delete" if named or tagged:
            yield {"action": "DELETE", **named, **tagged}
