"""Which GPUs a replica uses, and in which 16 bits they compute."""

import pytest
import yaml

from tests.trainer.conftest import ROOT
from trainer.devices.choices import (
    WITHOUT_BFLOAT16,
    computes_bfloat16,
    no_mixed_precision,
    own_gpus,
)
from trainer.replicas.cluster import ClusterSpec, ReplicaRole

CHIEF, WORKER, PS, EVALUATOR = (
    ReplicaRole.CHIEF,
    ReplicaRole.WORKER,
    ReplicaRole.PARAMETER_SERVER,
    ReplicaRole.EVALUATOR,
)
ALONE = ClusterSpec()
HOSTS = {CHIEF: ("a:1",), WORKER: ("a:2", "b:1", "a:3"), PS: ("a:9",)}


def place(role: ReplicaRole, index: int = 0, *, servers: bool = False) -> ClusterSpec:
    """Three replicas on host a and one on b; with `servers`, also a parameter server on a."""
    members = {each: found for each, found in HOSTS.items() if each is not PS or servers}
    return ClusterSpec(role=role, index=index, members=members)


@pytest.mark.parametrize(
    ("cluster", "count", "indices"),
    [
        (ALONE, 4, (0, 1, 2, 3)),
        (ALONE, 0, ()),
        (place(WORKER, 1), 2, (0, 1)),
        (place(CHIEF), 3, (0,)),
        (place(WORKER, 0), 3, (1,)),
        (place(WORKER, 2), 3, (2,)),
        (place(WORKER, 2), 8, (4, 5)),
        (place(WORKER, 0), 2, (0, 1)),
        (place(CHIEF), 1, (0,)),
        (place(CHIEF), 0, ()),
        (place(EVALUATOR), 2, (0, 1)),
        (place(CHIEF, servers=True), 4, ()),
        (place(PS, servers=True), 4, ()),
        (place(WORKER, 0, servers=True), 4, (0, 1)),
        (place(WORKER, 2, servers=True), 4, (2, 3)),
    ],
    ids=[
        "alone", "no GPU", "a separate host", "the first of three", "the second", "the last", "equal parts only",
        "fewer GPUs than replicas", "one GPU", "a host without GPUs", "an evaluator", "a coordinator",
        "a parameter server", "a worker beside a coordinator", "the other worker",
    ],
)  # fmt: skip
def test_replicas_of_one_host_get_equal_parts_of_its_gpus_or_share_all(
    cluster: ClusterSpec, count: int, indices: tuple[int, ...]
) -> None:
    assert tuple(own_gpus(cluster, count)) == indices


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        ([], True),
        ([(8, 0)], True),
        ([(8, 9), (12, 0)], True),
        ([(7, 5)], False),
        ([(9, 0), (7, 0)], False),
        ([None], False),
    ],
)
def test_gpus_compute_bfloat16_if_all_have_compute_capability_8(
    capabilities: list[tuple[int, int] | None], expected: bool
) -> None:
    assert computes_bfloat16(capabilities) is expected


@pytest.mark.parametrize("kind", ["NVIDIA_TESLA_T4", ""])
def test_parameter_servers_refuse_mixed_precision_for_gpus_that_need_loss_scaling(kind: str) -> None:
    fault = no_mixed_precision(kind)
    assert fault is not None
    assert fault.startswith(f"--mixed_precision: the workers have {kind or 'GPUs of an unknown type'}")
    assert "leave out --mixed_precision" in fault
    assert no_mixed_precision("NVIDIA_L4") is None


def test_the_gpus_of_n1_machines_are_those_without_bfloat16() -> None:
    """N1 is the only series that takes GPUs from before Ampere; all of them need loss scaling."""
    policy = yaml.safe_load((ROOT / "functions" / "policy.yaml").read_text())
    machines = [each for each in policy["machines"] if each["types"][0].startswith("n1-")]
    assert {name for each in machines for name in each.get("accelerators", {})} == WITHOUT_BFLOAT16
