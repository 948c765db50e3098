"""Which replica of which cluster this process is, from TF_CONFIG or CLUSTER_SPEC.

Both variables are described on the Vertex AI page "Distributed training"
(https://cloud.google.com/vertex-ai/docs/training/distributed-training). TF_CONFIG is set for jobs
with more than one replica, CLUSTER_SPEC for every job; where both are there, TF_CONFIG says more.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trainer.faults import Unusable


class Role(StrEnum):
    """What a replica does, in TensorFlow's words."""

    CHIEF = "chief"
    WORKER = "worker"
    PARAMETER_SERVER = "ps"
    EVALUATOR = "evaluator"


ROLE_OF_TASK_TYPE = {
    **{role.value: role for role in Role},
    "master": Role.CHIEF,  # legacy AI Platform Training without useChiefInTfConfig
    "workerpool0": Role.CHIEF,
    "workerpool1": Role.WORKER,
    "workerpool2": Role.PARAMETER_SERVER,
    "workerpool3": Role.EVALUATOR,
}


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """This replica and those it trains with.

    `members` holds `host:port` of every chief, worker and parameter server by role. An evaluator
    is never a member, not even of its own cluster: it watches checkpoints and joins no collective.
    """

    role: Role = Role.CHIEF
    index: int = 0
    members: Mapping[Role, tuple[str, ...]] = field(default_factory=dict)
    source: str | None = None  # the variable this was read from; None: neither names a cluster

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
    def trainers_on_this_host(self) -> int:
        """How many training processes share this machine's processors, this one included; at least 1."""
        if not (self.is_multi_worker and self.trains):
            return 1
        own = _host(self.members[self.role][self.index])
        return sum(_host(address) == own for address in self.trainers)

    def description(self) -> str:
        """One line that says what was read and where."""
        if self.source is None:
            return "Neither TF_CONFIG nor CLUSTER_SPEC names a cluster: this process trains alone."
        counts = ", ".join(f"{len(addresses)} {role}" for role, addresses in self.members.items())
        return f"{self.source} says: this is {self.replica} of a cluster of {counts or 'nobody else'}."


def cluster_from(environment: Mapping[str, str]) -> Cluster:
    """The cluster that TF_CONFIG names, else CLUSTER_SPEC, else this process alone.

    Raises:
        Unusable: the variable that counts is no JSON object, or its task is not in its cluster; every fault.
    """
    for name in ("TF_CONFIG", "CLUSTER_SPEC"):
        text = environment.get(name, "").strip()
        if text and (document := _document(name, text)).get("cluster"):
            return _cluster(name, document)
    return Cluster()


def _document(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Unusable(
            f"{name} is no JSON ({error}): it holds {text[:80]!r}. The service sets it."
        ) from error
    if not isinstance(found, dict):
        raise Unusable(f"{name} must be a JSON object with `cluster` and `task`; found {text[:80]!r}.")
    return found


def _cluster(name: str, document: dict[str, Any]) -> Cluster:
    faults: list[str] = []
    members = _members(name, document["cluster"], faults)
    role, index = _task(name, document.get("task"), faults)
    addresses = members.get(role, ())
    if role is Role.EVALUATOR:
        pass  # stands outside the cluster
    elif not faults and index >= len(addresses):
        faults.append(
            f"{name} says that this is {role}-{index}, counted from 0, but its cluster has {len(addresses)} of that role."
        )
    if len(members.get(Role.CHIEF, ())) > 1:
        faults.append(f"{name} names {len(members[Role.CHIEF])} chiefs; a cluster has exactly one.")
    if faults:
        raise Unusable(*faults)
    return Cluster(
        role=role,
        index=index,
        members={key: value for key, value in members.items() if key is not Role.EVALUATOR},
        source=name,
    )


def _members(name: str, cluster: Any, faults: list[str]) -> dict[Role, tuple[str, ...]]:  # Any: parsed JSON
    if not isinstance(cluster, dict):
        faults.append(f"{name}: `cluster` must map roles to lists of host:port; found {cluster!r}.")
        return {}
    members: dict[Role, tuple[str, ...]] = {}
    for task_type, addresses in cluster.items():
        role = ROLE_OF_TASK_TYPE.get(task_type)
        if role is None:
            faults.append(f"{name}: unknown role {task_type!r}; known are {', '.join(ROLE_OF_TASK_TYPE)}.")
        elif not (isinstance(addresses, list) and all(_is_address(address) for address in addresses)):
            faults.append(f"{name}: `cluster.{task_type}` must be a list of host:port; found {addresses!r}.")
        elif addresses:
            members[role] = tuple(addresses)
    return members


def _task(name: str, task: Any, faults: list[str]) -> tuple[Role, int]:  # Any: parsed JSON
    found = task if isinstance(task, dict) else {}
    role = ROLE_OF_TASK_TYPE.get(str(found.get("type")))
    index = str(found.get("index", ""))
    if role is None or not index.isdecimal():
        faults.append(
            f'{name}: `task` must be like {{"type": "worker", "index": 0}}, of type {", ".join(ROLE_OF_TASK_TYPE)}; '
            f"found {task!r}."
        )
        return Role.CHIEF, 0
    return role, int(index)


def _is_address(value: object) -> bool:
    return isinstance(value, str) and value.rpartition(":")[2].isdecimal()


def _host(address: str) -> str:
    return address.rpartition(":")[0]
