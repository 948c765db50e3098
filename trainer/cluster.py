"""Which replica of which cluster this process is, and all else that the service tells it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

REDUCTION_SERVER = "/reductionserver"
"""In the image of worker pool 2 when it holds reduction servers, which NCCL uses, and no parameter servers:
https://cloud.google.com/vertex-ai/docs/training/distributed-training#reduce_training_time_with_reduction_server."""


class Role(str, Enum):  # noqa: UP042 - StrEnum needs Python 3.11; prebuilt containers of other frameworks have 3.10
    """What a replica does, in TensorFlow's words."""

    CHIEF = "chief"
    WORKER = "worker"
    PARAMETER_SERVER = "ps"
    EVALUATOR = "evaluator"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """This replica and those it trains with.

    `members` holds `host:port` of every chief, worker and parameter server by role. An evaluator
    is never a member, not even of its own cluster: it watches checkpoints and joins no collective.
    `evaluators` has their addresses where CLUSTER_SPEC says them.

    Attributes:
        source: the variable that `members` was read from; None when neither names a cluster.
        sources: every variable that names the cluster.
        spelling: each role as `source` spells it: `chief`, `master`, `workerpool0`.
        trial: the trial's id in a tuning job, else empty.
        cloud: the service's internal id of this task; empty where it gives none.
        environment: `cloud` on the services.
        job: the job as the service repeats it, its field names in snake_case; empty when it does not.
        service_variables: every AIP_* and CLOUD_ML_* that is set.
        notes: what was there and was passed over, with the reason.
    """

    role: Role = Role.CHIEF
    index: int = 0
    members: Mapping[Role, tuple[str, ...]] = field(default_factory=dict)
    evaluators: tuple[str, ...] = ()
    source: str | None = None
    sources: tuple[str, ...] = ()
    spelling: Mapping[Role, str] = field(default_factory=dict)
    trial: str = ""
    cloud: str = ""
    environment: str = ""
    job: Mapping[str, Any] = field(default_factory=dict)
    service_variables: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def replica(self) -> str:
        """`chief-0`, `worker-1`: one word that names this process among its peers."""
        return f"{self.role}-{self.index}"

    @property
    def is_chief(self) -> bool:
        return self.role is Role.CHIEF

    @property
    def trains(self) -> bool:
        """Whether this replica computes gradients; parameter servers and evaluators do not."""
        return self.role in {Role.CHIEF, Role.WORKER}

    @property
    def trainers(self) -> tuple[str, ...]:
        """Addresses of the chief and the workers: those that compute gradients."""
        return self.members.get(Role.CHIEF, ()) + self.members.get(Role.WORKER, ())

    def replicas_of(self, *roles: Role) -> dict[str, str]:
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
    def has_reduction_servers(self) -> bool:
        """Whether the job says that worker pool 2 runs Reduction Server, and no parameter servers."""
        containers = self.of_pools("container_spec")
        return any(REDUCTION_SERVER in str(found.get("image_uri")) for found in containers[2:3])

    def of_pools(self, name: str) -> list[dict[str, Any]]:
        """This member of each of the job's worker pools, empty where the job does not say it."""
        pools = self.job.get("worker_pool_specs")
        found = [
            pool.get(name) if isinstance(pool, dict) else None
            for pool in (pools if isinstance(pools, list) else [])
        ]
        return [each if isinstance(each, dict) else {} for each in found]

    def without_reduction_servers(self) -> "Cluster":
        """The cluster as TensorFlow's strategies may see it: the other servers alone would be taken for theirs."""
        if not (self.trains and self.has_reduction_servers):
            return self
        members = dict(self.members)
        members.pop(Role.PARAMETER_SERVER, None)
        note = "Worker pool 2 holds reduction servers, which this program does not speak to"
        return replace(self, members=members, notes=(*self.notes, note))

    @property
    def trainers_on_this_host(self) -> int:
        """How many training processes share this machine's processors, this one included; at least 1."""
        if not (self.is_multi_worker and self.trains):
            return 1
        own = host_of(self.members[self.role][self.index])
        return sum(host_of(address) == own for address in self.trainers)

    def description(self) -> str:
        """One line that says everything that was read, and where."""
        said = [self._place()]
        if self.trial:
            said.append(f"It is part of trial {self.trial}.")
        if self.job:
            said.append(f"The job says {', '.join(self.job)}.")
        if self.service_variables:
            values = ", ".join(f"{name}={value}" for name, value in self.service_variables.items())
            said.append(f"Also set: {values}.")
        return " ".join((*said, *(f"{note}." for note in self.notes))).replace("\n", " ")

    def _place(self) -> str:
        if self.source is None:
            return "Neither TF_CONFIG nor CLUSTER_SPEC names a cluster: this process trains alone."
        counts = [f"{len(addresses)} {role}" for role, addresses in self.members.items()]
        beside = f", beside {len(self.evaluators)} evaluator" if self.evaluators else ""
        says = "say" if len(self.sources) > 1 else "says"
        return (
            f"{' and '.join(self.sources)} {says}: this is {self.replica} of a cluster of "
            f"{', '.join(counts) or 'nobody else'}{beside}."
        )


def host_of(address: str) -> str:
    """The host of `host:port`, an IPv6 address with its brackets."""
    return address.rpartition(":")[0]
