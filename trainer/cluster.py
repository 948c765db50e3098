"""Which replica of which cluster this process is, and all else that the service tells it.

Vertex AI sets CLUSTER_SPEC for every job and TF_CONFIG for jobs of more than one replica; legacy AI
Platform Training set TF_CONFIG always. Where both are there they must agree, and each says what the
other leaves out: TF_CONFIG the task's internal id, CLUSTER_SPEC the evaluators.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainer.cluster_variable import ROLE_OF_TASK_TYPE, ClusterVariable, Role, read_cluster_variable
from trainer.faults import Unusable

__all__ = ["ROLE_OF_TASK_TYPE", "Cluster", "Role", "cluster_from", "host_of"]

VARIABLES = ("TF_CONFIG", "CLUSTER_SPEC")
SERVICE_PREFIXES = ("AIP_", "CLOUD_ML_")
REDUCTION_SERVER = "/reductionserver"
"""In the image of worker pool 2 when it holds reduction servers, which NCCL uses, and no parameter servers:
https://cloud.google.com/vertex-ai/docs/training/distributed-training#reduce_training_time_with_reduction_server."""


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
        open_ports: further ports of this replica, where the service gives any.
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
    open_ports: tuple[int, ...] = ()
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

    @property
    def is_multi_worker(self) -> bool:
        return len(self.trainers) > 1

    @property
    def has_reduction_servers(self) -> bool:
        """Whether the job says that worker pool 2 runs Reduction Server, and no parameter servers."""
        pools = self.job.get("worker_pool_specs")
        pool = pools[2] if isinstance(pools, list) and len(pools) > 2 else None  # noqa: PLR2004 - the pool's number
        container = pool.get("container_spec") if isinstance(pool, dict) else None
        image = container.get("image_uri") if isinstance(container, dict) else None
        return isinstance(image, str) and REDUCTION_SERVER in image

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
        if self.open_ports:
            said.append(f"Open ports: {', '.join(map(str, self.open_ports))}.")
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


def cluster_from(environment: Mapping[str, str]) -> Cluster:
    """The cluster that TF_CONFIG and CLUSTER_SPEC name, or this process alone.

    Raises:
        Unusable: a variable is no JSON object or contradicts itself, or the two contradict each other; every fault.
    """
    read: list[ClusterVariable] = []
    faults: list[str] = []
    for name in VARIABLES:
        try:
            if (variable := read_cluster_variable(name, environment.get(name, ""))) is not None:
                read.append(variable)
        except Unusable as unusable:
            faults += unusable.faults
    if len(read) > 1:
        faults += contradictions(*read)
    if faults:
        raise Unusable(*faults)
    service = {
        name: value for name, value in sorted(environment.items()) if name.startswith(SERVICE_PREFIXES)
    }
    return _joined(read, service)


def contradictions(one: ClusterVariable, other: ClusterVariable) -> list[str]:
    """Every fact that both variables state and state differently; the evaluators count where both list them."""
    repair = "The service sets both; leave both to it, or unset the one that is not its own."
    found: list[str] = []
    if (one.role, one.index) != (other.role, other.index):
        found.append(
            f"{one.name} says that this is {one.role}-{one.index}, {other.name} that it is "
            f"{other.role}-{other.index}. {repair}"
        )
    for role in Role:
        here, there = one.members.get(role, ()), other.members.get(role, ())
        if here != there and not (role is Role.EVALUATOR and not (here and there)):
            found.append(
                f"{one.name} has {', '.join(here) or 'nobody'} as {role}, {other.name} has "
                f"{', '.join(there) or 'nobody'}. {repair}"
            )
    if one.trial and other.trial and one.trial != other.trial:
        found.append(f"{one.name} says trial {one.trial!r}, {other.name} says {other.trial!r}. {repair}")
    return found


def _joined(read: Sequence[ClusterVariable], service: dict[str, str]) -> Cluster:
    trial_id = service.get("CLOUD_ML_TRIAL_ID", "")
    if not read:
        return Cluster(trial=trial_id, service_variables=service)
    first = read[0]
    return Cluster(
        role=first.role,
        index=first.index,
        members={role: found for role, found in first.members.items() if role is not Role.EVALUATOR},
        evaluators=next((v.members[Role.EVALUATOR] for v in read if Role.EVALUATOR in v.members), ()),
        source=first.name,
        sources=tuple(variable.name for variable in read),
        spelling=first.spelling,
        trial=next((v.trial for v in read if v.trial), trial_id),
        cloud=next((v.cloud for v in read if v.cloud), ""),
        environment=next((v.environment for v in read if v.environment), ""),
        # CLUSTER_SPEC's is the whole job; prebuilt containers have seen less of it in TF_CONFIG.
        job=next((v.job for v in reversed(read) if v.job), {}),
        open_ports=next((v.open_ports for v in read if v.open_ports), ()),
        service_variables=service,
        notes=tuple(note for variable in read for note in variable.notes),
    )


def host_of(address: str) -> str:
    """The host of `host:port`, an IPv6 address with its brackets."""
    return address.rpartition(":")[0]
