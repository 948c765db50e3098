"""The cluster that this process is a replica of, and the service's other statements about it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

REDUCTION_SERVER = "/reductionserver"
"""Part of the image's URI if worker pool 2 runs reduction servers, which NCCL uses, instead of parameter servers:
https://cloud.google.com/vertex-ai/docs/training/distributed-training#reduce_training_time_with_reduction_server."""


TPU_MACHINES = ("ct", "cloud-tpu", "tpu")


class ReplicaRole(str, Enum):  # noqa: UP042 - StrEnum needs Python 3.11; prebuilt containers of other frameworks have 3.10
    """What a replica does, in TensorFlow's words."""

    CHIEF = "chief"
    WORKER = "worker"
    PARAMETER_SERVER = "ps"
    EVALUATOR = "evaluator"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class ClusterSpec:
    """This replica and the replicas that it trains with.

    `members` holds `host:port` of every chief, worker and parameter server by role. An evaluator
    is never a member, not even in its own view: it watches checkpoints and joins no collective operation.
    `evaluators` has their addresses if CLUSTER_SPEC lists them.

    Attributes:
        source: the variables that name the cluster, ` and ` between them; empty if neither does.
        trial: the trial's id in a tuning job, else empty.
        cloud: the service's internal id of this task, or empty.
        job: the job's spec as the service repeats it, field names in snake_case; empty if it does not.
        service_variables: every AIP_* and CLOUD_ML_* that is set.
        notes: what was ignored, and why.
    """

    role: ReplicaRole = ReplicaRole.CHIEF
    index: int = 0
    members: Mapping[ReplicaRole, tuple[str, ...]] = field(default_factory=dict)
    evaluators: tuple[str, ...] = ()
    source: str = ""
    trial: str = ""
    cloud: str = ""
    job: Mapping[str, Any] = field(default_factory=dict)
    service_variables: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def replica(self) -> str:
        """This process's name among its peers: `chief-0`, `worker-1`."""
        return f"{self.role}-{self.index}"

    @property
    def is_chief(self) -> bool:
        return self.role is ReplicaRole.CHIEF

    @property
    def trains(self) -> bool:
        """Whether this replica computes gradients; parameter servers and evaluators do not."""
        return self.role in {ReplicaRole.CHIEF, ReplicaRole.WORKER}

    @property
    def trainers(self) -> tuple[str, ...]:
        """Addresses of the chief and the workers, the replicas that compute gradients."""
        return self.members.get(ReplicaRole.CHIEF, ()) + self.members.get(ReplicaRole.WORKER, ())

    def replicas_of(self, *roles: ReplicaRole) -> dict[str, str]:
        """The names of the replicas of these roles by address, in order."""
        return {
            address: f"{role}-{index}"
            for role in roles
            for index, address in enumerate(self.members.get(role, ()))
        }

    @property
    def is_multi_worker(self) -> bool:
        return len(self.trainers) > 1

    @property
    def has_parameter_servers(self) -> bool:
        """Whether the training uses them: every other strategy is refused on such a cluster."""
        return ReplicaRole.PARAMETER_SERVER in self.members

    @property
    def has_reduction_servers(self) -> bool:
        """Whether worker pool 2 of the job runs Reduction Server instead of parameter servers."""
        containers = self.of_pools("container_spec")
        return any(REDUCTION_SERVER in str(container.get("image_uri")) for container in containers[2:3])

    def of_pools(self, name: str) -> list[dict[str, Any]]:
        """The field `name` of each of the job's worker pools; empty for a pool without it."""
        pools = self.job.get("worker_pool_specs")
        values = [
            pool.get(name) if isinstance(pool, dict) else None
            for pool in (pools if isinstance(pools, list) else [])
        ]
        return [value if isinstance(value, dict) else {} for value in values]

    def without_reduction_servers(self) -> "ClusterSpec":
        """The cluster for TensorFlow's strategies, which would take reduction servers for parameter servers."""
        if not (self.trains and self.has_reduction_servers):
            return self
        members = dict(self.members)
        members.pop(ReplicaRole.PARAMETER_SERVER, None)
        note = "Worker pool 2 runs reduction servers, which this program does not use"
        return replace(self, members=members, notes=(*self.notes, note))

    def on_this_host(self, addresses: Iterable[str]) -> list[str]:
        """Those that have the host of this replica, which must be a member."""
        host = host_of(self.members[self.role][self.index])
        return [address for address in addresses if host_of(address) == host]

    @property
    def trainers_on_this_host(self) -> int:
        """How many training processes share this machine's processors, this one included; at least 1."""
        return len(self.on_this_host(self.trainers)) if self.is_multi_worker and self.trains else 1

    def description(self) -> str:
        """One line with everything that was read, and from which variable."""
        sentences = [self._place_sentence()]
        if self.trial:
            sentences.append(f"It is part of trial {self.trial}.")
        if self.job:
            sentences.append(f"The job spec has {', '.join(self.job)}.")
        if self.service_variables:
            values = ", ".join(f"{name}={value}" for name, value in self.service_variables.items())
            sentences.append(f"Also set: {values}.")
        return " ".join((*sentences, *(f"{note}." for note in self.notes))).replace("\n", " ")

    def _place_sentence(self) -> str:
        if not self.source:
            return "Neither TF_CONFIG nor CLUSTER_SPEC names a cluster: this process trains alone."
        counts = [f"{len(addresses)} {role}" for role, addresses in self.members.items()]
        beside = f", and {len(self.evaluators)} evaluator" if self.evaluators else ""
        return (
            f"This is {self.replica} of a cluster of {', '.join(counts) or 'no members'}{beside} "
            f"(from {self.source})."
        )


def host_of(address: str) -> str:
    """The host of `host:port`, an IPv6 address with its brackets."""
    return address.rpartition(":")[0]


def is_tpu(machine: Mapping[str, Any]) -> bool:
    """Whether a `machine_spec`, its field names in snake_case, is one of TPUs."""
    return bool(
        machine.get("tpu_topology")
        or str(machine.get("accelerator_type")).startswith("TPU")
        or str(machine.get("machine_type")).startswith(TPU_MACHINES)
    )
