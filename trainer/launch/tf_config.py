"""TF_CONFIG and CLUSTER_SPEC written anew, for TensorFlow and for programs of AI Platform Training."""

import json
from collections.abc import Mapping
from typing import Any

from trainer.cluster import Cluster, Role
from trainer.launch.settings import Settings

LEGACY_NAMES = {role: "master" if role is Role.CHIEF else role.value for role in Role}


def tensorflow(cluster: Cluster) -> Settings:
    """TF_CONFIG as Vertex AI writes it, where it left it out or where AI Platform's says `master`.

    TensorFlow 2 knows no `master`. A replica alone has no TF_CONFIG, as on Vertex AI.
    """
    replicas = len(cluster.evaluators) + sum(map(len, cluster.members.values()))
    is_legacy = cluster.spelling.get(Role.CHIEF) == LEGACY_NAMES[Role.CHIEF]
    if replicas <= 1 or (cluster.source == "TF_CONFIG" and not is_legacy):
        return Settings()
    task = {"type": cluster.role.value, "index": cluster.index}
    told = {"trial": cluster.trial, "cloud": cluster.cloud}
    written = {
        "cluster": {role.value: list(addresses) for role, addresses in cluster.members.items()},
        "environment": cluster.environment or "cloud",
        "task": {**task, **{name: value for name, value in told.items() if value}},
        "job": json.dumps(cluster.job),
    }
    return Settings(variables={"TF_CONFIG": json.dumps(written)})


def ai_platform(cluster: Cluster) -> Settings:
    """Both variables as AI Platform Training wrote them, for one replica too; the same again when done twice.

    https://cloud.google.com/ai-platform/training/docs/distributed-training-details: `master` for the chief, unless
    `useChiefInTfConfig` was asked for; the evaluator in CLUSTER_SPEC alone. A process outside of any job gets none.
    """
    if cluster.source is None:
        return Settings()
    members = {LEGACY_NAMES[role]: list(addresses) for role, addresses in cluster.members.items()}
    evaluators = {LEGACY_NAMES[Role.EVALUATOR]: list(cluster.evaluators)} if cluster.evaluators else {}
    shared: Mapping[str, Any] = {
        "environment": cluster.environment or "cloud",
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
    """A name for this task within its project, where the service gives none: for one replica it does not."""
    job_id = cluster.service_variables.get("CLOUD_ML_JOB_ID")
    return f"{job_id}-{LEGACY_NAMES[cluster.role]}-{cluster.index}" if job_id else ""
