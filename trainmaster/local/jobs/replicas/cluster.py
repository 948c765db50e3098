"""The environment that a replica finds: who it is, who the others are, where results go.

Source: https://cloud.google.com/vertex-ai/docs/training/code-requirements,
https://cloud.google.com/vertex-ai/docs/training/distributed-training, and for the older service
https://cloud.google.com/ai-platform/training/docs/distributed-training-details,
read 2026-11; the spelling inside `job` differs between published samples.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmaster.local.jobs.images.programs import ReplicaEnvironment
from trainmaster.local.jobs.resource.replica import Replica

EVALUATOR = "evaluator"
ROLES = ("chief", "worker", "ps", EVALUATOR)
"""TensorFlow's name for the replicas of worker pools 0 to 3. The evaluator is in no TF_CONFIG cluster."""
LEGACY_ROLES = ("master", *ROLES[1:])
"""The same on AI Platform Training, where CLUSTER_SPEC has these names too."""
POOLS = tuple(f"workerpool{pool}" for pool in range(len(ROLES)))


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What every replica of one attempt of a job has in common.

    Attributes:
        addresses: `host:port` of every replica.
        job_spec: the CustomJobSpec as JSON with snake_case keys.
        output_uri: `baseOutputDirectory`, with or without its last slash; empty when the job has none.
        trial_id: `"1"` and up in a tuning job, else empty.
        metrics_dir: where each replica of a trial has its metric file; `metric_tag` is what it reports under.
    """

    job_id: str
    project_number: str
    addresses: Mapping[Replica, str]
    job_spec: Mapping[str, object]
    output_uri: str = ""
    trial_id: str = ""
    metrics_dir: str = ""
    metric_tag: str = ""


def environment(
    cluster: Cluster, replica: Replica, kind: ReplicaEnvironment = ReplicaEnvironment.VERTEX
) -> dict[str, str]:
    """The variables that the service sets on `replica`."""
    found = {
        "CLOUD_ML_JOB_ID": cluster.job_id,
        "CLOUD_ML_PROJECT_ID": cluster.project_number,
        **_output_directories(cluster),
    }
    if cluster.trial_id:
        found["CLOUD_ML_TRIAL_ID"] = cluster.trial_id
        found["CLOUD_ML_HP_METRIC_FILE"] = f"{cluster.metrics_dir}/{replica.name}.metrics"
        found["CLOUD_ML_HP_METRIC_TAG"] = cluster.metric_tag
    for name, value in _descriptions(cluster, replica, kind).items():
        found[name] = json.dumps(value)
    return found


def _descriptions(cluster: Cluster, replica: Replica, kind: ReplicaEnvironment) -> dict[str, object]:
    """CLUSTER_SPEC and TF_CONFIG. Evaluators are in CLUSTER_SPEC alone.

    Vertex AI names pools in CLUSTER_SPEC and sets TF_CONFIG for more than one replica;
    AI Platform Training named TensorFlow's roles in both, with `master` for the chief, and always set both.
    """
    job = dict(cluster.job_spec)
    trial = {"trial": cluster.trial_id}
    cloud = {"cloud": f"{cluster.job_id}-{replica.name}"}
    match kind:
        case ReplicaEnvironment.AI_PLATFORM:
            whole = _description(cluster, replica, LEGACY_ROLES, job, **trial, **cloud)
            return {"CLUSTER_SPEC": whole, "TF_CONFIG": _without_evaluators(whole)}
        case ReplicaEnvironment.VERTEX:
            spec = _description(cluster, replica, POOLS, job, **trial)
            if len(cluster.addresses) == 1:
                return {"CLUSTER_SPEC": spec}
            task = {**(trial if cluster.trial_id else {}), **cloud}
            config = _description(cluster, replica, ROLES, json.dumps(job), **task)
            return {"CLUSTER_SPEC": spec, "TF_CONFIG": _without_evaluators(config)}


def _description(
    cluster: Cluster, replica: Replica, names: Sequence[str], job: object, **task: str
) -> dict[str, object]:
    groups: dict[str, list[str]] = {}
    for member in sorted(cluster.addresses):
        groups.setdefault(names[member.pool], []).append(cluster.addresses[member])
    return {
        "cluster": groups,
        "environment": "cloud",
        "task": {"type": names[replica.pool], "index": replica.index, **task},
        "job": job,
    }


def _without_evaluators(description: dict[str, Any]) -> dict[str, object]:
    groups = {role: members for role, members in description["cluster"].items() if role != EVALUATOR}
    return {**description, "cluster": groups}


def _output_directories(cluster: Cluster) -> dict[str, str]:
    if not cluster.output_uri:
        return {}
    base = cluster.output_uri.removesuffix("/")
    if cluster.trial_id:
        base += f"/{cluster.trial_id}"
    return {
        "AIP_MODEL_DIR": f"{base}/model/",
        "AIP_CHECKPOINT_DIR": f"{base}/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{base}/logs/",
    }
