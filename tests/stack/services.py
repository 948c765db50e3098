"""Services for the suites that need several of them at once, and the paths of their routes."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from trainmaster.cli.stack.product import read_topology
from trainstack.http import serving
from trainstack.iam import Grants, application
from trainstack.iam.principals import Tokens
from trainstack.logging import Logging
from trainstack.monitoring import Monitoring
from trainstack.pubsub import PubSub
from trainstack.pubsub.api.methods import services as pubsub_calls
from trainstack.stack.access import grants_of
from trainstack.storage.api.routes import Route
from trainstack.storage.server import Storage
from trainstack.transcoding.rest_application import RestApplication
from trainstack.vertex import Jobs

DEPLOY = Path(__file__).resolve().parents[2] / "trainmaster" / "deploy"


def deployed_grants(project: str, teams: Sequence[str] = (), *, enforced: bool = True) -> Grants:
    """The grants that a deployment in us-central1 makes."""
    topology = read_topology(DEPLOY / "topology.yaml", project=project, region="us-central1")
    return grants_of(topology, DEPLOY / "permissions.yaml", teams, enforced=enforced)


@dataclass(frozen=True, kw_only=True)
class Services:
    """Every service of a stack by its URL for REST, and the port of Pub/Sub."""

    grants: Grants
    tokens: Tokens
    urls: Mapping[str, str]
    pubsub: int


@contextlib.asynccontextmanager
async def every_service(
    folder: Path,
    grants: Grants,
    *,
    before: Callable[[str, ASGIApp], ASGIApp] = lambda _, app: app,
    **of_jobs: Any,  # of several types
) -> AsyncIterator[Services]:
    """The services over the grants. Without other options for them, jobs have no images and write to Cloud Logging.

    `before` gives what is served of each service, by its name.
    """
    tokens = Tokens()
    logging = Logging(dir=folder / "logging", grants=grants, tokens=tokens)
    monitoring = Monitoring(grants=grants, tokens=tokens)
    of_jobs = {
        "images": dict,
        "write_log": lambda entries: asyncio.to_thread(logging.write, entries),
        **of_jobs,
    }
    jobs = Jobs(
        dir=folder / "jobs",
        buckets_dir=folder / "storage" / "buckets",
        project=grants.project,
        tokens=tokens,
        grants=grants,
        meter=monitoring.meter,
        **of_jobs,
    )
    pubsub = PubSub(dir=folder / "pubsub", tokens=tokens, grants=grants)
    apps: dict[str, ASGIApp] = {
        "storage": Storage(dir=folder / "storage", grants=grants, tokens=tokens),
        "logging": logging,
        "vertex": jobs,
        "monitoring": monitoring,
        "iam": application(grants, tokens),
    }
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(pubsub.stop)
        port = pubsub.bind()
        await pubsub.start()
        front = RestApplication(target=f"127.0.0.1:{port}", services=pubsub_calls(), tokens=tokens)
        stack.push_async_callback(front.stop)
        apps["pubsub"] = front
        urls = {
            name: await stack.enter_async_context(serving(before(name, app))) for name, app in apps.items()
        }
        yield Services(grants=grants, tokens=tokens, urls=urls, pubsub=port)


@contextlib.contextmanager
def alone(service: str, folder: Path, pubsub: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service in a process of its own, killed at the end, and its address; `pubsub` is the server that it publishes to."""
    environment = {**os.environ, "PUBSUB_EMULATOR_HOST": pubsub}
    command = [sys.executable, "-m", f"trainstack.{service}", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip().rpartition("=")[2]
        finally:
            process.kill()


def path_of(route: Route) -> str:
    """The path of a route of Cloud Storage, with the name of each variable in braces."""
    named = re.sub(r"\(\?P<(\w+)>[^()]*\)", r"{\1}", route.pattern.pattern)
    return re.sub(r"\(\?:[^()]*\)\?", "", named)


def filled_rule(rule: str, project: str, name: str = "1") -> str:
    """The path of an HTTP rule, with names in it."""
    names = re.sub(r"\{[\w.]+=([^}]*)\}", r"\1", rule)
    return names.replace("locations/*", "locations/us-central1").replace("*", project, 1).replace("*", name)
