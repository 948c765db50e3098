"""Every field that the services set is read: https://cloud.google.com/vertex-ai/docs/training/distributed-training."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.launched import spec
from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole
from trainer.replicas.cluster_variable import ROLE_OF_TASK_TYPE, cluster_from

POOLS = {"workerpool0": ["c:2222"], "workerpool1": ["w-0:2222", "w-1:2222"], "workerpool2": ["p:2222"],
         "workerpool3": ["e:2222"]}  # fmt: skip
VERTEX_JOB = {"worker_pool_specs": [{"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1}]}


def vertex(pool: int, index: int, job: object = VERTEX_JOB, trial: str = "") -> dict[str, str]:
    """Both variables as Vertex AI sets them on one replica of four pools."""
    role = ("chief", "worker", "ps", "evaluator")[pool]
    members = dict(zip(("chief", "worker", "ps"), POOLS.values(), strict=False))
    of_pool = {"type": f"workerpool{pool}", "index": index, "trial": trial}
    document = {"cluster": POOLS, "environment": "cloud", "task": of_pool, "job": job}
    task = {"type": role, "index": index, "cloud": "q1-ml"} | ({"trial": trial} if trial else {})
    config = {"cluster": members, "environment": "cloud", "task": task, "job": json.dumps(job)}
    return {"CLUSTER_SPEC": json.dumps(document), "TF_CONFIG": json.dumps(config)}


@pytest.mark.parametrize(
    ("pool", "index", "replica", "trains"),
    [
        (0, 0, "chief-0", True),
        (1, 0, "worker-0", True),
        (1, 1, "worker-1", True),
        (2, 0, "ps-0", False),
        (3, 0, "evaluator-0", False),
    ],
)
def test_every_field_of_a_vertex_replica_is_read(pool: int, index: int, replica: str, trains: bool) -> None:
    environment = vertex(pool, index, trial="3")
    cluster = cluster_from(environment)
    assert (cluster.replica, cluster.trains) == (replica, trains)
    assert cluster.members == {
        ReplicaRole.CHIEF: ("c:2222",),
        ReplicaRole.WORKER: ("w-0:2222", "w-1:2222"),
        ReplicaRole.PARAMETER_SERVER: ("p:2222",),
    }
    assert cluster.evaluators == ("e:2222",)  # CLUSTER_SPEC lists them, TF_CONFIG never
    assert (cluster.trial, cluster.cloud) == ("3", "q1-ml")
    assert cluster.job == VERTEX_JOB
    assert cluster.source == "TF_CONFIG and CLUSTER_SPEC"
    assert cluster.notes == ()
    assert cluster.description() == (
        f"This is {replica} of a cluster of 1 chief, 2 worker, 1 ps, and 1 evaluator (from TF_CONFIG and "
        "CLUSTER_SPEC). It is part of trial 3. The job spec has worker_pool_specs."
    )


def test_a_single_vertex_replica_has_no_tf_config() -> None:
    cluster = cluster_from(spec([1]))
    assert (cluster.replica, cluster.members) == ("chief-0", {ReplicaRole.CHIEF: ("workerpool0-0:2222",)})
    assert (cluster.source, cluster.trial) == ("CLUSTER_SPEC", "")
    assert not cluster.is_multi_worker


def test_the_legacy_environment_is_read_with_its_master_and_its_evaluator() -> None:
    members = {"master": ["m:2222"], "worker": ["w:2222"], "ps": ["p:2222"]}
    task = {"type": "evaluator", "index": 0, "trial": "2", "cloud": "a1-ml"}
    job = {"scale_tier": "CUSTOM", "master_type": "n1-standard-4"}
    shared = {"environment": "cloud", "task": task, "job": job}
    cluster = cluster_from(
        {
            "TF_CONFIG": json.dumps({"cluster": members, **shared}),
            "CLUSTER_SPEC": json.dumps({"cluster": members | {"evaluator": ["e:2222"]}, **shared}),
        }
    )
    assert cluster.replica == "evaluator-0"
    assert cluster.evaluators == ("e:2222",)
    assert list(cluster.members) == [ReplicaRole.CHIEF, ReplicaRole.WORKER, ReplicaRole.PARAMETER_SERVER]
    assert (cluster.trial, cluster.cloud, cluster.job) == ("2", "a1-ml", job)


@pytest.mark.parametrize(
    "job",
    [
        VERTEX_JOB,
        {"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1}]},
        json.dumps(VERTEX_JOB),
        '{"workerPoolSpecs": [{"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1}]}',
    ],
)
def test_a_job_is_read_as_text_or_object_in_either_spelling(job: object) -> None:
    assert cluster_from(vertex(0, 0, job)).job == VERTEX_JOB


@pytest.mark.parametrize("job", ["no json", [1], 7, "[]"])
def test_a_job_that_cannot_be_parsed_is_noted_and_ignored(job: object) -> None:
    cluster = cluster_from(vertex(0, 0, job))
    assert cluster.job == {}
    assert "CLUSTER_SPEC: `job` is not a JSON object" in cluster.description()


def test_variables_of_the_service_are_read_and_described() -> None:
    service = {"AIP_MODEL_DIR": "gs://b/model/", "CLOUD_ML_JOB_ID": "12", "CLOUD_ML_TRIAL_ID": "4"}
    cluster = cluster_from({**service, "HOME": "/root", "AIPX": "no"})
    assert cluster.service_variables == service
    assert cluster.trial == "4"
    assert "Also set: AIP_MODEL_DIR=gs://b/model/, CLOUD_ML_JOB_ID=12" in cluster.description()
    assert "HOME" not in cluster.description()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"task": {"type": "worker", "index": 1}}, "says worker-1 among chief-0 at c:2222,.* says chief-0 among"),
        ({"cluster": {"chief": ["c:2222"], "worker": ["x:1", "w-1:2222"], "ps": ["p:2222"]}}, "worker-0 at x:1"),
        ({"cluster": {"chief": ["c:2222"]}}, "says chief-0 among chief-0 at c:2222;"),
    ],
)  # fmt: skip
def test_variables_that_contradict_each_other_are_refused_with_what_each_says(
    change: dict[str, Any], expected: str
) -> None:
    environment = vertex(0, 0, trial="3")
    environment["TF_CONFIG"] = json.dumps(json.loads(environment["TF_CONFIG"]) | change)
    with pytest.raises(Unusable, match="The service sets both variables") as caught:
        cluster_from(environment)
    assert re.search(expected, str(caught.value)), caught.value


@pytest.mark.parametrize(
    ("image", "reduces"),
    [
        ("us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest", True),
        ("us-docker.pkg.dev/p/r/ps:1", False),
    ],
)
def test_reduction_servers_are_told_from_parameter_servers_by_their_image(image: str, reduces: bool) -> None:
    job = {"workerPoolSpecs": [{}, {}, {"containerSpec": {"imageUri": image}}]}
    cluster = cluster_from(vertex(0, 0, job))
    assert cluster.has_reduction_servers is reduces
    assert (ReplicaRole.PARAMETER_SERVER in cluster.without_reduction_servers().members) is not reduces
    assert ("reduction servers" in cluster.without_reduction_servers().description()) is reduces


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TASK_TYPES = st.sampled_from([*ROLE_OF_TASK_TYPE, "boss", "evaluator "])
ADDRESSES = st.sampled_from(["a:1", "b:2222", "[::1]:80", "c:99999", "a", ""]) | ANYTHING
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "cluster": ANYTHING
        | st.dictionaries(TASK_TYPES, ANYTHING | st.lists(ADDRESSES, max_size=3), max_size=4),
        "task": ANYTHING
        | st.fixed_dictionaries(
            {"type": TASK_TYPES | ANYTHING, "index": st.integers(-1, 3) | ANYTHING},
            optional={"trial": ANYTHING},
        ),
        "job": ANYTHING | ANYTHING.map(json.dumps),
        "environment": ANYTHING,
    },
)
VALUES = st.text(max_size=20) | (DOCUMENTS | ANYTHING).map(json.dumps)


def cluster_or_faults(environment: dict[str, str]) -> ClusterSpec | tuple[str, ...]:
    try:
        return cluster_from(environment)
    except Unusable as unusable:
        return unusable.faults


@settings(max_examples=40)
@given(config=VALUES, document=VALUES)
def test_whatever_the_variables_hold_there_is_a_cluster_or_faults(config: str, document: str) -> None:
    cluster = cluster_or_faults({"TF_CONFIG": config, "CLUSTER_SPEC": document})
    if not isinstance(cluster, ClusterSpec):
        assert cluster
        assert all(cluster)
        return
    assert "\n" not in cluster.description()
    assert cluster.trainers_on_this_host >= 1
    assert isinstance(cluster.has_reduction_servers, bool)
    if cluster.source and cluster.role is not ReplicaRole.EVALUATOR:
        assert cluster.index < len(cluster.members[cluster.role])
