"""Isolation of replicas from this machine: the start of each one, and what it leaves behind."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from trainstack.gateway.identity import WorkloadIdentities
from trainstack.jobs.images.environments import Environments
from trainstack.jobs.images.programs import PoolProgram, Provided
from trainstack.monitoring.meter import Meter
from trainstack.process.processes import ProcessGuard
from trainstack.sandbox.network import Network, open_network

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


@dataclass(frozen=True, kw_only=True)
class Placement:
    """One start of a replica.

    Attributes:
        program: what it runs.
        service: the variables that the service sets.
        defaults: those of the service that the pool's own replace.
        scratch: a new directory for this start alone.
        name: unique on this machine.
        trust: the folder of certificate authorities that its variables name; None if they name none.
        account: the email of the service account that it runs as.
        network: its job's network; None for this machine's.
    """

    program: PoolProgram
    service: Mapping[str, str]
    scratch: Path
    name: str
    defaults: Mapping[str, str] = field(default_factory=dict)
    trust: Path | None = None
    account: str = ""
    network: Network | None = None

    def variables(self, **more: str) -> dict[str, str]:
        """The pool's variables with their references resolved, overridden by the service's and `more`."""
        service = {**self.service, **more}
        known = {**self.defaults, **service}
        return {**self.defaults, **expanded_variables(self.program.env, known=known), **service}


@dataclass(frozen=True, kw_only=True)
class ReplicaStart:
    """How a replica's process is started: its command, its whole environment, and the descriptors that it inherits."""

    argv: list[str]
    env: dict[str, str]
    descriptors: tuple[int, ...] = ()


class Isolation(Protocol):
    """One way to run replicas."""

    def start_of(self, placement: Placement) -> ReplicaStart:
        """How to start a replica; creates what it needs in its scratch directory."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove what the replicas of these names left outside their scratch directories."""


@dataclass(frozen=True, kw_only=True)
class ReplicaHost:
    """Settings that all jobs of one stack share.

    Attributes:
        provided: the images that jobs may name.
        environments: the Python environments of those images.
        scratch: a directory with a short path, owned by the stack.
        grace_s: seconds from SIGTERM to SIGKILL.
        processes: runs programs that have no container.
        containers: runs built images; None if every replica is a process.
        identities: lets replicas' clients reach the stack as Google Cloud; None if they must be configured with addresses.
        confined: whether each job has a separate network, with only its replicas, the gateway and their metadata servers.
        meter: samples what each replica uses; None for a service that runs without Cloud Monitoring.
    """

    guard: ProcessGuard
    provided: Provided
    environments: Environments
    scratch: Path
    grace_s: float
    processes: Isolation
    containers: Isolation | None = None
    identities: WorkloadIdentities | None = None
    confined: bool = False
    meter: Meter | None = None

    def open_network(self, replicas: int) -> Network | None:
        """A job's network, with listeners for `WorkloadIdentities.ports` and one for each replica's metadata server.

        None if jobs share this machine's network. Raises `OSError`.
        """
        if not self.confined:
            return None
        return open_network([*self.identities.ports, *[0] * replicas] if self.identities else [])

    def isolation_of(self, program: PoolProgram) -> Isolation:
        return self.containers if program.container and self.containers else self.processes


def expanded_variables(variables: Iterable[tuple[str, str]], *, known: Mapping[str, str]) -> dict[str, str]:
    """The variables with their references resolved from `known` and from those before them in the list.

    Source: the comments of google.cloud.aiplatform.v1.EnvVar: `$(NAME)` expands a variable defined earlier,
    an unresolvable reference stays as it is, and `$$` stands for one dollar sign.
    """
    resolved: dict[str, str] = {}

    def text(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else resolved.get(name, known.get(name, match[0]))

    for name, value in variables:
        resolved[name] = _REFERENCE.sub(text, value)
    return resolved


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read."""
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")
