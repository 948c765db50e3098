"""Strategies and batches on a machine whose processor counts as two devices."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import run_to_end
from trainer.devices.choices import CPU_PACK_BYTES, GPU_PACK_BYTES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def found(request: pytest.FixtureRequest, horses_dir: Path, tmp_path: Path) -> Any:
    """What this check of logical_devices.py finds."""
    result = tmp_path / "found.json"
    run_to_end("tests.trainer.logical_devices", request.param, str(horses_dir), str(result), folder=tmp_path)
    return json.loads(result.read_text())


@pytest.mark.parametrize("found", ["strategies"], indirect=True)
def test_every_strategy_of_one_process_is_built_with_its_devices_and_one_kind_of_floats(
    found: dict[str, Any],
) -> None:
    assert found == {
        "auto": ["default", 1, "bfloat16"],
        "one_device": ["OneDeviceStrategy", 1, "bfloat16"],
        "multi_worker_mirrored": ["MultiWorkerMirroredStrategy", 1, "bfloat16"],
        "mirrored": ["MirroredStrategy", 2, "bfloat16"],
    }


@pytest.mark.parametrize("found", ["multi_worker"], indirect=True)
def test_a_replica_of_several_computes_on_its_gpus_and_joins_them_by_nccl(
    found: list[dict[str, Any]],
) -> None:
    assert found == [
        {"devices": ["CPU:0"], "by": "AUTO", "pack": CPU_PACK_BYTES},
        {"devices": ["GPU:0", "GPU:1"], "by": "NCCL", "pack": GPU_PACK_BYTES},
        {"devices": ["GPU:0"], "by": "RING", "pack": GPU_PACK_BYTES},
    ]


@pytest.mark.parametrize("found", ["batches"], indirect=True)
def test_each_device_of_a_worker_gets_one_batch_of_the_flags_size_and_all_are_evaluated(
    found: dict[str, list[int]],
) -> None:
    """Of the 6 examples to evaluate on, the second device gets what is left."""
    assert found == {"training": [4, 4], "evaluation": [4, 2], "evaluated": [6, 1]}
