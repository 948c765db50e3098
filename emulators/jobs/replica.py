"""The processes of one attempt of a job, one for each replica."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emulators.jobs import cluster, rootfs
from emulators.jobs.cluster import Cluster, Replica
from emulators.jobs.images import Image
from emulators.jobs.lifecycle import exit_status
from emulators.jobs.ports import free_ports, give_back
from emulators.jobs.rootfs import Mounts
from emulators.jobs.service_log import JobLog
from emulators.jobs.variables import expanded
from emulators.process import Child, ProcessGuard

GCS_ROOT = "TRAINMASTER_GCS_ROOT"
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# protobuf's generated messages have no types of their own.
Message = Any


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What every job of one stack shares.

    Attributes:
        images: image by repository, as `images.repository_of` gives it.
        buckets: the directory whose folders are the buckets.
        scratch: a directory of short path that is the stack's own to fill and to empty.
        grace_s: from SIGTERM to SIGKILL.
    """

    guard: ProcessGuard
    images: Mapping[str, Path]
    buckets: Path
    scratch: Path
    mounts: Mounts
    grace_s: float


class Team:
    """The replicas of one job: started, started again, ended; their exits, one after the other.

    Addresses are chosen once, so a replica that is started again has the address it had.
    """

    def __init__(
        self,
        *,
        machine: Machine,
        log: JobLog,
        containers: Mapping[int, tuple[Image, Message]],
        common: Cluster,
    ) -> None:
        """Nothing runs yet. `containers` has an image and a containerSpec for each pool with replicas."""
        self._machine = machine
        self._log = log
        self._containers = containers
        self._common = common
        self._children: dict[Replica, Child] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._exits: asyncio.Queue[tuple[Replica, Child, int]] = asyncio.Queue()
        self._scratch = machine.scratch / common.job_id[-8:]
        self._starts = 0

    async def start_all(self) -> None:
        """Start every replica."""
        for replica in sorted(self._common.addresses):
            await self.start(replica)

    async def start(self, replica: Replica) -> None:
        """Start one replica that does not run, with fresh scratch directories."""
        image, container = self._containers[replica.pool]
        self._starts += 1
        scratch = self._scratch / str(self._starts)
        plan = await asyncio.to_thread(_prepare, self._machine, scratch, image, container)
        child = self._machine.guard.start(
            [sys.executable, "-I", "-S", str(rootfs.LAUNCHER), str(plan)],
            env=environment(
                self._machine, self._common, replica, image=image, container=container, scratch=scratch
            ),
            cwd=scratch,
            on_lines=lambda stream, lines: self._log.worker(replica.name, stream, lines),
        )
        self._children[replica] = child
        watcher = asyncio.create_task(self._watch(replica, child))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    async def next_exit(self) -> tuple[Replica, int]:
        """The next replica that ended by itself, and its exit status (0 to 255)."""
        while True:
            replica, child, code = await self._exits.get()
            if self._children.get(replica) is child:
                return replica, exit_status(code)

    async def stop(self) -> None:
        """End every replica at once, each with its grace, and remove what they wrote to scratch."""
        children, self._children = list(self._children.values()), {}
        await asyncio.gather(*(child.stop(grace_s=self._machine.grace_s) for child in children))
        await asyncio.gather(*self._watchers)
        await asyncio.to_thread(shutil.rmtree, self._scratch, ignore_errors=True)

    def close(self) -> None:
        """Give the addresses back. After `stop`."""
        give_back(int(address.rpartition(":")[2]) for address in self._common.addresses.values())

    async def _watch(self, replica: Replica, child: Child) -> None:
        code = await child.wait()
        self._exits.put_nowait((replica, child, code))


def addresses_of(replicas: tuple[Replica, ...]) -> dict[Replica, str]:
    """A free address on this machine for each replica. `Team.close` gives them back.

    The service's are `cmle-training-workerpoolN-<id>-<index>:2222`; on one machine it is the port that differs.
    """
    return {
        replica: f"127.0.0.1:{port}"
        for replica, port in zip(replicas, free_ports(len(replicas)), strict=True)
    }


def environment(
    machine: Machine, common: Cluster, replica: Replica, *, image: Image, container: Message, scratch: Path
) -> dict[str, str]:
    """The whole environment of a replica. Nothing of this process's own environment is in it."""
    service = cluster.environment(common, replica)
    search = f"{Path(sys.executable).parent}:{image.env.get('PATH', _SYSTEM_PATH)}"
    if machine.mounts is Mounts.ENVIRONMENT:
        service[GCS_ROOT] = str(machine.buckets)
    found = {"HOME": str(scratch / "home"), "LANG": "C.UTF-8", **image.env, "PATH": search}
    found |= expanded([(variable.name, variable.value) for variable in container.env], known=service)
    return {**found, **service, "TMPDIR": str(scratch / "tmp")}


def _prepare(machine: Machine, scratch: Path, image: Image, container: Message) -> Path:
    private = machine.mounts is Mounts.PRIVATE
    for name in ("home", "tmp", "root"):
        (scratch / name).mkdir(parents=True)
    steps = rootfs.private_steps(image, machine.buckets) if private else rootfs.linked_steps(image)
    plan = {
        "private": private,
        "root": str(scratch / "root"),
        "steps": steps,
        "workdir": image.workdir,
        "argv": image.argv(command=list(container.command), args=list(container.args)),
    }
    path = scratch / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    return path


def default_capacity() -> int:
    """How many replicas this machine runs at once unless told: four for each processor."""
    return 4 * (os.cpu_count() or 1)
