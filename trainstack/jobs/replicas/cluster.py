"""A replica's environment variables: its role, its peers, and where results go.

Source: https://cloud.google.com/vertex-ai/docs/training/code-requirements,
https://cloud.google.com/vertex-ai/docs/training/distributed-training, and for the older service
https://cloud.google.com/ai-platform/training/docs/distributed-training-details,
read 2026-11; the spelling inside `job` differs between published samples.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict

from trainstack.jobs.images.programs import EnvironmentKind
from trainstack.jobs.resource.job import JobReplica, VertexJob

EVALUATOR = "evaluator"
ROLES = ("chief", "worker", "ps", EVALUATOR)
"""TensorFlow's names for the replicas of worker pools 0 to 3. The evaluator is not part of a TF_CONFIG
cluster.
"""
LEGACY_ROLES = ("master", *ROLES[1:])
"""The same on AI Platform Training, where CLUSTER_SPEC has these names too."""
_RANKED = ROLES[:2]
POOLS = tuple(f"workerpool{pool}" for pool in range(len(ROLES)))


def environment(
    job: VertexJob,
    addresses: Mapping[JobReplica, str],
    replica: JobReplica,
    kind: EnvironmentKind = EnvironmentKind.VERTEX,
) -> dict[str, str]:
    """The variables that the service sets on one replica of a job; `addresses` has the `host:port` of each."""
    variables = {
        "CLOUD_ML_JOB_ID": job.job_id,
        "CLOUD_ML_PROJECT_ID": job.project,
        **_output_directories(job),
    }
    if job.trial:
        variables["CLOUD_ML_TRIAL_ID"] = job.trial.trial_id
        variables["CLOUD_ML_HP_METRIC_FILE"] = f"{job.trial.metrics_dir}/{replica.name}.metrics"
        variables["CLOUD_ML_HP_METRIC_TAG"] = job.trial.metric_tag
    for name, value in _descriptions(job, addresses, replica, kind).items():
        variables[name] = json.dumps(value)
    return variables


def rendezvous(addresses: Mapping[JobReplica, str], replica: JobReplica) -> dict[str, str]:
    """The variables of PyTorch's `env://` for the chief and the workers, where there are several; both services' alike.

    Source: https://cloud.google.com/ai-platform/training/docs/distributed-pytorch; for Vertex AI only users' reports, such
    as https://github.com/cellarium-ai/cellarium-ml/issues/56, which have one rank a replica and none in a job of one.
    """
    ranks = sorted(member for member in addresses if ROLES[member.pool] in _RANKED)
    if replica not in ranks or len(ranks) == 1:
        return {}
    host, _, port = addresses[ranks[0]].rpartition(":")
    rank, size = str(ranks.index(replica)), str(len(ranks))
    return {"MASTER_ADDR": host, "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": size}


def _descriptions(
    job: VertexJob, addresses: Mapping[JobReplica, str], replica: JobReplica, kind: EnvironmentKind
) -> dict[str, object]:
    """CLUSTER_SPEC and TF_CONFIG. Only CLUSTER_SPEC has evaluators.

    Vertex AI names pools in CLUSTER_SPEC and sets TF_CONFIG for more than one replica;
    AI Platform Training named TensorFlow's roles in both, with `master` for the chief, and always set both.
    """
    spec = MessageToDict(job.spec, preserving_proto_field_name=True)
    trial = {"trial": job.trial.trial_id if job.trial else ""}
    cloud = {"cloud": f"{job.job_id}-{replica.name}"}
    match kind:
        case EnvironmentKind.AI_PLATFORM:
            whole = _description(addresses, replica, LEGACY_ROLES, spec, **trial, **cloud)
            return {"CLUSTER_SPEC": whole, "TF_CONFIG": _without_evaluators(whole)}
        case EnvironmentKind.VERTEX:
            pools = _description(addresses, replica, POOLS, spec, **trial)
            if len(addresses) == 1:
                return {"CLUSTER_SPEC": pools}
            task = {**(trial if job.trial else {}), **cloud}
            config = _description(addresses, replica, ROLES, json.dumps(spec), **task)
            return {"CLUSTER_SPEC": pools, "TF_CONFIG": _without_evaluators(config)}


def _description(
    addresses: Mapping[JobReplica, str], replica: JobReplica, names: Sequence[str], spec: object, **task: str
) -> dict[str, object]:
    groups: dict[str, list[str]] = {}
    for member in sorted(addresses):
        groups.setdefault(names[member.pool], []).append(addresses[member])
    return {
        "cluster": groups,
        "environment": "cloud",
        "task": {"type": names[replica.pool], "index": replica.index, **task},
        "job": spec,
    }


def _without_evaluators(description: dict[str, Any]) -> dict[str, object]:
    groups = {role: members for role, members in description["cluster"].items() if role != EVALUATOR}
    return {**description, "cluster": groups}


def _output_directories(job: VertexJob) -> dict[str, str]:
    base = job.spec.base_output_directory.output_uri_prefix.removesuffix("/")
    if not base:
        return {}
    if job.trial:
        base += f"/{job.trial.trial_id}"
    return {
        "AIP_MODEL_DIR": f"{base}/model/",
        "AIP_CHECKPOINT_DIR": f"{base}/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{base}/logs/",
    }
