"""The environment of a replica, field by field, as the service documents it."""

import json
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from trainstack.jobs.images.programs import EnvironmentKind
from trainstack.jobs.replicas.cluster import environment, rendezvous
from trainstack.jobs.resource.job import JobReplica, TrialAssignment, VertexJob, replicas_of

SPEC = {
    "worker_pool_specs": [{"replica_count": "1"}],
    "base_output_directory": {"output_uri_prefix": "gs://b/out"},
}


def cluster(
    *counts: int, spec: dict[str, Any] = SPEC, trial_id: str = ""
) -> tuple[VertexJob, dict[JobReplica, str]]:
    place = TrialAssignment(
        tuning_job_id="1", trial_id=trial_id, metrics_dir="/metrics", metric_tag="accuracy"
    )
    message = CustomJob.pb(CustomJob({"job_spec": spec}))
    return VertexJob(
        project="456", location="l", job_id="123", message=message, trial=place if trial_id else None
    ), {replica: f"127.0.0.1:{20000 + 100 * replica.pool + replica.index}" for replica in replicas_of(counts)}


def seen(
    found: tuple[VertexJob, dict[JobReplica, str]],
    pool: int,
    index: int,
    kind: EnvironmentKind = EnvironmentKind.VERTEX,
) -> dict[str, Any]:
    variables: dict[str, Any] = dict(environment(*found, JobReplica(pool=pool, index=index), kind))
    for name in ("CLUSTER_SPEC", "TF_CONFIG"):
        if name in variables:
            variables[name] = json.loads(variables[name])
    return variables


def test_output_directories_have_one_slash_whether_or_not_the_prefix_ends_with_one() -> None:
    spec = {"base_output_directory": {"output_uri_prefix": "gs://b/out/"}}
    assert seen(cluster(1, spec=spec), 0, 0)["AIP_MODEL_DIR"] == "gs://b/out/model/"


def test_without_an_output_directory_there_are_no_aip_variables() -> None:
    assert sorted(seen(cluster(1, spec={}), 0, 0)) == [
        "CLOUD_ML_JOB_ID",
        "CLOUD_ML_PROJECT_ID",
        "CLUSTER_SPEC",
    ]


LAYOUTS = [(1,), (1, 2), (1, 0, 2), (1, 1, 1), (1, 0, 0, 1), (1, 2, 0, 1), (1, 0, 1, 1), (1, 2, 1, 1)]
PLACES = [(counts, replica) for counts in LAYOUTS for replica in replicas_of(counts)]
ROLES = {
    EnvironmentKind.VERTEX: ("chief", "worker", "ps", "evaluator"),
    EnvironmentKind.AI_PLATFORM: ("master", "worker", "ps", "evaluator"),
}


def members(counts: tuple[int, ...], names: tuple[str, ...], *, without: str = "") -> dict[str, list[str]]:
    return {
        name: [f"127.0.0.1:{20000 + 100 * pool + index}" for index in range(count)]
        for pool, (name, count) in enumerate(zip(names, counts, strict=False))
        if count and name != without
    }


@pytest.mark.parametrize("trial_id", ["", "7"])
@pytest.mark.parametrize(("counts", "replica"), PLACES)
def test_every_role_of_every_layout_has_vertex_ais_variables(
    counts: tuple[int, ...], replica: JobReplica, trial_id: str
) -> None:
    found = seen(cluster(*counts, trial_id=trial_id), replica.pool, replica.index)
    place = f"workerpool{replica.pool}"
    assert found.pop("CLUSTER_SPEC") == {
        "cluster": members(counts, ("workerpool0", "workerpool1", "workerpool2", "workerpool3")),
        "environment": "cloud",
        "task": {"type": place, "index": replica.index, "trial": trial_id},
        "job": SPEC,
    }
    if counts == (1,):
        assert "TF_CONFIG" not in found
    else:
        assert found.pop("TF_CONFIG") == {
            "cluster": members(counts, ROLES[EnvironmentKind.VERTEX], without="evaluator"),
            "environment": "cloud",
            "task": {
                "type": ROLES[EnvironmentKind.VERTEX][replica.pool],
                "index": replica.index,
                **({"trial": trial_id} if trial_id else {}),
                "cloud": f"123-{replica.name}",
            },
            "job": json.dumps(SPEC),
        }
    assert found == rest_of(replica, trial_id)


@pytest.mark.parametrize(("counts", "replica"), PLACES)
def test_chief_and_workers_have_one_rank_each_where_they_are_several(
    counts: tuple[int, ...], replica: JobReplica
) -> None:
    size, rank = sum(counts[:2]), str(replica.index + replica.pool)
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "20000", "RANK": rank, "WORLD_SIZE": str(size)}
    expected = variables if replica.pool < 2 and size > 1 else {}
    assert rendezvous(cluster(*counts)[1], replica) == expected


@pytest.mark.parametrize("trial_id", ["", "7"])
@pytest.mark.parametrize(("counts", "replica"), PLACES)
def test_every_role_of_every_layout_has_ai_platforms_variables_on_request(
    counts: tuple[int, ...], replica: JobReplica, trial_id: str
) -> None:
    kind = EnvironmentKind.AI_PLATFORM
    found = seen(cluster(*counts, trial_id=trial_id), replica.pool, replica.index, kind)
    common = {
        "environment": "cloud",
        "task": {
            "type": ROLES[kind][replica.pool],
            "index": replica.index,
            "trial": trial_id,
            "cloud": f"123-{replica.name}",
        },
        "job": SPEC,
    }
    assert found.pop("CLUSTER_SPEC") == {"cluster": members(counts, ROLES[kind]), **common}
    assert found.pop("TF_CONFIG") == {"cluster": members(counts, ROLES[kind], without="evaluator"), **common}
    assert found == rest_of(replica, trial_id)


def rest_of(replica: JobReplica, trial_id: str) -> dict[str, str]:
    base = f"gs://b/out/{trial_id}" if trial_id else "gs://b/out"
    trial = {
        "CLOUD_ML_TRIAL_ID": trial_id,
        "CLOUD_ML_HP_METRIC_FILE": f"/metrics/{replica.name}.metrics",
        "CLOUD_ML_HP_METRIC_TAG": "accuracy",
    }
    return {
        "CLOUD_ML_JOB_ID": "123",
        "CLOUD_ML_PROJECT_ID": "456",
        "AIP_MODEL_DIR": f"{base}/model/",
        "AIP_CHECKPOINT_DIR": f"{base}/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{base}/logs/",
        **(trial if trial_id else {}),
    }
