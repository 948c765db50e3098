"""Replicas as real containers, run by podman from built images.

The container is in its job's network, or in this machine's, so that `127.0.0.1:PORT` reaches every replica, and sees
buckets under /gcs. It has a PID namespace, so everything that it starts ends with it. `ProcessGuard`
supervises podman's process, which stays in the foreground, forwards signals and ends with the container's
exit status. The guard's mark is in the container's environment, so the container ends with the stack.

Source of the flags: podman-run(1), version 4.3.

podman needs no daemon, so a container is a child of the stack and ends with it; a Docker engine's would outlive a
killed stack.
"""

import json
import os
import resource
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainstack.iam.service import Grants
from trainstack.jobs.images.dockerfile import repository_of
from trainstack.jobs.images.programs import PoolContainer
from trainstack.jobs.replicas.isolation import Placement, ReplicaStart, write_private
from trainstack.jobs.replicas.shares import shares_of
from trainstack.process.family import MARK
from trainstack.process.processes import SYSTEM_PATH

LABEL = "trainmaster.stack"
# The variables of this machine that podman needs; a job's variables must not affect podman.
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
        oci_runtime: path of podman's OCI runtime; empty for podman's default. That is crun, which refuses machines where
            both versions of control groups are mounted.
        buckets: the directory whose folders are the buckets; mounted at `/gcs` in a replica.
        stack: the label of the stack's containers, by which the next stack finds leftovers.
        registry: `host:port` on loopback that replaces every registry in image names; empty if none does.
        grants: decide which buckets a job's account may use; None shows every job all buckets.
    """

    podman: str
    buckets: Path
    stack: str
    registry: str = ""
    grants: Grants | None = None
    oci_runtime: str = field(default_factory=lambda: shutil.which("runc", path=SYSTEM_PATH) or "")

    def find(self, uri: str) -> PoolContainer | None:
        """The image by its name in podman's store; None if it is neither there nor in the registry.

        A registry takes precedence: a tag is looked up there each time, because it may have moved.
        """
        name = (self._pull_image(uri) if self.registry else None) or uri
        inspected = self._call("image", "inspect", "--format", "{{.Config.User}}", name)
        if inspected.returncode != 0:
            return None
        user = inspected.stdout.strip().partition(":")[0]
        return PoolContainer(image=name, is_root=user in _ROOT)

    def start_of(self, placement: Placement) -> ReplicaStart:
        """The podman command of the container, with podman's environment.

        The container's variables are in a file that only this user can read, not on the command line, which
        every user of the machine can read. Multi-line values are put on the command line, because the file
        has one variable a line.
        """
        container = placement.program.container
        if container is None:
            raise ValueError(f"{placement.name} is not a container")
        env = placement.variables()
        one_line = {key: value for key, value in env.items() if "\n" not in value}
        env_file = placement.scratch / "variables"
        env_file.parent.mkdir(parents=True)
        write_private(env_file, "".join(f"{key}={value}\n" for key, value in one_line.items()))
        words = [self.podman, *(["--runtime", self.oci_runtime] if self.oci_runtime else []), "run", "--rm"]
        words += ["--name", placement.name, "--label", f"{LABEL}={self.stack}"]
        # This process keeps the job's network by a descriptor.
        network = f"ns:/proc/{os.getpid()}/fd/{placement.network.net}" if placement.network else "host"
        words += ["--network", network, "--pull", "never", "--log-driver", "none"]
        words += ["--env-file", str(env_file)]
        words += ["--env", MARK]  # the value is inherited from podman, to which the guard passes it
        words += [f"--env={key}={value}" for key, value in env.items() if key not in one_line]
        # With Cloud Storage FUSE, the image's user can write to buckets; here the buckets belong to this
        # user.
        words += ["--cap-add", "DAC_OVERRIDE"]
        words += [f"--ulimit={limit}" for limit in limits()]
        words += self._volumes(placement.account)
        if metric_file := placement.service.get("CLOUD_ML_HP_METRIC_FILE"):
            folder = Path(metric_file).parent
            # In the service, only root can write to /var/hypertune:
            # https://github.com/GoogleCloudPlatform/cloudml-hypertune/issues/6
            words.append(f"--volume={folder}:{folder}{'' if container.is_root else ':ro'}")
        if placement.trust:
            words.append(f"--volume={placement.trust}:{placement.trust}:ro")
        if container.command:
            words.append(f"--entrypoint={json.dumps(container.command)}")
        return ReplicaStart(argv=[*words, container.image, *container.args], env=_podmans_environment())

    def _volumes(self, account: str) -> list[str]:
        shares = shares_of(account, self.grants, self.buckets)
        if shares is None:
            return [f"--volume={self.buckets}:/gcs"]
        modes = {True: "rw", False: "ro"}
        return [
            f"--volume={self.buckets / share.path}:/gcs/{share.path}:{modes[share.writable]}"
            for share in shares
        ]

    def remove(self, names: Sequence[str]) -> None:
        """Remove these containers, running or not. Containers that are gone already are ignored."""
        if names:
            self._call("rm", "--force", "--ignore", "--time", "0", *names)

    def remove_leftovers(self) -> None:
        """Remove containers left behind by an earlier stack with the same state that was killed."""
        listed = self._call("ps", "--all", "--quiet", "--filter", f"label={LABEL}={self.stack}")
        self.remove(listed.stdout.split())

    def _pull_image(self, uri: str) -> str | None:
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


def podman_here() -> str:
    """The path of this machine's podman.

    Raises:
        RuntimeError: podman is missing, or this user is not root: the user of a container could not write to
            the buckets, which belong to this user.
    """
    podman = shutil.which("podman", path=SYSTEM_PATH)
    if podman is None:
        raise RuntimeError(
            "runtime=container, but replicas cannot run as containers: podman is not installed. On Debian: apt-get install podman runc"
        )
    if os.geteuid() != 0:
        raise RuntimeError(
            "runtime=container, but only root can run replicas as containers: under another user's podman, the files they write "
            "would belong to that podman's subordinate users. Run as root, or use --runtime process."
        )
    return podman


def mirrored_name(uri: str, registry: str) -> str:
    """The image with the same path, tag and digest in `registry`, whatever registry `uri` names."""
    first, slash, path = uri.partition("/")
    # Docker's rule: the first part is a registry only if it has a dot or a colon, or is localhost.
    is_host = slash and (any(sign in first for sign in ".:") or first == "localhost")
    named = path if is_host else uri
    if "@" in named:  # the digest identifies it; podman refuses a tag with a digest
        return f"{registry}/{repository_of(named)}@{named.partition('@')[2]}"
    return f"{registry}/{named}"


def limits() -> list[str]:
    """This process's limits as podman options: podman's defaults are higher, and raising limits needs a capability.

    podman lowers the limit of processes to the kernel's number of pids.
    """
    pids = int(_PID_MAX.read_text())
    flags = []
    for name, number in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
        soft, hard = resource.getrlimit(number)
        if name == "nproc":
            soft, hard = (
                pids if limit == resource.RLIM_INFINITY else min(limit, pids) for limit in (soft, hard)
            )
        flags.append(f"{name}={soft}:{hard}")
    return flags
