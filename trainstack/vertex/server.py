"""The JobService as a part of the local stack: created, started, served, stopped."""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from starlette.types import ASGIApp, Receive, Scope, Send

from trainstack.gateway.identity import WorkloadIdentities
from trainstack.http import in_thread, serving
from trainstack.iam.principals import Tokens
from trainstack.iam.service import Grants
from trainstack.injections import Injections
from trainstack.jobs.capacity import Capacity, Quota, Supply
from trainstack.jobs.collection import SCHEMA, JobStore, ServiceContext
from trainstack.jobs.images.dockerfile import repository_of
from trainstack.jobs.images.environments import Environments
from trainstack.jobs.images.programs import Provided
from trainstack.jobs.images.scripts import Scripts
from trainstack.jobs.replicas.containers import Containers, podman_here
from trainstack.jobs.replicas.isolation import ReplicaHost
from trainstack.jobs.replicas.processes import Processes
from trainstack.jobs.resource.job import VertexJob
from trainstack.jobs.resource.machines import MachineTypes
from trainstack.jobs.resource.validation import Surroundings
from trainstack.jobs.runners.log import WriteLog
from trainstack.jobs.service import JobService
from trainstack.jobs.weather import Weather
from trainstack.monitoring.meter import Meter
from trainstack.process.processes import ProcessGuard, empty_folder
from trainstack.sandbox.probe import obstacle
from trainstack.sqlite import Database
from trainstack.tuning.service import TRIALS, TuningService, TuningStore
from trainstack.vertex.api import application
from trainstack.vertex.resources.rest import SURFACE, Resources

RuntimeChoice = Literal["process", "container"]
IsolationChoice = Literal["enforced", "none"]

_DATABASE = "jobs.sqlite"


@dataclass(kw_only=True, eq=False)
class Jobs:
    """An ASGI application that answers as JobService does. `start` before the first request, `stop` after the last.

    Attributes:
        dir: where jobs are stored; a new `Jobs` on the same directory resumes unfinished ones.
        buckets_dir: the directory whose folders are the buckets; `/gcs` in a replica.
        images: gives source trees by image URI, for each job. Tags and digests are not compared.
        write_log: writes batches of log entries, in order.
        project: the project's id; its number is derived from it.
        links: whether links stand for a replica's private root even if this machine allows one.
        isolation: `enforced` shows a replica only this machine's programs and the buckets of its account.
        runtime: whether a replica is a process of this machine or a container of its built image.
        registry: `host:port` on loopback that replaces every registry; empty to use only podman's store.
        capacity: the maximum number of replicas at once; None for four per CPU.
        grace_s: seconds from SIGTERM to SIGKILL for a replica.
        guard: supervises the replicas' processes; None for a new guard.
        injections: shared with other emulators.
        quota: the regions' limits; none by default.
        machines: the service's machine types; empty to accept every well-formed name.
        tokens: identify the principals of requests; None makes every request the local user's.
        grants: decide what accounts may call, and as which accounts their jobs may run; None allows everything.
        identities: lets replicas' clients reach the stack as Google Cloud.
        meter: samples what replicas use, for Cloud Monitoring.
    """

    dir: Path
    buckets_dir: Path
    images: Callable[[], Mapping[str, Path]]
    write_log: WriteLog
    project: str = "local-project"
    links: bool = False
    isolation: IsolationChoice = "none"
    runtime: RuntimeChoice = "process"
    registry: str = ""
    capacity: int | None = None
    grace_s: float = 30.0
    guard: ProcessGuard | None = None
    injections: Injections = field(default_factory=Injections)
    quota: Quota = ()
    machines: MachineTypes = field(default_factory=dict)
    tokens: Tokens | None = None
    grants: Grants | None = None
    identities: WorkloadIdentities | None = None
    meter: Meter | None = None
    _app: ASGIApp | None = field(default=None, init=False)
    _running: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)

    async def start(self, _url: str = "") -> None:
        """Open the store, detect what the machine allows, and resume unfinished jobs.

        Raises:
            RuntimeError: isolation or containers are required and this machine does not allow them.
        """
        machine = await asyncio.to_thread(self._machine)
        shared = ServiceContext(
            project=self.project,
            write_log=self.write_log,
            supply=Supply(self.quota, self.injections),
            grants=self.grants,
            here=Surroundings(
                machines=self.machines,
                has_bucket=lambda name: (self.buckets_dir / name).is_dir(),
                surface=SURFACE,
            ),
        )
        state = self.dir.resolve()
        database = Database(state / _DATABASE, SCHEMA + TRIALS)
        capacity = Capacity(self.capacity or 4 * (os.cpu_count() or 1))
        service = JobService(JobStore(database, VertexJob), shared, machine=machine, capacity=capacity)
        tuning = TuningService(TuningStore(database), shared, jobs=service, metrics=state / "metrics")
        resources = Resources(state / "resources.sqlite", service, tuning, self.buckets_dir, self.grants)
        # They stop in the reverse order: the trials of a study are jobs of the service.
        self._running.callback(shutil.rmtree, machine.scratch, ignore_errors=True)
        if self.guard is None:
            self._running.push_async_callback(machine.guard.stop, grace_s=self.grace_s)
        self._running.callback(resources.close)
        self._running.callback(database.close)
        self._running.push_async_callback(service.stop)
        self._running.push_async_callback(tuning.stop)
        weather = Weather(self.injections)
        self._running.callback(weather.stop)
        self._app = application(
            service,
            shared.supply,
            resources,
            weather=weather,
            tokens=self.tokens,
        )
        service.resume()
        tuning.resume()

    async def stop(self) -> None:
        """Stop all replicas and keep unfinished jobs for the next start. Safe to call twice."""
        self._app = None
        await self._running.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            raise RuntimeError("the JobService is not running; call start() first")
        await self._app(scope, receive, send)

    def _machine(self) -> ReplicaHost:
        """The machine that replicas run on; creates the buckets' directory."""
        state, buckets = self.dir.resolve(), self.buckets_dir.resolve()
        containers = None
        if self.runtime == "container":
            containers = Containers(
                podman=podman_here(),
                buckets=buckets,
                stack=str(state),
                registry=self.registry,
                grants=self.grants if self.isolation == "enforced" else None,
            )
            containers.remove_leftovers()
        buckets.mkdir(parents=True, exist_ok=True)
        guard = self.guard or ProcessGuard()
        return ReplicaHost(
            guard=guard,
            provided=Provided(
                images=self._trees,
                find=containers.find if containers else None,
                scripts=Scripts(buckets=buckets, folder=state / "scripts"),
            ),
            environments=Environments(state / "environments", guard),
            scratch=empty_folder("tm", state),
            grace_s=self.grace_s,
            processes=self._processes(state, buckets),
            containers=containers,
            identities=self.identities,
            confined=self.isolation == "enforced",
            meter=self.meter,
        )

    def _processes(self, state: Path, buckets: Path) -> Processes:
        if self.isolation == "none":
            return Processes(buckets=buckets, private=not (self.links or obstacle()), grace_s=self.grace_s)
        if reason := obstacle():
            raise RuntimeError(
                f"isolation=enforced, but replicas cannot be isolated from this machine: {reason}. "
                "Or start the stack with --isolation none, or set TRAINMASTER_ISOLATION=none, if you trust every program that it runs."
            )
        return Processes(
            buckets=buckets,
            private=True,
            grace_s=self.grace_s,
            hidden=Path(os.path.commonpath([state, buckets])),
            grants=self.grants,
        )

    def _trees(self) -> dict[str, Path]:
        return {repository_of(uri): tree.resolve() for uri, tree in self.images().items()}


def serve(jobs: Jobs, *, port: int = 0) -> AbstractContextManager[str]:
    """Run a JobService in a separate thread until the block ends; yields its URL."""
    return in_thread(lambda: serving(jobs, port=port))
