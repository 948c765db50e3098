"""The emulators of a stack, in this process's event loop."""

import asyncio
import functools
import importlib
import os
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from trainstack.gateway.authority import Authority
from trainstack.gateway.identity import WorkloadIdentities
from trainstack.gateway.proxy import Backend, Gateway
from trainstack.http import LiveService, Server
from trainstack.iam import Grants, application
from trainstack.iam.principals import Tokens
from trainstack.injections import Injections
from trainstack.jobs.images.indexes import index_hosts
from trainstack.jobs.resource.machines import MachineTypes
from trainstack.logging import Logging
from trainstack.monitoring import Monitoring
from trainstack.process.processes import ProcessGuard
from trainstack.project import project_number
from trainstack.publisher import Publisher
from trainstack.pubsub import PubSub
from trainstack.pubsub.api.methods import services as pubsub_calls
from trainstack.registry.server import Registry, RegistryFailedError
from trainstack.stack.errors import StackRefusedError
from trainstack.stack.options import StackOptions
from trainstack.stack.ports import bind_port
from trainstack.stack.state import StateFolder
from trainstack.storage import Storage
from trainstack.transcoding.grpc_server import LazyGrpcServer
from trainstack.transcoding.method import Services as Calls
from trainstack.transcoding.rest_application import RestApplication
from trainstack.vertex import Jobs

_Bound = TypeVar("_Bound")


@dataclass(kw_only=True, eq=False)
class RunningServices:
    """The running services and their `injections`. `registry` is `host:port`, or empty without a registry.

    They are started one after the other, and stopped with `running`.
    """

    options: StackOptions
    state: StateFolder
    guard: ProcessGuard
    grants: Grants
    running: AsyncExitStack
    tokens: Tokens = field(default_factory=Tokens)
    injections: Injections = field(default_factory=Injections)
    ports: dict[str, int] = field(default_factory=dict)
    registry: str = ""
    gate: Gateway = field(init=False)
    identities: WorkloadIdentities = field(init=False)
    publisher: Publisher = field(init=False)
    logging: Logging = field(init=False)
    pubsub_host: str = field(init=False)
    storage_url: str = field(init=False)
    vertex_url: str = field(init=False)
    logging_url: str = field(init=False)
    monitoring_url: str = field(init=False)
    iam_url: str = field(init=False)

    @property
    def buckets_dir(self) -> Path:
        return self.state.folder("storage") / "buckets"

    async def start(
        self, *, images: Callable[[], Mapping[str, Path]], images_topic: str, machines: MachineTypes
    ) -> None:
        """Start all of them.

        `images_topic` is the full name of the topic notified of pushes.

        Raises:
            StackRefusedError: a port is taken, or the registry or Vertex AI cannot run here.
        """
        options, state = self.options, self.state
        shared: dict[str, Any] = {"injections": self.injections, "tokens": self.tokens, "grants": self.grants}
        pubsub = PubSub(dir=state.folder("pubsub"), **shared)
        self.running.push_async_callback(pubsub.stop)
        self.ports["pubsub"] = self._bind("pubsub", pubsub.bind)
        await pubsub.start()
        self.pubsub_host = f"127.0.0.1:{self.ports['pubsub']}"
        publish = self.publisher = Publisher(self.pubsub_host)
        self.running.callback(publish.close)
        self.identities = await self._start_gateway()
        self.logging = Logging(dir=state.folder("logging"), publish=publish, **shared)
        self.logging_url = await self._live(self.logging, "logging")
        monitoring = Monitoring(**shared)
        self.monitoring_url = await self._live(monitoring, "monitoring")
        storage = Storage(dir=state.folder("storage"), publish=publish, **shared)
        self.storage_url = await self._live(storage, "storage")
        if options.registry:
            await self._start_registry(images_topic)
        jobs = Jobs(
            dir=state.folder("jobs"),
            buckets_dir=self.buckets_dir,
            images=images,
            write_log=lambda entries: asyncio.to_thread(self.logging.write, entries),
            project=options.project,
            isolation=options.isolation,
            runtime=options.runtime,
            registry=self.registry,
            capacity=options.capacity,
            grace_s=options.grace_s,
            guard=self.guard,
            quota=options.quota,
            machines=machines,
            identities=self.identities,
            meter=monitoring.meter,
            **shared,
        )
        try:
            self.vertex_url = await self._live(jobs, "vertex")
        except RuntimeError as error:
            raise StackRefusedError(f"Vertex AI cannot run here: {error}") from error
        self.iam_url = await self._bind_server(application(self.grants, self.tokens), "iam").start()
        await self._open_gateway()
        state.keep_ports(self.ports)

    async def _start_gateway(self) -> WorkloadIdentities:
        """Bind the gateway's port, which replicas' environments need; `_open_gateway` adds the services behind it."""
        authority = await asyncio.to_thread(Authority, self.state.folder("gateway"))
        self.gate = Gateway(
            authority=authority,
            tokens=self.tokens,
            own_hosts=index_hosts(os.environ, home=Path.home()),
        )
        self.running.push_async_callback(self.gate.stop)
        port = await self.gate.start()
        return WorkloadIdentities(
            tokens=self.tokens,
            project_id=self.options.project,
            project_number=project_number(self.options.project),
            gateway_port=port,
            gateway=self.gate,
            trust=authority.trust,
        )

    async def _open_gateway(self) -> None:
        """Let the gateway's clients reach the services, over REST and gRPC."""
        urls = {
            "storage": self.storage_url,
            "logging": self.logging_url,
            "vertex": self.vertex_url,
            "iam": self.iam_url,
        }
        for service, url in urls.items():
            server = LazyGrpcServer(base_url=url, services=functools.partial(grpc_calls, service))
            self.running.push_async_callback(server.stop)
            self.gate.backends[service] = Backend(http=urlsplit(url).port or 80, grpc=server.port)
        front = RestApplication(target=self.pubsub_host, services=pubsub_calls(), tokens=self.tokens)
        self.running.push_async_callback(front.stop)
        self.gate.backends["monitoring"] = Backend(http=urlsplit(self.monitoring_url).port or 80)
        rest = self._bind_server(front, "pubsub-rest")
        await rest.start()
        self.gate.backends["pubsub"] = Backend(http=rest.port, grpc=self.ports["pubsub"])

    async def _start_registry(self, images_topic: str) -> None:
        registry = Registry(
            dir=self.state.folder("registry"),
            host=f"{self.options.region}-docker.pkg.dev",
            publish=lambda data: self.publisher(images_topic, [(data, {})]),
            guard=self.guard,
        )
        self.running.push_async_callback(registry.stop)
        try:
            self.ports["registry"] = await registry.start(self.state.ports().get("registry", 0))
        except RegistryFailedError as error:
            raise StackRefusedError(f"The registry cannot run here: {error}") from error
        self.registry = registry.address

    async def _live(self, service: LiveService, name: str) -> str:
        self.running.push_async_callback(service.stop)
        server = self._bind_server(service, name)
        await service.start(server.url)
        return await server.start()

    def _bind_server(self, app: ASGIApp, service: str) -> Server:
        server = self._bind(service, lambda port: Server(app, port=port))
        self.running.push_async_callback(server.stop)
        self.ports[service] = server.port
        return server

    def _bind(self, service: str, bind: Callable[[int], _Bound]) -> _Bound:
        return bind_port(service, bind, port_base=self.options.port_base, last_ports=self.state.ports())


def grpc_calls(service: str) -> Calls:
    """The calls of a service that is imitated over REST; imported with its first gRPC client."""
    # IAM's own module would import transcoding, which asks IAM who calls.
    others = {"iam": "transcoding.iam_calls", "vertex": "vertex.resources.methods"}
    module = others.get(service, f"{service}.grpc_calls")
    calls: Calls = importlib.import_module(f"trainstack.{module}").services()
    return calls
