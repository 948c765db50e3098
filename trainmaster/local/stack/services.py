"""The emulators of a stack, running in this process's event loop, or the servers that stand in for them."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from trainmaster.local.http import Server
from trainmaster.local.iam import Grants, application
from trainmaster.local.injections import Injections
from trainmaster.local.logging import Logging
from trainmaster.local.process import ProcessGuard
from trainmaster.local.publisher import Publisher
from trainmaster.local.pubsub import PubSub
from trainmaster.local.registry import Registry, RegistryFailedError
from trainmaster.local.stack.errors import ServiceError
from trainmaster.local.stack.options import Options
from trainmaster.local.stack.state import StateFolder
from trainmaster.local.storage import Storage
from trainmaster.local.vertex import Jobs

SERVICES = ("storage", "pubsub", "vertex", "logging")
"""In the order of their ports from --port-base on."""


@dataclass(frozen=True, kw_only=True)
class Services:
    """The services, all answering. `external` names those that run elsewhere; `injections` strike the others.

    `registry` is `host:port`, empty where none was asked for.
    """

    storage_url: str
    pubsub_host: str
    vertex_url: str
    logging_url: str
    buckets_dir: Path
    publisher: Publisher
    logging: Logging
    iam_url: str
    external: frozenset[str]
    injections: Injections
    registry: str = ""


@asynccontextmanager
async def running_services(
    options: Options,
    *,
    state: StateFolder,
    images: Mapping[str, Path],
    guard: ProcessGuard,
    images_topic: str,
    grants: Grants,
) -> AsyncIterator[Services]:
    """The services of a stack while the block runs. `images_topic` is the full name of the one that hears of pushes.

    Where STORAGE_EMULATOR_HOST or PUBSUB_EMULATOR_HOST is set, the server there is used instead of ours.

    Raises:
        ServiceError: a port is taken, or a server that the environment names does not answer.
    """
    injections = Injections()
    async with AsyncExitStack() as running:
        starting = _Starting(
            state=state,
            running=running,
            base=options.port_base,
            last=state.ports(),
            injections=injections,
            grants=grants,
        )
        pubsub_host = _external("PUBSUB_EMULATOR_HOST") or await starting.pubsub()
        publisher = Publisher(pubsub_host)
        running.callback(publisher.close)

        logging = Logging(dir=state.folder("logging"), publish=publisher, injections=injections)
        running.push_async_callback(logging.stop)
        await logging.start()
        logging_url = await starting.bound(logging.app, "logging").start()

        storage_host = _external("STORAGE_EMULATOR_HOST")
        storage_url = f"http://{storage_host}" if storage_host else await starting.storage(publisher)
        buckets_dir = state.folder("storage") / "buckets"

        registry = ""
        if options.registry:
            registry = await starting.registry(
                Registry(
                    dir=state.folder("registry"),
                    host=f"{options.region}-docker.pkg.dev",
                    publish=lambda data: publisher(images_topic, [(data, {})]),
                    guard=guard,
                )
            )

        jobs = Jobs(
            dir=state.folder("jobs"),
            buckets_dir=buckets_dir,
            images=images,
            write_log=lambda entries: asyncio.to_thread(logging.write, entries),
            project=options.project,
            region=options.region,
            mounts=options.mounts,
            runtime=options.runtime,
            registry=registry,
            capacity=options.capacity,
            grace_s=options.grace_s,
            guard=guard,
            injections=injections,
            quota=options.quota,
        )
        vertex_url = await starting.jobs(jobs)
        iam_url = await starting.bound(application(grants), "iam").start()
        state.keep_ports(starting.ports)
        yield Services(
            storage_url=storage_url,
            pubsub_host=pubsub_host,
            vertex_url=vertex_url,
            logging_url=logging_url,
            buckets_dir=buckets_dir,
            publisher=publisher,
            logging=logging,
            iam_url=iam_url,
            external=frozenset(SERVICES) - starting.ports.keys(),
            injections=injections,
            registry=registry,
        )


class _Starting:
    """Starts services one after the other; what was started ends with `running`.

    A service gets its port from `base` on when that is given, else the last stack's where it is free, else any.
    """

    def __init__(
        self,
        *,
        state: StateFolder,
        running: AsyncExitStack,
        base: int | None,
        last: Mapping[str, int],
        injections: Injections,
        grants: Grants,
    ) -> None:
        self._state = state
        self._injections = injections
        self._grants = grants
        self._running = running
        self._base = base
        self._last = last
        self.ports: dict[str, int] = {}

    async def pubsub(self) -> str:
        for port in self._candidates("pubsub"):
            pubsub = PubSub(
                dir=self._state.folder("pubsub"), injections=self._injections, grants=self._grants
            )
            try:
                self.ports["pubsub"] = await pubsub.start(port)
            except OSError:
                continue
            self._running.push_async_callback(pubsub.stop)
            return f"127.0.0.1:{self.ports['pubsub']}"
        raise self._port_taken("pubsub")

    async def storage(self, publisher: Publisher) -> str:
        storage = Storage(
            dir=self._state.folder("storage"),
            publish=publisher,
            injections=self._injections,
            grants=self._grants,
        )
        self._running.push_async_callback(storage.stop)
        server = self.bound(storage, "storage")
        storage.url = server.url
        await storage.start()
        return await server.start()

    async def jobs(self, jobs: Jobs) -> str:
        self._running.push_async_callback(jobs.stop)
        server = self.bound(jobs, "vertex")
        try:
            await jobs.start()
        except RuntimeError as error:
            raise ServiceError(f"Vertex AI cannot run here: {error}") from error
        return await server.start()

    async def registry(self, registry: Registry) -> str:
        self._running.push_async_callback(registry.stop)
        try:
            self.ports["registry"] = await registry.start(self._last.get("registry", 0))
        except RegistryFailedError as error:
            raise ServiceError(f"The registry cannot run here: {error}") from error
        return registry.address

    def bound(self, app: ASGIApp, service: str) -> Server:
        for port in self._candidates(service):
            try:
                server = Server(app, port=port)
            except OSError:
                continue
            self._running.push_async_callback(server.stop)
            self.ports[service] = server.port
            return server
        raise self._port_taken(service)

    def _candidates(self, service: str) -> Sequence[int]:
        # What only a stack's own commands ask has no place behind --port-base.
        if self._base is not None and service in SERVICES:
            return [self._base + SERVICES.index(service)]
        return [self._last[service], 0] if service in self._last else [0]

    def _port_taken(self, service: str) -> ServiceError:
        return ServiceError(
            f"Port {self._candidates(service)[0]}, which --port-base gives to {service}, is taken by another program. "
            "Choose another base, or leave it out to have free ports picked."
        )


def _external(variable: str) -> str:
    """`host:port` of the server that the environment names, empty when it names none."""
    value = os.environ.get(variable, "")
    if not value:
        return ""
    address = urlsplit(value if "://" in value else f"http://{value}")
    host, port = address.hostname or "", address.port or 80
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        raise ServiceError(
            f"{variable} is {value!r}, so that server would be used instead of the stack's own, "
            f"but it does not answer: {error}. Start it, or unset {variable}."
        ) from error
    return f"{host}:{port}"
