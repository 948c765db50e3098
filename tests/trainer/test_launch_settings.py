"""What each framework finds in a cluster, variable by variable."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from trainer.faults import Unusable
from trainer.launch.frameworks import KEPT_IF_SET, gpus_from, variables_for
from trainer.replicas.cluster_variable import cluster_from

from .launched import spec, spec_of
from .replicas.test_cluster_fields import VERTEX_JOB, vertex

LOOPBACK = {"workerpool0": ["127.0.0.1:4001"], "workerpool1": ["127.0.0.1:4002"]}
REDUCER = {"container_spec": {"image_uri": "us-docker.pkg.dev/x/training/reductionserver:latest"}}

TORCH = {
    "MASTER_ADDR": "workerpool0-0", "MASTER_PORT": "2222", "RANK": "3", "WORLD_SIZE": "4",
    "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "GROUP_RANK": "3", "GROUP_WORLD_SIZE": "4", "NODE_RANK": "3",
    "PET_MASTER_ADDR": "workerpool0-0", "PET_MASTER_PORT": "2222", "PET_NNODES": "4", "PET_NODE_RANK": "3",
}  # fmt: skip
JAX = {
    "JAX_COORDINATOR_ADDRESS": "workerpool0-0:2222", "JAX_NUM_PROCESSES": "4", "JAX_PROCESS_ID": "3",
    "OMPI_MCA_orte_hnp_uri": "0.0;tcp://workerpool0-0:2222", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0", "KERAS_DISTRIBUTION_JOB_ADDRESSES": "workerpool0-0:2222",
    "KERAS_DISTRIBUTION_NUM_PROCESSES": "4", "KERAS_DISTRIBUTION_PROCESS_ID": "3",
}  # fmt: skip
HOROVOD = {
    "HOROVOD_RANK": "3", "HOROVOD_SIZE": "4", "HOROVOD_LOCAL_RANK": "0", "HOROVOD_LOCAL_SIZE": "1",
    "HOROVOD_CROSS_RANK": "3", "HOROVOD_CROSS_SIZE": "4", "HOROVOD_HOSTNAME": "workerpool1-2",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR": "workerpool0-0", "HOROVOD_GLOO_RENDEZVOUS_PORT": "2222",
    "HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo",
    "TRAINMASTER_HOROVOD_HOSTS": "workerpool0-0:1,workerpool1-0:1,workerpool1-1:1,workerpool1-2:1",
}  # fmt: skip


def read_variables(framework: str, environment: dict[str, str], **facts: Any) -> dict[str, str]:
    return variables_for(framework, cluster_from(environment), **facts)


@pytest.mark.parametrize(
    ("framework", "facts", "overwritten", "kept"),
    [
        ("torch", {"gpus": 2}, TORCH, {"PET_NPROC_PER_NODE": "2"}),
        ("jax", {"gpus": 4}, JAX, {"JAX_LOCAL_DEVICE_IDS": "0,1,2,3"}),
        ("horovod", {}, HOROVOD, {"HOROVOD_GLOO_TIMEOUT_SECONDS": "1800"}),
    ],
)
def test_the_last_of_three_workers_finds_the_chief_its_rank_and_the_size(
    framework: str, facts: dict[str, Any], overwritten: dict[str, str], kept: dict[str, str]
) -> None:
    variables = read_variables(framework, spec([1, 3], pool=1, index=2), **facts)
    assert variables == overwritten | kept
    assert {name for name in variables if name in KEPT_IF_SET} == set(kept)
    assert read_variables("torch", spec([1, 3]))["RANK"] == "0"


@pytest.mark.parametrize(
    "machine", [{"tpu_topology": "2x2"}, {"accelerator_type": "TPU_V3"}, {"machine_type": "ct5lp-hightpu-4t"}]
)
def test_jax_on_a_tpu_finds_its_hosts_by_itself(machine: dict[str, str]) -> None:
    assert read_variables("jax", spec([1], job={"worker_pool_specs": [{"machine_spec": machine}]})) == {}


@pytest.mark.parametrize(
    ("visible", "seen"),
    [(None, 2), ("0", 1), ("1,0", 2), ("", 0), ("-1", 0), ("0,-1,1", 1), ("NoDevFiles", 0), ("0,1,2", 2)],
)
def test_gpus_are_counted_by_their_devices_and_what_is_visible_of_them(
    visible: str | None, seen: int
) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert gpus_from(environment, ["null", "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"]) == seen


@pytest.mark.parametrize(
    ("framework", "name", "value"),
    [
        ("torch", "GLOO_SOCKET_IFNAME", "lo"),
        ("horovod", "HOROVOD_GLOO_IFACE", "lo"),
        ("jax", "JAX_COORDINATOR_BIND_ADDRESS", "127.0.0.1:4001"),
    ],
)
def test_replicas_on_one_machine_use_the_loopback_interface(framework: str, name: str, value: str) -> None:
    assert read_variables(framework, spec_of(LOOPBACK, "workerpool1", 0))[name] == value


def test_the_first_worker_leads_a_cluster_without_a_chief() -> None:
    config = {"cluster": {"worker": ["[::1]:1", "b:2"]}, "task": {"type": "worker", "index": 1}}
    variables = read_variables("torch", {"TF_CONFIG": json.dumps(config)})
    assert (variables["MASTER_ADDR"], variables["RANK"]) == ("::1", "1")


@pytest.mark.parametrize("framework", ["torch", "jax", "horovod"])
@pytest.mark.parametrize(
    ("counts", "pool", "expected"),
    [
        ([1, 1, 1], 0, ["does not use parameter servers, and this cluster has 1", "leave worker pool 2 empty"]),
        ([1, 0, 0, 1], 0, ["does not use evaluators, and this cluster has 1", "Leave worker pool 3 out"]),
        ([1, 0, 2, 1], 2, ["does not use parameter servers, and this cluster has 2", "does not use evaluators"]),
        ([1, 0, 2, 1], 3, ["does not use parameter servers, and this cluster has 2", "does not use evaluators"]),
    ],
)  # fmt: skip
def test_a_role_that_the_framework_cannot_use_is_refused_by_every_replica(
    framework: str, counts: list[int], pool: int, expected: list[str]
) -> None:
    with pytest.raises(Unusable) as caught:
        read_variables(framework, spec(counts, pool=pool))
    text = "\n".join(caught.value.faults)
    assert [words for words in expected if words not in text] == []
    assert all(fault.startswith(framework) for fault in caught.value.faults)


@pytest.mark.parametrize("framework", ["torch", "jax", "horovod"])
def test_reduction_servers_are_no_parameter_servers(framework: str) -> None:
    reducers = spec([1, 1, 2], pool=1, job={"worker_pool_specs": [{}, {}, REDUCER]})
    assert read_variables(framework, reducers) == read_variables(framework, spec([1, 1], pool=1))


OF_SERVICE = {"CLOUD_ML_JOB_ID": "q1", "CLOUD_ML_TRIAL_ID": "2"}
PLACES = [
    *(
        ([1, 2, 1, 1], pool, index, vertex(pool, index, trial="2"))
        for pool, index in [(0, 0), (1, 1), (2, 0), (3, 0)]
    ),
    *(
        (counts, pool, 0, spec(counts, pool, job=VERTEX_JOB) | OF_SERVICE)
        for counts, pool in [([1], 0), ([1, 1], 1), ([1, 0, 0, 1], 3)]
    ),
]


@pytest.mark.parametrize(("counts", "pool", "index", "environment"), PLACES)
def test_the_legacy_environment_is_made_of_vertexs_and_made_again_the_same(
    counts: list[int], pool: int, index: int, environment: dict[str, str]
) -> None:
    before = cluster_from(environment)
    made = variables_for("ai-platform", before)
    config, cluster_spec = (json.loads(made[name]) for name in ("TF_CONFIG", "CLUSTER_SPEC"))
    names = ["master", "worker", "ps", "evaluator"]
    present = [name for name, count in zip(names, counts, strict=False) if count]
    assert list(cluster_spec["cluster"]) == present
    assert list(config["cluster"]) == [name for name in present if name != "evaluator"]
    assert [len(found) for found in cluster_spec["cluster"].values()] == [count for count in counts if count]
    for document in (config, cluster_spec):
        assert document["environment"] == "cloud"
        task = document["task"]
        assert (task["type"], task["index"], task["trial"]) == (names[pool], index, "2")
        assert task["cloud"].startswith("q1-")
        assert document["job"] == json.loads(environment["CLUSTER_SPEC"])["job"]
    after = cluster_from(environment | made)
    assert variables_for("ai-platform", after) == made
    for name in ("replica", "members", "evaluators"):
        assert getattr(after, name) == getattr(before, name)


def test_the_document_names_every_variable_that_is_set() -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "frameworks.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z-]+)` \|(.*)$", text, re.MULTILINE))
    for framework in ("torch", "jax", "horovod"):
        variables = read_variables(framework, spec([1, 1]), gpus=1)
        row = rows[framework].replace("`…_", "`OMPI_COMM_WORLD_")
        names = sorted(name for name in variables if not name.startswith("KERAS_DISTRIBUTION_"))
        assert [name for name in names if f"`{name}`" not in row] == [], framework
    assert [name for name in KEPT_IF_SET if f"`{name}`" not in text] == []
