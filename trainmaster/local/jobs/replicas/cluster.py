"""The environment that a replica finds: who it is, who the others are, where results go.

Source: https://cloud.google.com/vertex-ai/docs/training/code-requirements,
https://cloud.google.com/vertex-ai/docs/training/distributed-training, and for the older service
https://cloud.google.com/ai-platform/training/docs/distributed-training-details,
read 2026-11; the spelling inside `job` differs between published samples.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
        open_ports: of the replicas that asked for some; free on this machine, each the replica's own.
    """

    job_id: str
    project_number: str
    addresses: Mapping[Replica, str]
    job_spec: Mapping[str, object]
    output_uri: str = ""
    trial_id: str = ""
    metrics_dir: str = ""
    metric_tag: str = ""
    open_ports: Mapping[Replica, tuple[int, ...]] = field(default_factory=dict)


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
    match kind:
        case ReplicaEnvironment.VERTEX:
            found["CLUSTER_SPEC"] = json.dumps(cluster_spec(cluster, replica))
            if len(cluster.addresses) > 1:
                found["TF_CONFIG"] = json.dumps(tf_config(cluster, replica))
        case ReplicaEnvironment.AI_PLATFORM:
            found["CLUSTER_SPEC"] = json.dumps(legacy_cluster_spec(cluster, replica))
            found["TF_CONFIG"] = json.dumps(legacy_tf_config(cluster, replica))
    return found


def cluster_spec(cluster: Cluster, replica: Replica) -> dict[str, object]:
    """CLUSTER_SPEC: every pool that has replicas, evaluators included, under `workerpoolN`."""
    return {
        "cluster": _grouped(cluster, POOLS),
        "environment": "cloud",
        "task": {"type": POOLS[replica.pool], "index": replica.index, "trial": cluster.trial_id},
        "job": dict(cluster.job_spec),
        **_open_ports(cluster, replica),
    }


def tf_config(cluster: Cluster, replica: Replica) -> dict[str, object]:
    """TF_CONFIG: always `chief`, never `master`; the evaluator outside the cluster."""
    task: dict[str, object] = {"type": ROLES[replica.pool], "index": replica.index}
    if cluster.trial_id:
        task["trial"] = cluster.trial_id
    return {
        "cluster": _without_evaluator(_grouped(cluster, ROLES)),
        "environment": "cloud",
        "task": {**task, "cloud": _cloud(cluster, replica)},
        "job": json.dumps(cluster.job_spec),
    }


def legacy_cluster_spec(cluster: Cluster, replica: Replica) -> dict[str, object]:
    """CLUSTER_SPEC as AI Platform Training set it: TensorFlow's roles, with `master` for the first replica."""
    return {
        "cluster": _grouped(cluster, LEGACY_ROLES),
        "environment": "cloud",
        "task": {
            "type": LEGACY_ROLES[replica.pool],
            "index": replica.index,
            "trial": cluster.trial_id,
            "cloud": _cloud(cluster, replica),
        },
        "job": dict(cluster.job_spec),
        **_open_ports(cluster, replica),
    }


def legacy_tf_config(cluster: Cluster, replica: Replica) -> dict[str, object]:
    """TF_CONFIG as AI Platform Training set it, also for one replica: no evaluators in the cluster."""
    found = legacy_cluster_spec(cluster, replica)
    found.pop("open_ports", None)
    return {**found, "cluster": _without_evaluator(_grouped(cluster, LEGACY_ROLES))}


def _cloud(cluster: Cluster, replica: Replica) -> str:
    return f"{cluster.job_id}-{replica.name}"


def _open_ports(cluster: Cluster, replica: Replica) -> dict[str, object]:
    ports = cluster.open_ports.get(replica, ())
    return {"open_ports": list(ports)} if ports else {}


def _without_evaluator(groups: dict[str, list[str]]) -> dict[str, list[str]]:
    return {role: members for role, members in groups.items() if role != EVALUATOR}


def _grouped(cluster: Cluster, names: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for replica in sorted(cluster.addresses):
        groups.setdefault(names[replica.pool], []).append(cluster.addresses[replica])
    return groups


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
