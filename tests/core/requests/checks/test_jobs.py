"""Contradicting settings, arguments without a reader, and values beyond the service's limits are refused."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.roles import L4, MACHINE, ONE, OTHER, PACKAGE, T4, TUNING, cluster, request, told

NFS = [{"server": "10.0.0.1", "path": "/a", "mount_point": "a"}]
PACKAGED = {**MACHINE, "python_package": PACKAGE}
IMAGED = {**MACHINE, "image": OTHER}
TPU = {"machine": "ct5lp-hightpu-4t", "tpu_topology": "2x2"}
SMALL_TPU = {"machine": "ct5lp-hightpu-1t", "tpu_topology": "1x1"}
OLD_TPU = {"machine": "cloud-tpu", "accelerator": {"type": "TPU_V2", "count": 8}, "count": 1}


def of(chief: object, **roles: object) -> dict[str, Any]:
    return {"cluster": {"chief": chief, **roles}}


def flex(**scheduling: object) -> dict[str, Any]:
    return {"scheduling": {"flex_start": True, **scheduling}}


def stop(**when: object) -> dict[str, Any]:
    return {"tuning": {**TUNING, "stop_study": when}}


def env(prefix: str, count: int) -> dict[str, Any]:
    return {"env": {f"{prefix}{number}": "" for number in range(count)}}


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (
            {"scheduling": {"restart_on_worker_restart": True, "disable_retries": True}},
            "$.scheduling.restart_on_worker_restart",
            "remove one of the two",
        ),
        ({**flex(spot=True), **of(L4)}, "$.scheduling.spot", "remove one of the two"),
        ({"scheduling": {"max_wait_s": 60}}, "$.scheduling.max_wait_s", "flex_start: true"),
        (flex(flex_start=False, max_wait_s=60), "$.scheduling.max_wait_s", "flex_start: true"),
        (flex(), "$.cluster.chief.machine", "NVIDIA_L4, NVIDIA_TESLA_A100"),
        (
            {**flex(), **of({**MACHINE, "accelerator": T4})},
            "$.cluster.chief.accelerator.type",
            "works only with these GPUs",
        ),
        (
            {**flex(), **of(L4, workers={**L4, "machine": "g2-standard-8", "count": 1})},
            "$.cluster.workers.machine",
            "the chief's, 'g2-standard-4'",
        ),
        ({**flex(timeout_s=604801), **of(L4)}, "$.scheduling.timeout_s", "at most 7 days"),
        (of({**MACHINE, "nfs_mounts": NFS}), "$.cluster.chief.nfs_mounts", "write network"),
        ({"reserved_ip_ranges": ["r"]}, "$.reserved_ip_ranges", "write network"),
        (
            {"image": None, "python_package": PACKAGE, "cluster": cluster(workers={**ONE, "command": ["a"]})},
            "$.cluster.workers.command",
            "cluster.workers.image",
        ),
        (
            {"image": None, "command": ["a"], **of(PACKAGED, workers=ONE)},
            "$.command",
            "started by its module",
        ),
        (of(IMAGED), "$.image", "remove it"),
        ({"image": None, "args": ["--a"], **of(IMAGED)}, "$.args", "cluster.chief.args"),
        ({"args": ["x" * 60_000, "y" * 60_000]}, "$.args", "at most 100000 characters"),
        (
            {**env("A", 60), "cluster": cluster(workers={**ONE, **env("B", 41)})},
            "$.cluster.workers.env",
            "at most 100",
        ),
        (
            {**env("A", 100), "cluster": cluster(replica_environment="ai_platform")},
            "$.env",
            "one of them for replica_environment",
        ),
        (of(TPU, workers=ONE), "$.cluster.chief.machine", "beside workers"),
        (of(MACHINE, workers=OLD_TPU), "$.cluster.workers.machine", "remove the other roles"),
        ({"tuning": TUNING, **of(SMALL_TPU)}, "$.cluster.chief.machine", "cannot use TPUs"),
        (
            {"tuning": TUNING, **of({**MACHINE, "args": ["--learning_rate=1"]})},
            "$.tuning.parameters.learning_rate",
            "remove --learning_rate from $.cluster.chief.args",
        ),
        (
            stop(max_end_time="2026-02-30T00:00:00Z"),
            "$.tuning.stop_study.max_end_time",
            "the month does not have this day",
        ),
        (stop(min_end_time="2026-13-01T00:00:00Z"), "$.tuning.stop_study.min_end_time", "a time in UTC"),
        (stop(max_runtime_s=315576000001), "$.tuning.stop_study.max_runtime_s", "too large"),
    ],
)
def test_each_fault_names_its_place_and_its_repair(changes: Mapping[str, Any], path: str, words: str) -> None:
    faults = told(request(**changes))
    assert path in faults
    assert words in str(faults[path])
