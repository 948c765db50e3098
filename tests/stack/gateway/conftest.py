"""A gateway before real services, and the environment that a replica gets."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.stack.services import jobs_service
from trainstack.gateway import Authority, Backend, Gateway
from trainstack.gateway.identity import WorkloadIdentities, WorkloadIdentity
from trainstack.http import in_thread, serving
from trainstack.iam import Grant, Grants, application
from trainstack.iam.authorization import REQUIRED
from trainstack.iam.principals import Principal, Tokens
from trainstack.logging import Logging
from trainstack.logging.grpc_calls import services as logging_calls
from trainstack.pubsub import PubSub
from trainstack.pubsub.rest_calls import services as pubsub_calls
from trainstack.storage.server import emulate
from trainstack.transcoding import LazyGrpcServer, RestApplication
from trainstack.vertex.grpc_calls import services as vertex_calls

PROJECT = "project-1"
ACCOUNT = "trainer@project-1.iam.gserviceaccount.com"


@dataclass(frozen=True, kw_only=True)
class Replica:
    """A replica's identity, and the gateway behind it."""

    gateway: Gateway
    tokens: Tokens
    identity: WorkloadIdentity
    loop: asyncio.AbstractEventLoop

    @property
    def environment(self) -> dict[str, str]:
        """All that a replica's program finds, and nothing that points it at the stack in any other way."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            **self.identity.variables,
        }


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def grpc_port(replica: Replica, service: str) -> int:
    """The port itself, not by way of the gateway; its server is started if need be."""
    return asyncio.run_coroutine_threadsafe(
        replica.gateway.backends[service].port_of("h2"), replica.loop
    ).result(60)


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    folder = tmp_path_factory.mktemp("gateway")
    with in_thread(lambda: _running(folder)) as running:
        yield running


@contextlib.asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[Replica]:
    async with contextlib.AsyncExitStack() as stack:
        tokens = Tokens()
        authority = Authority(folder / "gateway")
        gateway = Gateway(authority=authority, tokens=tokens)
        stack.push_async_callback(gateway.stop)
        await gateway.start()
        identities = WorkloadIdentities(
            tokens=tokens,
            project_id=PROJECT,
            project_number="123456789012",
            gateway_port=gateway.port,
            trust=authority.trust,
        )
        grants = Grants(
            project=PROJECT,
            project_number="123456789012",
            grants=[Grant(member=f"serviceAccount:{ACCOUNT}", role="roles/every", resource="*")],
            roles={"roles/every": frozenset(each for needs in REQUIRED.values() for each, _ in needs)},
        )
        storage = await stack.enter_async_context(emulate(folder / "storage", grants=grants, tokens=tokens))
        pubsub = PubSub(dir=folder / "pubsub", tokens=tokens, grants=grants)
        stack.push_async_callback(pubsub.stop)
        logging = Logging(dir=folder / "logging", tokens=tokens, grants=grants)
        jobs = jobs_service(folder, PROJECT, logging, tokens, grants)
        urls = {
            "storage": storage,
            "logging": await stack.enter_async_context(serving(logging)),
            "vertex": await stack.enter_async_context(serving(jobs)),
            "iam": await stack.enter_async_context(serving(application(grants, tokens))),
        }
        calls = {"logging": logging_calls, "vertex": vertex_calls}
        for service, url in urls.items():
            backend = Backend(http=int(url.rpartition(":")[2]))
            if service in calls:
                server = LazyGrpcServer(base_url=url, services=calls[service])
                stack.push_async_callback(server.stop)
                backend = replace(backend, grpc=server.port)
            gateway.backends[service] = backend
        grpc = await pubsub.start()
        front = RestApplication(target=f"127.0.0.1:{grpc}", services=pubsub_calls(), tokens=tokens)
        stack.push_async_callback(front.stop)
        rest = await stack.enter_async_context(serving(front))
        gateway.backends["pubsub"] = Backend(http=int(rest.rpartition(":")[2]), grpc=grpc)
        principal = Principal(kind="replica", name="1/workerpool0-0", email=ACCOUNT)
        identity = await identities.issue(principal, zone="us-central1-a")
        stack.push_async_callback(identities.revoke, identity)
        yield Replica(gateway=gateway, tokens=tokens, identity=identity, loop=asyncio.get_running_loop())
