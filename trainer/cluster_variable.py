"""One of the two variables that name a cluster, TF_CONFIG or CLUSTER_SPEC, read whole.

Vertex AI's forms: https://cloud.google.com/vertex-ai/docs/training/distributed-training.
Legacy AI Platform Training's, with `master` for the chief:
https://cloud.google.com/ai-platform/training/docs/distributed-training-details and
https://cloud.google.com/ai-platform/training/docs/distributed-training-containers. All read 2026-11.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from trainer.faults import Unusable


class Role(str, Enum):  # noqa: UP042 - StrEnum needs Python 3.11; prebuilt containers of other frameworks have 3.10
    """What a replica does, in TensorFlow's words."""

    CHIEF = "chief"
    WORKER = "worker"
    PARAMETER_SERVER = "ps"
    EVALUATOR = "evaluator"

    def __str__(self) -> str:
        return self.value


ROLE_OF_TASK_TYPE = {
    **{role.value: role for role in Role},
    "master": Role.CHIEF,  # legacy AI Platform Training without useChiefInTfConfig
    "workerpool0": Role.CHIEF,
    "workerpool1": Role.WORKER,
    "workerpool2": Role.PARAMETER_SERVER,
    "workerpool3": Role.EVALUATOR,
}

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9_.-]*):(\d{1,5})", re.ASCII)
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_LAST_PORT = 65535
_SHOWN = 80  # characters of a faulty value in a message


@dataclass(frozen=True, kw_only=True)
class ClusterVariable:
    """What one variable says.

    Attributes:
        name: TF_CONFIG or CLUSTER_SPEC.
        members: `host:port` of every replica by role; evaluators are here if the variable lists them.
        spelling: each role of `members` as the variable spells it: `chief`, `master`, `workerpool0`.
        trial: the trial's id in a tuning job, else empty.
        cloud: the service's internal id of this task; empty where it gives none.
        environment: `cloud` on the services.
        job: the job as the variable repeats it, its field names in snake_case.
        open_ports: further ports of this replica. Neither service documents them.
        notes: what was there and could not be understood, none of it needed for training.
    """

    name: str
    members: Mapping[Role, tuple[str, ...]]
    role: Role
    index: int
    spelling: Mapping[Role, str]
    trial: str = ""
    cloud: str = ""
    environment: str = ""
    job: Mapping[str, Any] = field(default_factory=dict)
    open_ports: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def read_cluster_variable(name: str, text: str) -> ClusterVariable | None:
    """What `text`, the value of the variable `name`, says; None when it names no cluster.

    Raises:
        Unusable: no JSON object, or its task is not in its cluster; every fault.
    """
    if not text.strip():
        return None
    document = _document(name, text)
    if not document.get("cluster"):
        return None
    faults: list[str] = []
    members, spelling = _members(name, document["cluster"], faults)
    task: Any = document.get("task")  # parsed JSON
    role, index = _task(name, task, faults)
    addresses = members.get(role, ())
    listed = role is not Role.EVALUATOR or role in members  # TF_CONFIG never lists evaluators
    if not faults and listed and index >= len(addresses):
        faults.append(
            f"{name} says that this is {role}-{index}, counted from 0, but its cluster has {len(addresses)} of that "
            f"role. The service sets both; leave {name} to it."
        )
    if faults:
        raise Unusable(*faults)
    notes: list[str] = []
    return ClusterVariable(
        name=name,
        members=members,
        role=role,
        index=index,
        spelling=spelling,
        trial=_text(task.get("trial")),
        cloud=_text(task.get("cloud")),
        environment=_text(document.get("environment")),
        job=_job(name, document.get("job"), notes),
        open_ports=_open_ports(name, document, (f"{task['type']}-{index}", f"{role}-{index}"), notes),
        notes=tuple(notes),
    )


def _document(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(
            f"{name} is no JSON ({error}): it holds {text[:_SHOWN]!r}. The service sets it; leave it to the service."
        ) from error
    if not isinstance(found, dict):
        raise Unusable(f"{name} must be a JSON object with `cluster` and `task`; found {text[:_SHOWN]!r}.")
    return found


def _members(
    name: str,
    cluster: Any,  # parsed JSON
    faults: list[str],
) -> tuple[dict[Role, tuple[str, ...]], dict[Role, str]]:
    """Addresses by role, and how each role is spelled."""
    members: dict[Role, tuple[str, ...]] = {}
    spelling: dict[Role, str] = {}
    if not isinstance(cluster, dict):
        faults.append(f"{name}: `cluster` must map roles to lists of host:port; found {_shown(cluster)}.")
        return members, spelling
    for task_type, addresses in cluster.items():
        role = ROLE_OF_TASK_TYPE.get(task_type)
        if role is None:
            faults.append(f"{name}: unknown role {task_type!r}; known are {', '.join(ROLE_OF_TASK_TYPE)}.")
        elif not (isinstance(addresses, list) and all(_is_address(address) for address in addresses)):
            faults.append(
                f"{name}: `cluster.{task_type}` must be a list of host:port; found {_shown(addresses)}."
            )
        elif role in members:
            faults.append(
                f"{name} lists the {role} twice, as {spelling[role]!r} and as {task_type!r}; keep one of the two."
            )
        elif addresses:
            members[role] = tuple(addresses)
            spelling[role] = task_type
    _add_faults_of_sense(name, members, faults)
    return members, spelling


def _add_faults_of_sense(name: str, members: dict[Role, tuple[str, ...]], faults: list[str]) -> None:
    if (chiefs := len(members.get(Role.CHIEF, ()))) > 1:
        faults.append(
            f"{name} names {chiefs} chiefs; a cluster has exactly one. Ask for one replica in worker pool 0."
        )
    seen: set[str] = set()
    for address in (address for addresses in members.values() for address in addresses):
        if address in seen:
            faults.append(f"{name} gives the address {address!r} to two replicas; each has its own.")
        seen.add(address)


def _task(name: str, task: Any, faults: list[str]) -> tuple[Role, int]:  # Any: parsed JSON
    found = task if isinstance(task, dict) else {}
    role = ROLE_OF_TASK_TYPE.get(str(found.get("type")))
    index = str(found.get("index", ""))
    # No job has 100,000 replicas of a role, and Python refuses to read numbers of some thousand digits.
    if role is None or re.fullmatch(r"\d{1,5}", index, re.ASCII) is None:
        faults.append(
            f'{name}: `task` must be like {{"type": "worker", "index": 0}}, of type {", ".join(ROLE_OF_TASK_TYPE)}; '
            f"found {_shown(task)}."
        )
        return Role.CHIEF, 0
    return role, int(index)


def _job(name: str, job: Any, notes: list[str]) -> dict[str, Any]:  # Any: parsed JSON
    """The job as an object with snake_case names. The services' spelling differs, and none of it is promised."""
    found = job
    try:
        if isinstance(job, str) and job.strip():
            found = json.loads(job)
        if isinstance(found, dict):
            return {snake_case(key): _with_snake_case(value) for key, value in found.items()}
    except (ValueError, RecursionError):
        pass
    if job:
        notes.append(f"{name}'s `job` is no JSON object and was passed over: {_shown(job)}")
    return {}


def _with_snake_case(value: Any) -> Any:  # Any: parsed JSON
    if isinstance(value, dict):
        return {snake_case(key): _with_snake_case(found) for key, found in value.items()}
    return [_with_snake_case(each) for each in value] if isinstance(value, list) else value


def snake_case(name: str) -> str:
    """`workerPoolSpecs` as `worker_pool_specs`; what is in snake_case stays as it is."""
    return _CAPITAL.sub(r"_\1", name).lower() if _CAPITAL.search(name) else name


def _open_ports(
    name: str, document: dict[str, Any], own: tuple[str, ...], notes: list[str]
) -> tuple[int, ...]:
    """This replica's: a list is its own, a mapping has a list for each replica."""
    found = document.get("open_ports", document.get("openPorts"))
    if isinstance(found, dict):
        found = next((found[key] for key in own if key in found), [])
    ports = [_port(each) for each in found] if isinstance(found, list) else [None]
    if None not in ports:
        return tuple(port for port in ports if port is not None)
    if found is not None:
        notes.append(f"{name}'s `open_ports` is no list of ports and was passed over: {_shown(found)}")
    return ()


def _port(value: object) -> int | None:
    """The port, from 1 to 65535, that a number or its text means."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    port = int(text) if re.fullmatch(r"\d{1,5}", text, re.ASCII) else 0
    return port if 0 < port <= _LAST_PORT else None


def _is_address(value: object) -> bool:
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return found is not None and 0 < int(found[2]) <= _LAST_PORT


def _text(value: object) -> str:
    """Ids come as text, by some accounts as numbers; an absent one is empty."""
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
