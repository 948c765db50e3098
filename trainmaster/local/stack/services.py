"""The emulators of a stack, running in this process's event loop, or the servers that stand in for them."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
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
    async with AsyncExitStack() as running:
        start = _Starting(options=options, state=state, guard=guard, grants=grants, running=running)
        pubsub_host = _external("PUBSUB_EMULATOR_HOST") or await start.pubsub()
        publisher = Publisher(pubsub_host)
        running.callback(publisher.close)
        logging, logging_url = await start.logging(publisher)
        storage_host = _external("STORAGE_EMULATOR_HOST")
        storage_url = f"http://{storage_host}" if storage_host else await start.storage(publisher)
        buckets_dir = state.folder("storage") / "buckets"
        registry = await start.registry(publisher, images_topic) if options.registry else ""
        vertex_url = await start.vertex(logging, buckets_dir=buckets_dir, images=images, registry=registry)
        iam_url = await start.bound(application(grants), "iam").start()
        state.keep_ports(start.ports)
        yield Services(
            storage_url=storage_url,
            pubsub_host=pubsub_host,
            vertex_url=vertex_url,
            logging_url=logging_url,
            buckets_dir=buckets_dir,
            publisher=publisher,
            logging=logging,
            iam_url=iam_url,
            external=frozenset(SERVICES) - start.ports.keys(),
            injections=start.injections,
            registry=registry,
        )


@dataclass(kw_only=True, eq=False)
class _Starting:
    """Starts services one after the other; what was started ends with `running`.

    A service gets its port from --port-base on when that is given, else the last stack's where it is free, else any.
    """

    options: Options
    state: StateFolder
    guard: ProcessGuard
    grants: Grants
    running: AsyncExitStack
    injections: Injections = field(default_factory=Injections)
    ports: dict[str, int] = field(default_factory=dict)

    async def pubsub(self) -> str:
        for port in self._candidates("pubsub"):
            pubsub = PubSub(dir=self.state.folder("pubsub"), injections=self.injections)
            try:
                self.ports["pubsub"] = await pubsub.start(port)
            except OSError:
                continue
            self.running.push_async_callback(pubsub.stop)
            return f"127.0.0.1:{self.ports['pubsub']}"
        raise self._port_taken("pubsub")

    async def logging(self, publisher: Publisher) -> tuple[Logging, str]:
        logging = Logging(dir=self.state.folder("logging"), publish=publisher, injections=self.injections)
        self.running.push_async_callback(logging.stop)
        await logging.start()
        return logging, await self.bound(logging.app, "logging").start()

    async def storage(self, publisher: Publisher) -> str:
        storage = Storage(
            dir=self.state.folder("storage"),
            publish=publisher,
            injections=self.injections,
            grants=self.grants,
        )
        self.running.push_async_callback(storage.stop)
        server = self.bound(storage, "storage")
        storage.url = server.url
        await storage.start()
        return await server.start()

    async def registry(self, publisher: Publisher, images_topic: str) -> str:
        registry = Registry(
            dir=self.state.folder("registry"),
            host=f"{self.options.region}-docker.pkg.dev",
            publish=lambda data: publisher(images_topic, [(data, {})]),
            guard=self.guard,
        )
        self.running.push_async_callback(registry.stop)
        try:
            self.ports["registry"] = await registry.start(self.state.ports().get("registry", 0))
        except RegistryFailedError as error:
            raise ServiceError(f"The registry cannot run here: {error}") from error
        return registry.address

    async def vertex(
        self, logging: Logging, *, buckets_dir: Path, images: Mapping[str, Path], registry: str
    ) -> str:
        jobs = Jobs(
            dir=self.state.folder("jobs"),
            buckets_dir=buckets_dir,
            images=images,
            write_log=lambda entries: asyncio.to_thread(logging.write, entries),
            project=self.options.project,
            mounts=self.options.mounts,
            runtime=self.options.runtime,
            registry=registry,
            capacity=self.options.capacity,
            grace_s=self.options.grace_s,
            guard=self.guard,
            injections=self.injections,
            quota=self.options.quota,
        )
        self.running.push_async_callback(jobs.stop)
        server = self.bound(jobs, "vertex")
        try:
            await jobs.start()
        except RuntimeError as error:
            raise ServiceError(f"Vertex AI cannot run here: {error}") from error
        return await server.start()

    def bound(self, app: ASGIApp, service: str) -> Server:
        for port in self._candidates(service):
            try:
                server = Server(app, port=port)
            except OSError:
                continue
            self.running.push_async_callback(server.stop)
            self.ports[service] = server.port
            return server
        raise self._port_taken(service)

    def _candidates(self, service: str) -> Sequence[int]:
        # What only a stack's own commands ask has no place behind --port-base.
        if self.options.port_base is not None and service in SERVICES:
            return [self.options.port_base + SERVICES.index(service)]
        last = self.state.ports().get(service)
        return [last, 0] if last else [0]

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
