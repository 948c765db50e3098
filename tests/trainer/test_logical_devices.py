"""Strategies and batches on a machine whose processor counts as two devices."""

from typing import Any

import pytest

from tests.trainer.conftest import cases_of
from trainer.devices.choices import CPU_PACK_BYTES, GPU_PACK_BYTES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return cases_of("tests.trainer.logical_devices", tmp_path_factory)


def test_every_strategy_of_one_process_is_built_with_its_devices_and_one_kind_of_floats(
    cases: dict[str, Any],
) -> None:
    assert cases["strategies"] == {
        "auto": ["default", 1, "bfloat16"],
        "one_device": ["OneDeviceStrategy", 1, "bfloat16"],
        "multi_worker_mirrored": ["MultiWorkerMirroredStrategy", 1, "bfloat16"],
        "mirrored": ["MirroredStrategy", 2, "bfloat16"],
    }


def test_a_machine_without_a_tpu_is_refused_with_the_reason(cases: dict[str, Any]) -> None:
    assert cases["without_tpu"].startswith("--strategy=tpu: no TPU can be used here")


def test_a_replica_of_several_computes_on_its_gpus_and_joins_them_by_nccl(
    cases: dict[str, Any],
) -> None:
    assert cases["multi_worker"] == [
        {"devices": ["CPU:0"], "by": "AUTO", "pack": CPU_PACK_BYTES},
        {"devices": ["GPU:0", "GPU:1"], "by": "NCCL", "pack": GPU_PACK_BYTES},
        {"devices": ["GPU:0"], "by": "RING", "pack": GPU_PACK_BYTES},
    ]


def test_each_device_of_a_worker_gets_one_batch_of_the_flags_size_and_all_are_evaluated(
    cases: dict[str, Any],
) -> None:
    """Of the 6 examples to evaluate on, the second device gets what is left."""
    assert cases["batches"] == {"training": [4, 4], "evaluation": [4, 2], "evaluated": [6, 1]}
