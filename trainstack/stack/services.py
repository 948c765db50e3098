"""The emulators of a stack, in this process's event loop."""

import asyncio
import functools
import importlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
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
from trainstack.process.processes import ProcessGuard
from trainstack.project import project_number
from trainstack.publisher import Publisher
from trainstack.pubsub import PubSub
from trainstack.pubsub.api.methods import services as pubsub_calls
from trainstack.registry import Registry, RegistryFailedError
from trainstack.stack.errors import StackRefusedError
from trainstack.stack.options import StackOptions
from trainstack.stack.ports import candidate_ports, port_taken
from trainstack.stack.state import StateFolder
from trainstack.storage import Storage
from trainstack.transcoding import LazyGrpcServer, RestApplication
from trainstack.transcoding.method import Services as Calls
from trainstack.vertex import Jobs


@dataclass(frozen=True, kw_only=True)
class RunningServices:
    """The running services and their `injections`. `registry` is `host:port`, or empty without a registry."""

    storage_url: str
    pubsub_host: str
    vertex_url: str
    logging_url: str
    buckets_dir: Path
    publisher: Publisher
    logging: Logging
    iam_url: str
    injections: Injections
    identities: WorkloadIdentities
    registry: str = ""


@asynccontextmanager
async def running_services(
    options: StackOptions,
    *,
    state: StateFolder,
    images: Callable[[], Mapping[str, Path]],
    guard: ProcessGuard,
    images_topic: str,
    grants: Grants,
    machines: MachineTypes | None = None,
) -> AsyncIterator[RunningServices]:
    """Run the services of a stack while the block runs.

    `images_topic` is the full name of the topic notified of pushes.

    Raises:
        StackRefusedError: a port is taken, or the registry or Vertex AI cannot run here.
    """
    async with AsyncExitStack() as running:
        start = _Starting(options=options, state=state, running=running)
        injections, buckets_dir = Injections(), state.folder("storage") / "buckets"
        pubsub_host = await start.pubsub(injections, grants)
        publisher = Publisher(pubsub_host)
        running.callback(publisher.close)
        identities = await start.gateway()
        logging = Logging(
            dir=state.folder("logging"),
            publish=publisher,
            injections=injections,
            tokens=start.tokens,
            grants=grants,
        )
        storage = Storage(
            dir=state.folder("storage"),
            publish=publisher,
            injections=injections,
            grants=grants,
            tokens=start.tokens,
        )
        logging_url, storage_url = await start.live(logging, "logging"), await start.live(storage, "storage")
        registry = await start.registry(publisher, images_topic, guard) if options.registry else ""
        jobs = Jobs(
            dir=state.folder("jobs"),
            buckets_dir=buckets_dir,
            images=images,
            write_log=lambda entries: asyncio.to_thread(logging.write, entries),
            project=options.project,
            mounts=options.mounts,
            isolation=options.isolation,
            runtime=options.runtime,
            registry=registry,
            capacity=options.capacity,
            grace_s=options.grace_s,
            guard=guard,
            injections=injections,
            quota=options.quota,
            machines=machines or {},
            tokens=start.tokens,
            grants=grants,
            identities=identities,
        )
        try:
            vertex_url = await start.live(jobs, "vertex")
        except RuntimeError as error:
            raise StackRefusedError(f"Vertex AI cannot run here: {error}") from error
        iam_url = await start.bind_server(application(grants, start.tokens), "iam").start()
        await start.open_gateway(
            {"storage": storage_url, "logging": logging_url, "vertex": vertex_url, "iam": iam_url},
            pubsub_host,
        )
        state.keep_ports(start.ports)
        yield RunningServices(
            storage_url=storage_url,
            pubsub_host=pubsub_host,
            vertex_url=vertex_url,
            logging_url=logging_url,
            buckets_dir=buckets_dir,
            publisher=publisher,
            logging=logging,
            iam_url=iam_url,
            injections=injections,
            identities=identities,
            registry=registry,
        )


@dataclass(kw_only=True, eq=False)
class _Starting:
    """Starts services one after the other; they are stopped with `running`.

    With --port-base, a service gets its port from there on; otherwise it gets the last stack's port if that
    is free, else any.
    """

    options: StackOptions
    state: StateFolder
    running: AsyncExitStack
    tokens: Tokens = field(default_factory=Tokens)
    gate: Gateway = field(init=False)
    ports: dict[str, int] = field(default_factory=dict)

    async def pubsub(self, injections: Injections, grants: Grants) -> str:
        for port in self._candidates("pubsub"):
            pubsub = PubSub(
                dir=self.state.folder("pubsub"), injections=injections, tokens=self.tokens, grants=grants
            )
            try:
                self.ports["pubsub"] = await pubsub.start(port)
            except OSError:
                continue
            self.running.push_async_callback(pubsub.stop)
            return f"127.0.0.1:{self.ports['pubsub']}"
        raise self._port_taken("pubsub")

    async def gateway(self) -> WorkloadIdentities:
        """Bind the gateway's port, which replicas' environments need; `open_gateway` adds the services behind it."""
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

    async def open_gateway(self, urls: Mapping[str, str], pubsub_host: str) -> None:
        """Let the gateway's clients reach the services at these URLs, over REST and gRPC."""
        for service, url in urls.items():
            server = LazyGrpcServer(base_url=url, services=functools.partial(grpc_calls, service))
            self.running.push_async_callback(server.stop)
            self.gate.backends[service] = Backend(http=urlsplit(url).port or 80, grpc=server.port)
        front = RestApplication(target=pubsub_host, services=pubsub_calls(), tokens=self.tokens)
        self.running.push_async_callback(front.stop)
        rest = self.bind_server(front, "pubsub-rest")
        await rest.start()
        self.gate.backends["pubsub"] = Backend(http=rest.port, grpc=int(pubsub_host.rpartition(":")[2]))

    async def registry(self, publisher: Publisher, images_topic: str, guard: ProcessGuard) -> str:
        registry = Registry(
            dir=self.state.folder("registry"),
            host=f"{self.options.region}-docker.pkg.dev",
            publish=lambda data: publisher(images_topic, [(data, {})]),
            guard=guard,
        )
        self.running.push_async_callback(registry.stop)
        try:
            self.ports["registry"] = await registry.start(self.state.ports().get("registry", 0))
        except RegistryFailedError as error:
            raise StackRefusedError(f"The registry cannot run here: {error}") from error
        return registry.address

    async def live(self, service: LiveService, name: str) -> str:
        self.running.push_async_callback(service.stop)
        server = self.bind_server(service, name)
        await service.start(server.url)
        return await server.start()

    def bind_server(self, app: ASGIApp, service: str) -> Server:
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
        return candidate_ports(service, port_base=self.options.port_base, last_ports=self.state.ports())

    def _port_taken(self, service: str) -> StackRefusedError:
        return port_taken(service, self._candidates(service)[0])


def grpc_calls(service: str) -> Calls:
    """The calls of a service that is imitated over REST; imported with its first gRPC client."""
    # IAM's own module would import transcoding, which asks IAM who calls.
    module = "transcoding.resource_manager" if service == "iam" else f"{service}.grpc_calls"
    calls: Calls = importlib.import_module(f"trainstack.{module}").services()
    return calls
