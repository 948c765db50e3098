"""A gateway before real services, and the environment that a replica gets."""

import asyncio
import contextlib
import functools
import json
import os
import socket
import ssl
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.stack.services import every_service
from trainstack.gateway.authority import Authority
from trainstack.gateway.identity import WorkloadIdentities, WorkloadIdentity
from trainstack.gateway.proxy import Backend, Gateway
from trainstack.http import in_thread
from trainstack.iam import Grant, Grants
from trainstack.iam.authorization import REQUIRED
from trainstack.iam.principals import Principal, Tokens
from trainstack.stack.services import grpc_calls
from trainstack.transcoding.grpc_server import LazyGrpcServer

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


def said(replica: Replica, program: str) -> list[object]:
    """What a program printed, a JSON value a line."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=replica.environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line[:1] in '[{"']


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


@pytest.fixture(scope="module")
def through(replica: Replica) -> Iterator[httpx.Client]:
    """A client whose every request goes through the gateway."""
    trusting = ssl.create_default_context(cafile=replica.identity.variables["SSL_CERT_FILE"])
    proxy = replica.identity.variables["https_proxy"]
    with httpx.Client(proxy=proxy, verify=trusting, trust_env=False, timeout=60) as client:
        yield client


@contextlib.asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[Replica]:
    grants = Grants(
        project=PROJECT,
        project_number="123456789012",
        grants=[Grant(member=f"serviceAccount:{ACCOUNT}", role="roles/every", resource="*")],
        roles={"roles/every": frozenset(each for needs in REQUIRED.values() for each, _ in needs)},
    )
    async with every_service(folder, grants) as services, contextlib.AsyncExitStack() as stack:
        authority = Authority(folder / "gateway")
        gateway = Gateway(authority=authority, tokens=services.tokens)
        stack.push_async_callback(gateway.stop)
        await gateway.start()
        identities = WorkloadIdentities(
            tokens=services.tokens,
            project_id=PROJECT,
            project_number="123456789012",
            gateway_port=gateway.port,
            trust=authority.trust,
        )
        for service, url in services.urls.items():
            server = LazyGrpcServer(base_url=url, services=functools.partial(grpc_calls, service))
            stack.push_async_callback(server.stop)
            gateway.backends[service] = Backend(http=int(url.rpartition(":")[2]), grpc=server.port)
        gateway.backends["pubsub"] = replace(gateway.backends["pubsub"], grpc=services.pubsub)
        principal = Principal(kind="replica", name="1/workerpool0-0", email=ACCOUNT)
        identity = await identities.issue(principal, zone="us-central1-a")
        stack.push_async_callback(identities.revoke, identity)
        loop = asyncio.get_running_loop()
        yield Replica(gateway=gateway, tokens=services.tokens, identity=identity, loop=loop)


def job_gateways(
    replica: Replica, folder: Path, count: int, own_hosts: Collection[tuple[str, int]] = ()
) -> Iterator[list[int]]:
    """The ports of one gateway as the networks of this number of jobs have them."""
    gateway = Gateway(authority=Authority(folder), tokens=replica.tokens, own_hosts=own_hosts)
    listening = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(count)]
    ports = [each.getsockname()[1] for each in listening]

    def run(work: Coroutine[Any, Any, object]) -> None:
        asyncio.run_coroutine_threadsafe(work, replica.loop).result(60)

    for each in listening:
        run(gateway.listen(each))
    yield ports
    run(gateway.stop())
