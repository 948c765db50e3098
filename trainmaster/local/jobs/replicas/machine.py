"""What every job of one stack shares: the images there are, and the ways to run a replica."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmaster.local.jobs.images.programs import Program, Provided
from trainmaster.local.jobs.replicas.containers import Containers
from trainmaster.local.jobs.replicas.isolation import Isolation
from trainmaster.local.process import ProcessGuard


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where replicas run.

    Attributes:
        images: image by repository, as `images.repository_of` gives it.
        scratch: a directory of short path that is the stack's own to fill and to empty.
        grace_s: from SIGTERM to SIGKILL.
        processes: runs what has no container.
        containers: runs images that were built; None where every replica is a process.
        only_containers: a job whose image is not there fails, though a source tree is provided.
    """

    guard: ProcessGuard
    images: Mapping[str, Path]
    scratch: Path
    grace_s: float
    processes: Isolation
    containers: Containers | None = None
    only_containers: bool = False

    @property
    def provided(self) -> Provided:
        """What images jobs may name."""
        find = self.containers.find if self.containers is not None else None
        return Provided(images=self.images, find=find, only_containers=self.only_containers)

    def isolation_of(self, program: Program) -> Isolation:
        """What runs the replicas of this program."""
        if program.container is not None and self.containers is not None:
            return self.containers
        return self.processes
