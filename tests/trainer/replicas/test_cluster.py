"""What a replica makes of TF_CONFIG and CLUSTER_SPEC."""

import json
from typing import Any

import pytest

from trainer.faults import Unusable
from trainer.replicas.cluster import ReplicaRole
from trainer.replicas.cluster_variable import cluster_from

CHIEF = {"type": "chief", "index": 0}
TWO_POOLS = {"chief": ["c-0:2222"], "worker": ["w-0:2222", "w-1:2222"]}


def tf_config(cluster: Any, task: Any = CHIEF) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task, "environment": "cloud", "job": "{}"})}


def cluster_spec(cluster: Any, task: Any) -> dict[str, str]:
    return {"CLUSTER_SPEC": json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})}


@pytest.mark.parametrize(
    ("environment", "replica", "trainers", "source"),
    [
        ({}, "chief-0", 0, ""),
        ({"TF_CONFIG": ""}, "chief-0", 0, ""),
        ({"TF_CONFIG": '{"cluster": {}, "task": {}}'}, "chief-0", 0, ""),
        (tf_config(TWO_POOLS, {"type": "worker", "index": "1"}), "worker-1", 3, "TF_CONFIG"),
        (tf_config({"master": ["m:1"], "worker": ["w:1"]}, {"type": "master", "index": 0}), "chief-0", 2, "TF_CONFIG"),
        (tf_config(TWO_POOLS, {"type": "evaluator", "index": 0}), "evaluator-0", 3, "TF_CONFIG"),
    ],
)  # fmt: skip
def test_the_replica_and_its_peers_are_read(
    environment: dict[str, str], replica: str, trainers: int, source: str
) -> None:
    cluster = cluster_from(environment)
    assert (cluster.replica, len(cluster.trainers), cluster.source) == (replica, trainers, source)
    assert cluster.is_multi_worker == (trainers > 1)
    assert ReplicaRole.EVALUATOR not in cluster.members
    assert (source or "Neither TF_CONFIG nor CLUSTER_SPEC") in cluster.description()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TF_CONFIG": "{"}, ["TF_CONFIG: not valid JSON"]),
        ({"CLUSTER_SPEC": "[]"}, ["CLUSTER_SPEC: expected an object"]),
        (tf_config(TWO_POOLS, None), ["`task` must look like"]),
        (tf_config(TWO_POOLS, {"type": "boss", "index": 0}), ["'boss'"]),
        (tf_config(TWO_POOLS, {"type": "worker", "index": -1}), ["`task` must look like"]),
        (tf_config(TWO_POOLS, {"type": "worker", "index": 2}), ["worker-2", "`cluster` lists 2 of that role"]),
        (tf_config({"chief": ["a:1", "b:1"]}), ["has 2 chiefs"]),
        (tf_config({"chief": ["a"]}), ["list of host:port", "['a']"]),
        (tf_config({"chief": "a:1"}), ["list of host:port"]),
        (tf_config([]), None),
        (tf_config(["a:1"]), ["must map roles"]),
        (tf_config({"chief": ["a:0"]}), ["list of host:port"]),
        (tf_config({"chief": ["a:70000"]}), ["list of host:port"]),
        (tf_config({"chief": ["a\n:1"]}), ["list of host:port"]),
        (tf_config({"chief": ["a:1"]}, {"type": "chief", "index": "9" * 5000}), ["`task` must look like"]),
        ({"CLUSTER_SPEC": "[" * 100_000}, ["CLUSTER_SPEC: not valid JSON"]),
        (tf_config({"chief": ["a:1"], "master": ["b:1"]}), ["has the role chief twice, as 'chief' and as 'master'"]),
        (tf_config({"chief": ["a:1"], "worker": ["a:1"]}), ["2 replicas have the address 'a:1'"]),
        (
            cluster_spec({"workerpool3": ["e:1"]}, {"type": "workerpool3", "index": 1}),
            ["evaluator-1", "`cluster` lists 1 of that role"],
        ),
        (
            tf_config({"boss": ["a:1"]}) | {"CLUSTER_SPEC": "{"},
            ["TF_CONFIG: unknown role 'boss'", "CLUSTER_SPEC: not valid JSON"],
        ),
        (
            tf_config({"boss": ["a:1"], "worker": ["w"]}, {"type": "worker"}),
            ["unknown role 'boss'", "cluster.worker", "`task` must look like"],
        ),
    ],
)  # fmt: skip
def test_every_fault_of_a_variable_is_reported(
    environment: dict[str, str], expected: list[str] | None
) -> None:
    if expected is None:  # no cluster at all: the next variable, then this process alone
        assert cluster_from(environment).source == ""
        return
    with pytest.raises(Unusable) as caught:
        cluster_from(environment)
    text = "\n".join(caught.value.faults)
    assert [words for words in expected if words not in text] == []


@pytest.mark.parametrize(
    ("addresses", "sharing"),
    [(("a:1", "b:1"), 1), (("127.0.0.1:1", "127.0.0.1:2"), 2), (("[::1]:1", "[::1]:2"), 2)],
)
def test_processors_are_shared_with_the_peers_on_the_same_host(
    addresses: tuple[str, str], sharing: int
) -> None:
    cluster = {"chief": [addresses[0]], "worker": [addresses[1]]}
    for role in cluster:
        assert cluster_from(tf_config(cluster, {"type": role, "index": 0})).trainers_on_this_host == sharing
