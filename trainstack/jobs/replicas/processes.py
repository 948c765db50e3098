"""Replicas as processes of this machine, with the image's files and the buckets at their paths by mounts or links."""

import json
import marshal
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainstack.iam.service import Grants
from trainstack.jobs.images.dockerfile import DockerfileImage
from trainstack.jobs.images.indexes import local_indexes, settings_of_uv
from trainstack.jobs.images.layout import find
from trainstack.jobs.images.package_runner import ENVIRONMENT, INDEXES
from trainstack.jobs.images.programs import PACKAGE_RUNNER
from trainstack.jobs.images.views import layer_environment
from trainstack.jobs.replicas import rootfs
from trainstack.jobs.replicas.isolation import Placement, ReplicaStart, write_private
from trainstack.jobs.replicas.shares import shares_of
from trainstack.process.processes import SYSTEM_PATH
from trainstack.sandbox.limits import remove_group
from trainstack.sandbox.probe import LAUNCHER

GCS_ROOT = "TRAINMASTER_GCS_ROOT"
PYTHON_PATH = "PYTHONPATH"
_SHARED_TMP = "shared-tmp"
"""The folder that is a confined replica's /tmp; TMPDIR is another one."""
_GROUPS_END_S, _PAUSE_S = 5.0, 0.02


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Processes of this machine; the folders of `buckets` are the buckets.

    Attributes:
        private: whether each runs in a PID namespace with a private root.
        grace_s: seconds that each has to end by itself once the stack has been killed.
        hidden: the stack's folder, for replicas that see neither it nor most of this machine's other files; None to show
            all files and every bucket. Needs `private`.
        grants: decide which buckets a job's account may then use; None for every bucket.
    """

    buckets: Path
    private: bool
    grace_s: float = 2.0
    hidden: Path | None = None
    grants: Grants | None = None

    def start_of(self, placement: Placement) -> ReplicaStart:
        """The launcher with a plan: it confines the program, runs it and ends as it does."""
        for name in ("home", "tmp", "root", *([_SHARED_TMP] if self.hidden else [])):
            (placement.scratch / name).mkdir(parents=True)
        layer_environment(placement.scratch / ENVIRONMENT, placement.program.python.parent.parent)
        if placement.program.is_package:
            indexes = settings_of_uv(os.environ, home=Path.home()).indexes
            write_private(placement.scratch / INDEXES, json.dumps(indexes))  # the URLs may have passwords
        plan = placement.scratch / "plan"
        plan.write_bytes(marshal.dumps(self._plan(placement)))
        return ReplicaStart(
            argv=[sys.executable, "-I", "-S", str(LAUNCHER), str(plan)],
            env=self._environment(placement),
            descriptors=_namespaces(placement),
        )

    def remove(self, names: Sequence[str]) -> None:
        """Remove control groups that killed launchers left; the kernel may still be ending the processes in them."""
        deadline = time.monotonic() + _GROUPS_END_S
        for name in names if self.private else ():
            while not remove_group(name) and time.monotonic() < deadline:
                time.sleep(_PAUSE_S)

    def _plan(self, placement: Placement) -> dict[str, object]:
        image = placement.program.image
        return {
            "private": self.private,
            "root": str(placement.scratch / "root"),
            "steps": self._steps(placement),
            "workdir": image.workdir,
            "argv": placement.program.command_line,
            "grace_s": self.grace_s,
            "stack": os.getpid(),
            "name": placement.name,
            "network": _namespaces(placement) or None,
        }

    def _steps(self, placement: Placement) -> Sequence[rootfs.Step]:
        image = placement.program.image
        if self.hidden is not None:
            return rootfs.confined_steps(image, self._view(placement, self.hidden))
        return rootfs.private_steps(image, self.buckets) if self.private else rootfs.linked_steps(image)

    def _view(self, placement: Placement, hidden: Path) -> rootfs.ReplicaView:
        metrics = placement.service.get("CLOUD_ML_HP_METRIC_FILE")
        scratch = placement.scratch
        return rootfs.ReplicaView(
            buckets=self.buckets,
            shares=shares_of(placement.account, self.grants, self.buckets),
            read_only=tuple(_programs_files(placement)),
            writable=(
                scratch / "home",
                scratch / "tmp",
                scratch / ENVIRONMENT,
                *([Path(metrics).parent] if metrics else []),
            ),
            tmp=scratch / _SHARED_TMP,
            hidden=hidden,
        )

    def _environment(self, placement: Placement) -> dict[str, str]:
        """The whole environment. It inherits nothing from this process."""
        image = placement.program.image
        ours = {} if self.private else {GCS_ROOT: str(self.buckets)}
        variables = {
            "HOME": str(placement.scratch / "home"),
            "LANG": "C.UTF-8",
            **placement.program.variables,
            "PATH": f"{placement.scratch / ENVIRONMENT / 'bin'}:{placement.program.python.parent}:{image.env.get('PATH', SYSTEM_PATH)}",
            **placement.variables(**ours),
            "TMPDIR": str(placement.scratch / "tmp"),
        }
        if PYTHON_PATH in variables and not self.private:
            variables[PYTHON_PATH] = _linked_path(variables[PYTHON_PATH], image, placement.scratch / "root")
        return variables


def _linked_path(path: str, image: DockerfileImage, root: Path) -> str:
    """A search path whose directories in the image are below `root`, where links stand for them."""
    return os.pathsep.join(
        f"{root}{folder}" if folder.startswith("/") and find(image, folder) is not None else folder
        for folder in path.split(os.pathsep)
    )


def _namespaces(placement: Placement) -> tuple[int, ...]:
    return (placement.network.user, placement.network.net) if placement.network else ()


def _programs_files(placement: Placement) -> Iterator[Path]:
    """What the program's Python, its packages and their installation are read from."""
    environment = placement.program.python.parent.parent
    for path in (environment, Path(sys.prefix), Path(sys.base_prefix)):
        yield path
        yield path.resolve()
    if placement.trust:
        yield placement.trust
    if placement.program.is_package:
        yield PACKAGE_RUNNER
        yield placement.scratch / INDEXES
        yield from local_indexes(os.environ, home=Path.home())
