"""One replica: the machine it runs on, its whole environment, and the plan by which it becomes its program."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.local.jobs.images.programs import Container, Program, Provided
from trainmaster.local.jobs.replicas import cluster, rootfs
from trainmaster.local.jobs.replicas.cluster import Cluster
from trainmaster.local.jobs.replicas.containers import Containers
from trainmaster.local.jobs.replicas.rootfs import Mounts
from trainmaster.local.jobs.replicas.variables import expanded
from trainmaster.local.jobs.resource.replica import Replica
from trainmaster.local.process import SYSTEM_PATH, ProcessGuard

GCS_ROOT = "TRAINMASTER_GCS_ROOT"


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What every job of one stack shares.

    Attributes:
        images: image by repository, as `images.repository_of` gives it.
        buckets: the directory whose folders are the buckets.
        scratch: a directory of short path that is the stack's own to fill and to empty.
        grace_s: from SIGTERM to SIGKILL.
        containers: runs images that were built; None where every replica is a process.
        only_containers: a job whose image is not there fails, though a source tree is provided.
    """

    guard: ProcessGuard
    images: Mapping[str, Path]
    buckets: Path
    scratch: Path
    mounts: Mounts
    grace_s: float
    containers: Containers | None = None
    only_containers: bool = False

    @property
    def provided(self) -> Provided:
        """What images jobs may name."""
        find = self.containers.find if self.containers is not None else None
        return Provided(images=self.images, find=find, only_containers=self.only_containers)


@dataclass(frozen=True, kw_only=True)
class Start:
    """How a replica's process is started: its command, its whole environment, and the name of its container."""

    argv: list[str]
    env: dict[str, str]
    container: str = ""


def start_of(
    machine: Machine, common: Cluster, replica: Replica, *, program: Program, scratch: Path, name: str
) -> Start:
    """How to start a replica, with the scratch directory that this makes for it. `name` is for its container."""
    if program.container is not None and machine.containers is not None:
        scratch.mkdir(parents=True)
        argv = _container_argv(machine.containers, program.container, machine, common, replica,
                               program=program, scratch=scratch, name=name)  # fmt: skip
        return Start(argv=argv, env=machine.containers.surroundings(), container=name)
    plan = prepare(machine, scratch, program)
    return Start(
        argv=[sys.executable, "-I", "-S", str(rootfs.LAUNCHER), str(plan)],
        env=environment(machine, common, replica, program=program, scratch=scratch),
    )


def _container_argv(
    containers: Containers,
    container: Container,
    machine: Machine,
    common: Cluster,
    replica: Replica,
    *,
    program: Program,
    scratch: Path,
    name: str,
) -> list[str]:
    service = cluster.environment(common, replica, program.environment)
    volumes = [(machine.buckets, "/gcs")]
    if common.metrics_dir:  # where the replica's variables say that its metric file is
        volumes.append((Path(common.metrics_dir), common.metrics_dir))
    return containers.argv(
        container,
        name=name,
        env={**expanded(program.env, known=service), **service},
        env_file=scratch / "variables",
        volumes=volumes,
    )


def environment(
    machine: Machine, common: Cluster, replica: Replica, *, program: Program, scratch: Path
) -> dict[str, str]:
    """The whole environment of a replica. Nothing of this process's own environment is in it."""
    service = cluster.environment(common, replica, program.environment)
    image = program.image
    search = f"{Path(sys.executable).parent}:{image.env.get('PATH', SYSTEM_PATH)}"
    if machine.mounts is Mounts.ENVIRONMENT:
        service[GCS_ROOT] = str(machine.buckets)
    found = {"HOME": str(scratch / "home"), "LANG": "C.UTF-8", **image.env, "PATH": search}
    found |= expanded(program.env, known=service)
    return {**found, **service, "TMPDIR": str(scratch / "tmp")}


def prepare(machine: Machine, scratch: Path, program: Program) -> Path:
    """The plan for `launch.py`, in a scratch directory that this makes."""
    private = machine.mounts is Mounts.PRIVATE
    for name in ("home", "tmp", "root"):
        (scratch / name).mkdir(parents=True)
    image = program.image
    steps = rootfs.private_steps(image, machine.buckets) if private else rootfs.linked_steps(image)
    plan = {
        "private": private,
        "root": str(scratch / "root"),
        "steps": steps,
        "workdir": image.workdir,
        "argv": program.argv,
    }
    path = scratch / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    return path


def default_capacity() -> int:
    """How many replicas this machine runs at once unless told: four for each processor."""
    return 4 * (os.cpu_count() or 1)
