"""A replica whose job has accelerators that TensorFlow does not see refuses to start."""

from typing import Any

import pytest

from tests.trainer.launched import spec
from trainer.devices.choices import (
    LOCAL_STACK,
    expected_accelerator,
    tpu_fault,
    unequal_accelerators,
)
from trainer.faults import Unusable
from trainer.replicas.cluster_variable import cluster_from
from trainer.task import main
from trainstack.process.family import MARK

T4 = {"machine_type": "n1-standard-8", "accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 2}
CPU = {"machine_type": "n1-standard-8"}
V5E = {"machine_type": "ct5lp-hightpu-4t", "tpu_topology": "2x2"}


def variables(*machines: dict[str, Any], pool: int = 0, **more: str) -> dict[str, str]:
    """What a replica of that pool sees, of a job with these machines."""
    job = {"worker_pool_specs": [{"machine_spec": machine} for machine in machines]}
    return {**spec([1] * len(machines), pool, job=job), "CLOUD_ML_JOB_ID": "12", **more}


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (variables(T4), ("GPU", "2 NVIDIA_TESLA_T4")),
        (variables({"acceleratorType": "NVIDIA_L4", "acceleratorCount": "1"}), ("GPU", "1 NVIDIA_L4")),
        (variables(CPU, T4, pool=1), ("GPU", "2 NVIDIA_TESLA_T4")),
        (variables(CPU, CPU, {}, T4, pool=3), ("GPU", "2 NVIDIA_TESLA_T4")),
        (variables(V5E), ("TPU", "a TPU (ct5lp-hightpu-4t)")),
        (variables(CPU), None),
        (variables(CPU, T4), None),
        (variables({**T4, "accelerator_count": 0}), None),
        (variables({"accelerator_type": "ACCELERATOR_TYPE_UNSPECIFIED", "accelerator_count": 1}), None),
        (variables(CPU, CPU, T4, pool=2), None),
        (variables(V5E, TPU_NAME="tpu-1"), None),
        (variables(T4, TRAINMASTER_STACK="token:1"), None),
        ({}, None),
    ],
    ids=[
        "GPUs", "the API's spelling", "the worker's", "the evaluator's", "a TPU", "no accelerator",
        "another pool's", "a count of 0", "none by name", "a parameter server",
        "a TPU of the network", "the local stack", "the user's own machine",
    ],
)  # fmt: skip
def test_what_a_replica_expects_follows_from_its_own_worker_pool(
    environment: dict[str, str], expected: tuple[str, str] | None
) -> None:
    assert expected_accelerator(cluster_from(environment), environment) == expected


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        (variables(CPU, T4), "pool 0 has none, pool 1 has 2"),
        (variables(T4, CPU, pool=1), "pool 0 has 2, pool 1 has none"),
        (variables(T4, {**T4, "accelerator_count": "4"}), "pool 0 has 2, pool 1 has 4"),
        (variables(T4, T4), None),
        (variables(T4, {"accelerator_type": "NVIDIA_L4", "accelerator_count": 2}), None),
        (variables(CPU, CPU), None),
        (variables(T4), None),
        (variables(T4, {}), None),
        (variables(CPU, T4, TRAINMASTER_STACK="token:1"), None),
    ],
    ids=[
        "a chief without", "workers without", "other numbers", "the same", "other types", "none", "one replica",
        "an unknown machine", "the local stack",
    ],
)  # fmt: skip
def test_replicas_that_train_in_step_have_the_same_number_of_gpus(
    environment: dict[str, str], shown: str | None
) -> None:
    fault = unequal_accelerators(cluster_from(environment), environment)
    assert fault is None if shown is None else shown in str(fault)


def test_a_job_whose_workers_alone_have_gpus_is_refused_unless_its_chief_coordinates() -> None:
    with pytest.raises(Unusable, match="Give both the same machine and accelerators"):
        main([], variables(CPU, T4))
    with pytest.raises(Unusable, match="Give both"):
        main(["--strategy=mirrored"], variables(CPU, T4, CPU))
    with pytest.raises(Unusable) as caught:
        main(["--strategy=parameter_server", "--epochs=0"], variables(CPU, T4, CPU))
    assert "Give both" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "shown"),
    [
        (variables(V5E), None),
        (variables({"machine_type": "ct6e-standard-8t", "tpu_topology": "2x4"}), None),
        (variables({**V5E, "tpu_topology": "2x4"}), "has 2 hosts"),
        (variables({**V5E, "tpu_topology": "16x16"}), "has 64 hosts"),
        (variables({"machine_type": "tpu7x-standard-4t", "tpu_topology": "2x2x2"}), "has 2 hosts"),
        (variables({"machine_type": "cloud-tpu", "accelerator_type": "TPU_V3", "accelerator_count": 8}), None),
        (variables({"machine_type": "cloud-tpu", "accelerator_type": "TPU_V3", "accelerator_count": "32"}), "has 4 hosts"),
        (variables({**V5E, "tpu_topology": "4x4"}, TPU_NAME="tpu-1"), "has 4 hosts"),
        (variables(V5E, V5E, pool=1), "2 replicas would train together"),
        (variables(T4, T4), None),
    ],
)  # fmt: skip
def test_a_tpu_is_refused_beside_other_replicas_and_where_it_has_several_hosts(
    environment: dict[str, str], shown: str | None
) -> None:
    fault = tpu_fault(cluster_from(environment))
    assert fault is None if shown is None else shown in str(fault)


def test_a_tpu_that_only_tensorflow_sees_is_refused_beside_other_replicas_too() -> None:
    alone, together = cluster_from({}), cluster_from(variables(CPU, CPU))
    assert tpu_fault(alone, sees_tpu=True) is None
    assert "2 replicas" in str(tpu_fault(together, sees_tpu=True))


def test_a_tpu_of_several_hosts_is_refused_with_every_other_fault() -> None:
    with pytest.raises(Unusable) as caught:
        main(["--strategy=parameter_server"], variables({**V5E, "tpu_topology": "4x4"}))
    assert len(caught.value.faults) > 1
    assert caught.value.faults[-1] == (
        "chief-0 has a TPU, and the trainer uses TPUs of one replica on one host: the TPU of the job has 4 hosts, each "
        "of which would train a separate model. Request one chief with a topology that one machine has, such as "
        "ct5lp-hightpu-8t with 2x4, or machines with GPUs."
    )


@pytest.mark.slow
def test_a_job_with_a_tpu_that_tensorflow_does_not_see_is_refused_with_the_repair() -> None:
    """A TPU, so that the test says the same on a machine with a GPU."""
    with pytest.raises(Unusable) as caught:
        main([], variables(V5E))
    assert str(caught.value) == (
        "The job has a TPU (ct5lp-hightpu-4t) for chief-0, but TensorFlow sees no TPU and would train on the CPU. "
        "Use an image whose TensorFlow supports TPUs, or remove the accelerator from the request."
    )


def test_the_trainer_recognizes_the_local_stack_by_its_variable() -> None:
    assert LOCAL_STACK == MARK
