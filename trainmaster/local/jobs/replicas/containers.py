"""Replicas as real containers, run by podman from images that were really built.

The container shares this machine's network, so that `127.0.0.1:PORT` reaches every replica, and sees the buckets
under /gcs. It is the replica's process that `ProcessGuard` watches over: podman stands in the foreground, hands
signals on and ends with the container's exit status; the guard's mark is in the container's environment, so
whatever ends the stack ends the container too.

Source of the flags: podman-run(1), version 4.3.
"""

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.local.jobs.images.dockerfile import repository_of
from trainmaster.local.jobs.images.programs import Container
from trainmaster.local.jobs.replicas.isolation import Placement, Start
from trainmaster.local.process import SYSTEM_PATH
from trainmaster.local.process.family import MARK

LABEL = "trainmaster.stack"
# What podman itself needs of this machine; the job's own variables must not steer it.
_PODMANS_OWN = ("HOME", "XDG_RUNTIME_DIR", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "TMPDIR")
_ROOT = ("", "0", "root")
_PID_MAX = Path("/proc/sys/kernel/pid_max")
_CALL_S = 60.0
_PULL_S = 1800.0


@dataclass(frozen=True, kw_only=True)
class Containers:
    """The podman of this machine.

    Attributes:
        podman: its path.
        oci_runtime: the path of the program that makes containers for it; empty for podman's own choice.
        buckets: the directory whose folders are the buckets; `/gcs` to a replica.
        stack: what the stack's containers are labelled with, so that the next stack finds what one left.
        registry: `host:port` on loopback that stands for every registry in an image's name; empty where none does.
    """

    podman: str
    oci_runtime: str
    buckets: Path
    stack: str
    registry: str = ""

    def find(self, uri: str) -> Container | None:
        """The image by a name that podman's store knows; None where it is neither there nor in the registry.

        With a registry, it has the last word: a tag is looked up there each time, because it may have moved.
        """
        name = (self._pulled(uri) if self.registry else None) or uri
        inspected = self._call("image", "inspect", "--format", "{{.Config.User}}", name)
        if inspected.returncode != 0:
            return None
        user = inspected.stdout.strip().partition(":")[0]
        return Container(image=name, is_root=user in _ROOT)

    def start_of(self, placement: Placement) -> Start:
        """The command that becomes the container, in podman's own environment.

        The container's variables stand in a file readable to this user alone, and not on the command line, which
        everyone on the machine can read; only a value of several lines must, for the file has one variable a line.
        """
        container = placement.program.container
        if container is None:
            raise ValueError(f"{placement.name} is no container")
        env = placement.variables()
        one_line = {key: value for key, value in env.items() if "\n" not in value}
        env_file = placement.scratch / "variables"
        _write_private(env_file, [f"{key}={value}\n" for key, value in one_line.items()])
        words = [self.podman, *(["--runtime", self.oci_runtime] if self.oci_runtime else []), "run", "--rm"]
        words += ["--name", placement.name, "--label", f"{LABEL}={self.stack}"]
        words += ["--network", "host", "--pull", "never", "--log-driver", "none", "--env-file", str(env_file)]
        words += ["--env", MARK]  # the value is podman's own, which the guard gives it
        words += [f"--env={key}={value}" for key, value in env.items() if key not in one_line]
        # Cloud Storage FUSE lets whoever the image's user is write; here the buckets belong to this user.
        words += ["--cap-add", "DAC_OVERRIDE"]
        words += [f"--ulimit={limit}" for limit in limits()]
        words.append(f"--volume={self.buckets}:/gcs")
        if metric_file := placement.service.get("CLOUD_ML_HP_METRIC_FILE"):
            folder = Path(metric_file).parent
            # /var/hypertune can be written by root alone in the service:
            # https://github.com/GoogleCloudPlatform/cloudml-hypertune/issues/6
            words.append(f"--volume={folder}:{folder}{'' if container.is_root else ':ro'}")
        if placement.trust:
            words.append(f"--volume={placement.trust}:{placement.trust}:ro")
        if container.command:
            words.append(f"--entrypoint={json.dumps(container.command)}")
        return Start(argv=[*words, container.image, *container.args], env=_podmans_environment())

    def remove(self, names: Sequence[str]) -> None:
        """Remove these containers, running or not. Those that are gone are no error."""
        if names:
            self._call("rm", "--force", "--ignore", "--time", "0", *names)

    def remove_leftovers(self) -> None:
        """Remove what an earlier stack on the same state left behind when it was killed."""
        listed = self._call("ps", "--all", "--quiet", "--filter", f"label={LABEL}={self.stack}")
        self.remove(listed.stdout.split())

    def _pulled(self, uri: str) -> str | None:
        mirrored = mirrored_name(uri, self.registry)
        pulled = self._call("pull", "--quiet", "--tls-verify=false", mirrored, within_s=_PULL_S)
        return mirrored if pulled.returncode == 0 else None

    def _call(self, *words: str, within_s: float = _CALL_S) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.podman, *words],
            env=_podmans_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
        )


def _podmans_environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PODMANS_OWN if name in os.environ}
    return {**kept, "PATH": SYSTEM_PATH}


def _write_private(path: Path, lines: Sequence[str]) -> None:
    path.parent.mkdir(parents=True)
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(lines)


def containers_here(*, buckets: Path, stack: str, registry: str = "") -> Containers:
    """The podman of this machine.

    Raises:
        RuntimeError: there is none, or this user is not root: a container's own user could then
            not write to the buckets, which belong to this one.
    """
    podman = shutil.which("podman", path=SYSTEM_PATH)
    if podman is None:
        raise RuntimeError(
            "runtime=container, but replicas cannot run as containers: podman is not installed. On Debian: apt-get install podman runc"
        )
    if os.geteuid() != 0:
        raise RuntimeError(
            "runtime=container, but replicas run as containers for root alone: under another user's podman the files they write "
            "would belong to users of its own. Run as root, or use --runtime process."
        )
    # runc first: crun, which podman would take, refuses machines where both versions of control groups are mounted.
    return Containers(
        podman=podman,
        oci_runtime=shutil.which("runc", path=SYSTEM_PATH) or "",
        buckets=buckets,
        stack=stack,
        registry=registry,
    )


def mirrored_name(uri: str, registry: str) -> str:
    """The image of the same path, tag and digest in `registry`, whatever registry `uri` names."""
    first, slash, path = uri.partition("/")
    # As docker has it: only a first part with a dot, a colon or the word localhost is a registry.
    is_host = slash and (any(sign in first for sign in ".:") or first == "localhost")
    named = path if is_host else uri
    if "@" in named:  # the digest alone says which; podman refuses both
        return f"{registry}/{repository_of(named)}@{named.partition('@')[2]}"
    return f"{registry}/{named}"


def limits() -> list[str]:
    """This process's own limits, as podman takes them: its defaults are higher, and raising them needs a capability.

    podman lowers its own number of processes to the kernel's number of pids.
    """
    pids = int(_PID_MAX.read_text())
    found = []
    for name, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        soft, hard = resource.getrlimit(number)
        if name == "nproc":
            soft, hard = (
                pids if limit == resource.RLIM_INFINITY else min(limit, pids) for limit in (soft, hard)
            )
        found.append(f"{name}={soft}:{hard}")
    return found
