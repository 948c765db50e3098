"""The processes of one attempt of a job, one for each replica: started, restarted, preempted, ended."""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainstack.gateway.identity import WorkloadIdentities, WorkloadIdentity, default_account
from trainstack.iam.principals import Principal
from trainstack.jobs.images.programs import PoolProgram
from trainstack.jobs.replicas.cluster import environment, rendezvous
from trainstack.jobs.replicas.exits import ReplicaEnd, exit_status
from trainstack.jobs.replicas.isolation import Isolation, Placement, ReplicaHost
from trainstack.jobs.resource.job import JobReplica, VertexJob
from trainstack.monitoring.usage import machine_size
from trainstack.process.output import OutputStream
from trainstack.process.ports import free_ports, give_back
from trainstack.process.processes import Child
from trainstack.sandbox.network import Network

_FIRST_PORT = 2222
"""In a job's own network: the service's port, then those after it."""
OnReplicaLines = Callable[[str, OutputStream, list[bytes]], Awaitable[None]]
"""Receives the output lines of the replica with this name."""


@dataclass(kw_only=True, eq=False)
class _Member:
    """One replica's process. `taken_at` is when its preemption began (`time.monotonic`)."""

    replica: JobReplica
    child: Child
    taken_at: float | None = None
    exit: ReplicaEnd | None = None

    @property
    def is_ending(self) -> bool:
        """Whether it is ending but not yet reported: its last lines are being read, or it is in its grace period."""
        return self.exit is None and (self.taken_at is not None or self.child.ended_at is not None)

    @property
    def lost_at(self) -> float:
        """When its end began."""
        return self.taken_at or self.child.ended_at or 0.0


class ReplicaTeam:
    """The replicas of one job, and their exits.

    Addresses are chosen once, so a restarted replica keeps its address.
    """

    def __init__(
        self,
        job: VertexJob,
        *,
        machine: ReplicaHost,
        on_lines: OnReplicaLines,
        programs: Mapping[int, PoolProgram],
    ) -> None:
        """Reserve a port for each replica, and create the folder of a trial; nothing runs yet.

        `programs` has one for each pool with replicas. `close` releases the ports.

        Raises:
            OSError: the job cannot have a network.
        """
        if job.trial:
            Path(job.trial.metrics_dir).mkdir(parents=True, exist_ok=True)
        self._job = job
        self._machine = machine
        self._on_lines = on_lines
        self._programs = programs
        self._network = machine.open_network(len(job.replicas))
        count = len(job.replicas)
        ports = range(_FIRST_PORT, _FIRST_PORT + count) if self._network else free_ports(count)
        # The service's addresses are `cmle-training-workerpoolN-<id>-<index>:2222`.
        self._addresses = {
            replica: f"127.0.0.1:{port}" for replica, port in zip(job.replicas, ports, strict=True)
        }
        self._identities = ReplicaIdentities(machine.identities, job, self._network)
        self._members: dict[JobReplica, _Member] = {}
        self._watchers: set[asyncio.Task[object]] = set()
        self._ended = asyncio.Event()
        self._scratch = machine.scratch / job.job_id[-8:]
        self._starts = 0
        self._isolated: dict[str, Isolation] = {}

    async def start_all(self) -> None:
        for replica in self._job.replicas:
            await self.start(replica)

    async def start(self, replica: JobReplica) -> None:
        """Start one replica that is not running, with fresh scratch directories."""
        program = self._programs[replica.pool]
        self._starts += 1
        scratch = self._scratch / str(self._starts)
        name = f"trainmaster-{self._job.job_id}-{replica.name}-{self._starts}"
        placement = Placement(
            program=program,
            service={
                **environment(self._job, self._addresses, replica, program.environment),
                **await self._identities.variables(replica),
            },
            defaults=rendezvous(self._addresses, replica),
            scratch=scratch,
            name=name,
            trust=self._identities.trust,
            account=self._identities.email,
            network=self._network,
        )
        isolation = self._machine.isolation_of(program)
        start = await asyncio.to_thread(isolation.start_of, placement)
        self._isolated[name] = isolation
        child = self._machine.guard.start(
            start.argv,
            env=start.env,
            cwd=scratch,
            on_lines=lambda stream, lines: self._on_lines(replica.name, stream, lines),
            descriptors=start.descriptors,
        )
        # A container's processes are not below its client's.
        if (meter := self._machine.meter) and isolation is self._machine.processes:
            machine = self._job.spec.worker_pool_specs[replica.pool].machine_spec
            size = machine_size(machine.machine_type, machine.accelerator_count)
            meter.watch(child, job_id=self._job.job_id, task=replica.name, size=size)
        member = _Member(replica=replica, child=child)
        self._members[replica] = member
        self._keep(self._watch(member))

    def preempt(self, replica: JobReplica) -> bool:
        """Start preempting the replica: SIGTERM, the grace period, SIGKILL. False if it is not running."""
        member = self._members.get(replica)
        if member is None or member.exit is not None or member.is_ending:
            return False
        member.taken_at = time.monotonic()
        self._keep(member.child.stop(grace_s=self._machine.grace_s))
        return True

    async def next_exits(self) -> tuple[ReplicaEnd, ...]:
        """Wait for replicas to end by themselves; at least one, in the order they ended.

        Also waits for replicas that are ending, so that a loss is reported together with the ends it causes,
        unless the chief is done: that ends the job whatever the others do.
        """
        while True:
            ended = sorted(
                (member for member in self._members.values() if member.exit is not None),
                key=lambda member: member.lost_at,
            )
            exits = tuple(member.exit for member in ended if member.exit is not None)
            is_over = any(one.is_success for one in exits)
            if exits and (is_over or not any(member.is_ending for member in self._members.values())):
                for member in ended:
                    del self._members[member.replica]
                return exits
            self._ended.clear()
            await self._ended.wait()

    async def stop(self) -> None:
        """End all replicas at once, each with its grace period, and remove their scratch directories."""
        members, self._members = list(self._members.values()), {}
        await asyncio.gather(*(member.child.stop(grace_s=self._machine.grace_s) for member in members))
        await asyncio.gather(*self._watchers)
        for isolation in set(self._isolated.values()):  # a killed replica may have left something behind
            names = [name for name, started in self._isolated.items() if started is isolation]
            await asyncio.to_thread(isolation.remove, names)
        self._isolated.clear()
        await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)

    async def close(self) -> None:
        """Release the addresses and revoke the identities. Call it after `stop`."""
        await self._identities.revoke()
        if self._network:
            self._network.close()
        else:
            give_back(int(address.rpartition(":")[2]) for address in self._addresses.values())

    async def _watch(self, member: _Member) -> None:
        status = exit_status(await member.child.wait())
        if self._machine.meter:
            self._machine.meter.finish(member.child)
        member.exit = ReplicaEnd(
            replica=member.replica,
            status=status,
            preempted=member.taken_at is not None,
        )
        self._ended.set()

    def _keep(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)


class ReplicaIdentities:
    """One identity for each replica, see `trainstack.gateway.identity`, kept across its restarts.

    Without `identities`, replicas get no variables.
    """

    def __init__(
        self, identities: WorkloadIdentities | None, job: VertexJob, network: Network | None = None
    ) -> None:
        """`network` is the job's, with the listeners that `Machine.open_network` makes."""
        self._identities = identities
        # Those that all replicas share, then one for each replica.
        listeners = network.listeners if network else ()
        self._shared = listeners[: max(0, len(listeners) - len(job.replicas))]
        self._listeners = dict(zip(job.replicas, listeners[len(self._shared) :], strict=False))
        self._admitted: list[asyncio.Server] = []
        self._job_id = job.job_id
        self._zone = f"{job.location}-a"
        self.email = job.message.job_spec.service_account or default_account(job.project)
        """The service account of all of them."""
        self._issued: dict[JobReplica, WorkloadIdentity] = {}

    @property
    def trust(self) -> Path | None:
        """The folder that the variables name, to be mounted for isolated replicas."""
        return self._identities.trust if self._identities else None

    async def variables(self, replica: JobReplica) -> Mapping[str, str]:
        """The replica's environment variables. Raises `OSError` if no port is free."""
        if self._identities is None:
            return {}
        if self._shared:
            shared, self._shared = self._shared, ()
            self._admitted = await self._identities.admit(shared)
        if replica not in self._issued:
            principal = Principal(kind="replica", name=f"{self._job_id}/{replica.name}", email=self.email)
            self._issued[replica] = await self._identities.issue(
                principal, zone=self._zone, listener=self._listeners.get(replica)
            )
        return self._issued[replica].variables

    async def revoke(self) -> None:
        """Revoke every identity and its token, and close the way to the gateway."""
        admitted, self._admitted = self._admitted, []
        for server in admitted:
            server.close()
        issued, self._issued = list(self._issued.values()), {}
        for identity in issued:
            if self._identities:
                await self._identities.revoke(identity)
