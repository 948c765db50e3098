"""Which strategy a run trains with, and what is expected when it cannot."""

import re
from typing import Any

import pytest

from tests.trainer.launched import spec
from trainer.devices.choices import Strategy, chosen_strategy, strategy_contradictions
from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole
from trainer.task import main

CHIEF, WORKER, PS = ReplicaRole.CHIEF, ReplicaRole.WORKER, ReplicaRole.PARAMETER_SERVER


def cluster(*, role: ReplicaRole = CHIEF, **counts: int) -> ClusterSpec:
    members = {
        ReplicaRole(name): tuple(f"{name}-{i}:2222" for i in range(count)) for name, count in counts.items()
    }
    return ClusterSpec(role=role, members=members)


@pytest.mark.parametrize(
    ("found", "machine", "strategy"),
    [
        (cluster(), {}, Strategy.AUTO),
        (cluster(), {"mirrored": True}, Strategy.MIRRORED),
        (cluster(), {"gpus": 1}, Strategy.AUTO),
        (cluster(), {"gpus": 2}, Strategy.MIRRORED),
        (cluster(), {"gpus": 2, "has_tpu": True, "mirrored": True}, Strategy.TPU),
        (cluster(chief=1), {}, Strategy.AUTO),
        (cluster(chief=1, worker=1), {"gpus": 2, "mirrored": True}, Strategy.MULTI_WORKER_MIRRORED),
        (cluster(chief=1, worker=2, ps=1), {"gpus": 2, "mirrored": True}, Strategy.PARAMETER_SERVER),
    ],
)
def test_auto_chooses_by_cluster_and_machine(
    found: ClusterSpec, machine: dict[str, Any], strategy: Strategy
) -> None:
    assert chosen_strategy(Strategy.AUTO, found, **machine) is strategy


@pytest.mark.parametrize("asked", [strategy for strategy in Strategy if strategy is not Strategy.AUTO])
def test_a_named_strategy_is_chosen(asked: Strategy) -> None:
    assert chosen_strategy(asked, cluster(), mirrored=True) is asked


@pytest.mark.parametrize(
    ("asked", "found", "expected"),
    [
        *((asked, cluster(), []) for asked in (Strategy.AUTO, Strategy.TPU)),
        *((asked, cluster(chief=1), []) for asked in (Strategy.MULTI_WORKER_MIRRORED, Strategy.MIRRORED)),
        (Strategy.AUTO, cluster(chief=1, worker=2), []),
        *((asked, cluster(chief=1, worker=1, ps=2), []) for asked in (Strategy.AUTO, Strategy.PARAMETER_SERVER)),
        (Strategy.PARAMETER_SERVER, cluster(), ["one parameter server.*pool 2", "one worker.*pool 1", "one chief"]),
        (Strategy.PARAMETER_SERVER, cluster(chief=1, worker=2), ["one parameter server.*or use.*multi_worker"]),
        (Strategy.AUTO, cluster(chief=1, ps=2), ["one worker.*pool 1, or leave worker pool 2 out"]),
        (Strategy.MULTI_WORKER_MIRRORED, cluster(chief=1, worker=1, ps=2), ["not use parameter servers.*has 2"]),
        (Strategy.MIRRORED, cluster(chief=1, worker=1), ["one machine.*has 2 that train.*multi_worker"]),
        (Strategy.ONE_DEVICE, cluster(chief=1, worker=1, ps=1), ["parameter servers.*has 1", "one machine.*has 2"]),
        (Strategy.AUTO, cluster(role=ReplicaRole.EVALUATOR, chief=1, worker=1), ["AIP_CHECKPOINT_DIR.*--job_dir"]),
    ],
)  # fmt: skip
def test_every_contradiction_of_strategy_and_cluster_is_reported(
    asked: Strategy, found: ClusterSpec, expected: list[str]
) -> None:
    faults = strategy_contradictions(asked, found, has_checkpoint_directory=False)
    assert len(faults) == len(expected)
    for fault, pattern in zip(faults, expected, strict=True):
        assert re.search(pattern, fault), fault


def test_an_evaluator_with_a_checkpoint_directory_is_no_fault() -> None:
    found = cluster(role=ReplicaRole.EVALUATOR, chief=1)
    assert strategy_contradictions(Strategy.AUTO, found, has_checkpoint_directory=True) == []


def test_a_contradiction_is_refused_before_anything_is_loaded() -> None:
    with pytest.raises(Unusable, match="does not use parameter servers, but the cluster has 1"):
        main(["--strategy=one_device"], spec([1, 0, 1], pool=2))
    with pytest.raises(Unusable, match="--strategy=fastest: expected one of auto"):
        main(["--strategy=fastest"], {})


def test_what_needs_steps_in_step_is_refused_with_parameter_servers() -> None:
    with pytest.raises(Unusable) as caught:
        main(["--deterministic", "--warmup_steps=5"], spec([1, 1, 1]))
    flags = [fault.partition(" is for")[0] for fault in caught.value.faults]
    assert flags == ["--deterministic", "--warmup_steps"]
