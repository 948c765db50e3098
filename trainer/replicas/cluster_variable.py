"""The cluster, parsed from TF_CONFIG and CLUSTER_SPEC.

Vertex AI sets CLUSTER_SPEC for every job and TF_CONFIG for jobs of more than one replica; legacy AI
Platform Training always set TF_CONFIG. If both are set they must agree. CLUSTER_SPEC has more: the evaluators
and the whole job; only the task's internal id comes from TF_CONFIG alone.
Vertex AI's forms: https://cloud.google.com/vertex-ai/docs/training/distributed-training.
Legacy AI Platform Training's, with `master` for the chief:
https://cloud.google.com/ai-platform/training/docs/distributed-training-details and
https://cloud.google.com/ai-platform/training/docs/distributed-training-containers. All read 2026-11.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from trainer.faults import Unusable, collect_faults
from trainer.replicas.cluster import ClusterSpec, ReplicaRole

VARIABLES = ("TF_CONFIG", "CLUSTER_SPEC")
SERVICE_PREFIXES = ("AIP_", "CLOUD_ML_")
ROLE_OF_TASK_TYPE = {
    **{role.value: role for role in ReplicaRole},
    "master": ReplicaRole.CHIEF,  # legacy AI Platform Training without useChiefInTfConfig
    "workerpool0": ReplicaRole.CHIEF,
    "workerpool1": ReplicaRole.WORKER,
    "workerpool2": ReplicaRole.PARAMETER_SERVER,
    "workerpool3": ReplicaRole.EVALUATOR,
}

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9][A-Za-z0-9_.-]*):(\d{1,5})", re.ASCII)
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_LAST_PORT = 65535


def cluster_from(environment: Mapping[str, str]) -> ClusterSpec:
    """The cluster from TF_CONFIG and CLUSTER_SPEC; without either, this process alone.

    Raises:
        Unusable: a variable is not a JSON object or contradicts itself, or the two contradict each other; every
            fault.
    """
    clusters: dict[str, ClusterSpec] = {}
    faults: list[str] = []
    for name in VARIABLES:
        with collect_faults(faults):
            if (cluster := _cluster_in(name, environment.get(name, ""))) is not None:
                clusters[name] = cluster
    if len({_shared_facts(cluster) for cluster in clusters.values()}) > 1:
        statements = "; ".join(f"{name} says {_shared_facts(cluster)}" for name, cluster in clusters.items())
        faults.append(
            f"TF_CONFIG and CLUSTER_SPEC contradict each other: {statements}. The service sets both variables: remove the "
            f"one that your program or image sets."
        )
    if faults:
        raise Unusable(*faults)
    service = {
        name: value for name, value in sorted(environment.items()) if name.startswith(SERVICE_PREFIXES)
    }
    last = next(reversed(clusters.values()), ClusterSpec())
    first = next(iter(clusters.values()), last)
    return replace(
        last,
        source=" and ".join(clusters),
        trial=last.trial or first.trial or service.get("CLOUD_ML_TRIAL_ID", ""),
        cloud=last.cloud or first.cloud,
        job=last.job or first.job,
        service_variables=service,
        notes=tuple(note for cluster in clusters.values() for note in cluster.notes),
    )


def _shared_facts(cluster: ClusterSpec) -> str:
    """What both variables say, as text; TF_CONFIG lists no evaluators."""
    members = sorted(cluster.replicas_of(*cluster.members).items())
    places = ", ".join(f"{name} at {address}" for address, name in members)
    return f"{cluster.replica} among {places or 'no members'}"


def _cluster_in(name: str, text: str) -> ClusterSpec | None:
    """The cluster in `text`, the value of the variable `name`; None if it names no cluster.

    Raises:
        Unusable: the text is not a JSON object, or its task is not in its cluster; every fault.
    """
    try:
        document = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise Unusable(_fault_of(name, f"not valid JSON ({error}); found {text!r:.80}")) from error
    if not isinstance(document, dict):
        raise Unusable(_fault_of(name, f"expected an object with `cluster` and `task`; found {text!r:.80}"))
    if not document.get("cluster"):
        return None
    members, faults = _members_in(document["cluster"])
    task: Any = document.get("task")  # parsed JSON
    role, number = _task_in(task)
    listed = len(members.get(role, ())) if role else 0
    if role is None:
        faults.append(
            f'`task` must look like {{"type": "worker", "index": 0}}, with one of the types '
            f"{', '.join(ROLE_OF_TASK_TYPE)}; found {task!r:.80}"
        )
    elif number >= listed and (role in members or role is not ReplicaRole.EVALUATOR):
        # TF_CONFIG never lists evaluators.
        faults.append(f"`task` is {role}-{number}, counted from 0, but `cluster` lists {listed} of that role")
    if faults or role is None:
        raise Unusable(*(_fault_of(name, fault) for fault in faults))
    job = _job_in(document.get("job"))
    return ClusterSpec(
        role=role,
        index=number,
        members={name: group for name, group in members.items() if name is not ReplicaRole.EVALUATOR},
        evaluators=members.get(ReplicaRole.EVALUATOR, ()),
        source=name,
        trial=_id_text(task.get("trial")),
        cloud=_id_text(task.get("cloud")),
        job=job or {},
        notes=(f"{name}: `job` is not a JSON object and was ignored",) if job is None else (),
    )


def _fault_of(name: str, fault: str) -> str:
    return f"{name}: {fault}. The service sets {name}; remove it if your program or image sets it."


def _members_in(
    cluster: Any,  # parsed JSON
) -> tuple[dict[ReplicaRole, tuple[str, ...]], list[str]]:
    """Addresses by role, and every fault."""
    members: dict[ReplicaRole, tuple[str, ...]] = {}
    if not isinstance(cluster, dict):
        return members, [f"`cluster` must map roles to lists of host:port; found {cluster!r:.80}"]
    faults: list[str] = []
    for task_type, addresses in cluster.items():
        role = ROLE_OF_TASK_TYPE.get(task_type)
        if role is None:
            faults.append(f"unknown role {task_type!r}; expected one of {', '.join(ROLE_OF_TASK_TYPE)}")
        elif not (isinstance(addresses, list) and all(_is_address(address) for address in addresses)):
            faults.append(f"`cluster.{task_type}` must be a list of host:port; found {addresses!r:.80}")
        elif role in members:
            first = next(name for name in cluster if ROLE_OF_TASK_TYPE.get(name) is role)
            faults.append(f"`cluster` has the role {role} twice, as {first!r} and as {task_type!r}")
        elif addresses:
            members[role] = tuple(addresses)
    if (chiefs := len(members.get(ReplicaRole.CHIEF, ()))) > 1:
        faults.append(f"`cluster` has {chiefs} chiefs; request one replica in worker pool 0")
    listed = Counter(address for group in members.values() for address in group)
    faults += [f"{count} replicas have the address {host!r}" for host, count in listed.items() if count > 1]
    return members, faults


def _task_in(task: Any) -> tuple[ReplicaRole | None, int]:  # Any: parsed JSON
    """Role and index; no role if `task` does not have both."""
    document = task if isinstance(task, dict) else {}
    number = str(document.get("index", ""))
    # No role of a job has 100,000 replicas, and Python refuses to parse integers of more than 4,300 digits.
    if re.fullmatch(r"\d{1,5}", number, re.ASCII) is None:
        return None, 0
    return ROLE_OF_TASK_TYPE.get(str(document.get("type"))), int(number)


def _job_in(job: Any) -> dict[str, Any] | None:  # Any: parsed JSON
    """The job spec with snake_case field names, empty without one; None if it is not a JSON object.

    Services spell the names differently and document none of them.
    """
    try:
        document = _with_snake_case(json.loads(job) if isinstance(job, str) and job.strip() else job or {})
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _with_snake_case(value: Any) -> Any:  # Any: parsed JSON
    """`value` with `worker_pool_specs` for the key `workerPoolSpecs`; snake_case is unchanged."""
    if isinstance(value, dict):
        return {
            _CAPITAL.sub(r"_\1", key).lower() if _CAPITAL.search(key) else key: _with_snake_case(item)
            for key, item in value.items()
        }
    return [_with_snake_case(item) for item in value] if isinstance(value, list) else value


def _is_address(value: object) -> bool:
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return match is not None and 0 < int(match[2]) <= _LAST_PORT


def _id_text(value: object) -> str:
    """An id as text; services send strings, and some documents show numbers. Empty if absent."""
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
