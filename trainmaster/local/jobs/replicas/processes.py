"""Replicas as processes of this machine, with the image's files and the buckets at their paths by mounts or links."""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.local.jobs.images.indexes import settings_of_uv
from trainmaster.local.jobs.images.package_runner import INDEXES
from trainmaster.local.jobs.replicas import rootfs
from trainmaster.local.jobs.replicas.isolation import Placement, Start
from trainmaster.local.process import SYSTEM_PATH

GCS_ROOT = "TRAINMASTER_GCS_ROOT"


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Processes of this machine; the folders of `buckets` are the buckets.

    Attributes:
        private: whether each runs in a PID namespace with a private root.
        grace_s: seconds that each has to end by itself once the stack has been killed.
    """

    buckets: Path
    private: bool
    grace_s: float = 2.0

    def start_of(self, placement: Placement) -> Start:
        """The launcher with a plan: it confines the program, runs it and ends as it does."""
        for name in ("home", "tmp", "root"):
            (placement.scratch / name).mkdir(parents=True)
        if placement.program.is_package:
            self._write_indexes(placement.scratch / INDEXES)
        plan = placement.scratch / "plan.json"
        plan.write_text(json.dumps(self._plan(placement)), encoding="utf-8")
        return Start(
            argv=[sys.executable, "-I", "-S", str(rootfs.LAUNCHER), str(plan)],
            env=self._environment(placement),
        )

    def _write_indexes(self, path: Path) -> None:
        """Written to a file that only this user can read: the URLs may have passwords."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(settings_of_uv(os.environ, home=Path.home()).indexes), encoding="utf-8")

    def remove(self, names: Sequence[str]) -> None:
        """Does nothing: a process leaves files only in its scratch directory."""

    def _plan(self, placement: Placement) -> dict[str, object]:
        image = placement.program.image
        return {
            "private": self.private,
            "root": str(placement.scratch / "root"),
            "steps": rootfs.private_steps(image, self.buckets)
            if self.private
            else rootfs.linked_steps(image),
            "workdir": image.workdir,
            "argv": placement.program.command_line,
            "grace_s": self.grace_s,
            "stack": os.getpid(),
        }

    def _environment(self, placement: Placement) -> dict[str, str]:
        """The whole environment. It inherits nothing from this process."""
        image = placement.program.image
        ours = {} if self.private else {GCS_ROOT: str(self.buckets)}
        return {
            "HOME": str(placement.scratch / "home"),
            "LANG": "C.UTF-8",
            **placement.program.variables,
            "PATH": f"{placement.program.python.parent}:{image.env.get('PATH', SYSTEM_PATH)}",
            **placement.variables(**ours),
            "TMPDIR": str(placement.scratch / "tmp"),
        }
