"""TF_CONFIG and CLUSTER_SPEC rewritten for TensorFlow and for programs of AI Platform Training."""

import json
from collections.abc import Mapping
from typing import Any

from trainer.launch.settings import Settings
from trainer.replicas.cluster import Cluster, Role

LEGACY_NAMES = {role: "master" if role is Role.CHIEF else role.value for role in Role}


def tensorflow(cluster: Cluster) -> Settings:
    """TF_CONFIG in Vertex AI's form, if it is not set or names a `master` as AI Platform's does.

    TensorFlow 2 does not accept `master`. A single replica has no TF_CONFIG, as on Vertex AI.
    """
    replicas = len(cluster.evaluators) + sum(map(len, cluster.members.values()))
    is_legacy = cluster.spelling.get(Role.CHIEF) == LEGACY_NAMES[Role.CHIEF]
    if replicas <= 1 or ("TF_CONFIG" in cluster.source and not is_legacy):
        return Settings()
    task = {"type": cluster.role.value, "index": cluster.index}
    ids = {"trial": cluster.trial, "cloud": cluster.cloud}
    written = {
        "cluster": {role.value: list(addresses) for role, addresses in cluster.members.items()},
        "environment": "cloud",
        "task": {**task, **{name: value for name, value in ids.items() if value}},
        "job": json.dumps(cluster.job),
    }
    return Settings(variables={"TF_CONFIG": json.dumps(written)})


def ai_platform(cluster: Cluster) -> Settings:
    """Both variables in AI Platform Training's form, also for a single replica. Idempotent.

    https://cloud.google.com/ai-platform/training/docs/distributed-training-details: `master` for the chief, unless
    `useChiefInTfConfig` is set; the evaluator only in CLUSTER_SPEC. A process outside a job gets neither.
    """
    if not cluster.source:
        return Settings()
    members = {LEGACY_NAMES[role]: list(addresses) for role, addresses in cluster.members.items()}
    evaluators = {LEGACY_NAMES[Role.EVALUATOR]: list(cluster.evaluators)} if cluster.evaluators else {}
    shared: Mapping[str, Any] = {
        "environment": "cloud",
        "task": {
            "type": LEGACY_NAMES[cluster.role],
            "index": cluster.index,
            "trial": cluster.trial,
            "cloud": cluster.cloud or _made_up_id(cluster),
        },
        "job": cluster.job,
    }
    return Settings(
        variables={
            "TF_CONFIG": json.dumps({"cluster": members, **shared}),
            "CLUSTER_SPEC": json.dumps({"cluster": {**members, **evaluators}, **shared}),
        }
    )


def _made_up_id(cluster: Cluster) -> str:
    """A name for this task within its project, for single replicas, to which the service gives none."""
    job_id = cluster.service_variables.get("CLOUD_ML_JOB_ID")
    return f"{job_id}-{LEGACY_NAMES[cluster.role]}-{cluster.index}" if job_id else ""
