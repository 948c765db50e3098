"""The cluster that TF_CONFIG and CLUSTER_SPEC name, both read whole.

Vertex AI sets CLUSTER_SPEC for every job and TF_CONFIG for jobs of more than one replica; legacy AI
Platform Training set TF_CONFIG always. Where both are there they must agree, and each says what the
other leaves out: TF_CONFIG the task's internal id, CLUSTER_SPEC the evaluators.
Vertex AI's forms: https://cloud.google.com/vertex-ai/docs/training/distributed-training.
Legacy AI Platform Training's, with `master` for the chief:
https://cloud.google.com/ai-platform/training/docs/distributed-training-details and
https://cloud.google.com/ai-platform/training/docs/distributed-training-containers. All read 2026-11.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainer.cluster import Cluster, Role
from trainer.faults import Unusable, collected

VARIABLES = ("TF_CONFIG", "CLUSTER_SPEC")
SERVICE_PREFIXES = ("AIP_", "CLOUD_ML_")
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


def cluster_from(environment: Mapping[str, str]) -> Cluster:
    """The cluster that TF_CONFIG and CLUSTER_SPEC name, or this process alone.

    Raises:
        Unusable: a variable is no JSON object or contradicts itself, or the two contradict each other; every fault.
    """
    found: list[Cluster] = []
    faults: list[str] = []
    for name in VARIABLES:
        with collected(faults):
            if (cluster := _read(name, environment.get(name, ""))) is not None:
                found.append(cluster)
    if len(found) > 1:
        faults += _contradictions(*found)
    if faults:
        raise Unusable(*faults)
    service = {
        name: value for name, value in sorted(environment.items()) if name.startswith(SERVICE_PREFIXES)
    }
    return _joined(found, service)


def _contradictions(one: Cluster, other: Cluster) -> list[str]:
    """Every fact that both variables state and state differently; the evaluators count where both list them."""
    repair = "The service sets both; leave both to it, or unset the one that is not its own."
    found: list[str] = []
    if one.replica != other.replica:
        found.append(
            f"{one.source} says that this is {one.replica}, {other.source} that it is {other.replica}. {repair}"
        )
    for role in Role:
        is_evaluator = role is Role.EVALUATOR
        here, there = (
            cluster.evaluators if is_evaluator else cluster.members.get(role, ()) for cluster in (one, other)
        )
        if here != there and not (is_evaluator and not (here and there)):
            found.append(
                f"{one.source} has {', '.join(here) or 'nobody'} as {role}, {other.source} has "
                f"{', '.join(there) or 'nobody'}. {repair}"
            )
    if one.trial and other.trial and one.trial != other.trial:
        found.append(f"{one.source} says trial {one.trial!r}, {other.source} says {other.trial!r}. {repair}")
    return found


def _joined(found: Sequence[Cluster], service: dict[str, str]) -> Cluster:
    """What the variables say together: where the first says nothing, the other counts."""
    trial_id = service.get("CLOUD_ML_TRIAL_ID", "")
    if not found:
        return Cluster(trial=trial_id, service_variables=service)
    first, last = found[0], found[-1]
    return replace(
        first,
        evaluators=first.evaluators or last.evaluators,
        sources=tuple(source for cluster in found for source in cluster.sources),
        trial=first.trial or last.trial or trial_id,
        cloud=first.cloud or last.cloud,
        environment=first.environment or last.environment,
        # CLUSTER_SPEC's is the whole job; prebuilt containers have seen less of it in TF_CONFIG.
        job=last.job or first.job,
        service_variables=service,
        notes=tuple(note for cluster in found for note in cluster.notes),
    )


def _read(name: str, text: str) -> Cluster | None:
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
    return Cluster(
        role=role,
        index=index,
        members={each: found for each, found in members.items() if each is not Role.EVALUATOR},
        evaluators=members.get(Role.EVALUATOR, ()),
        source=name,
        sources=(name,),
        spelling=spelling,
        trial=_text(task.get("trial")),
        cloud=_text(task.get("cloud")),
        environment=_text(document.get("environment")),
        job=_job(name, document.get("job"), notes),
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


def _is_address(value: object) -> bool:
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return found is not None and 0 < int(found[2]) <= _LAST_PORT


def _text(value: object) -> str:
    """Ids come as text, by some accounts as numbers; an absent one is empty."""
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
