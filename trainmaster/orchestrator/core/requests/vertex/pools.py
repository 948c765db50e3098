"""Worker pools as the API spells them, said in our own way: roles, their machines, disks and shares."""

from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, json_path, listed
from trainmaster.orchestrator.core.requests.vertex.fields import (
    Fields,
    Numbers,
    Path,
    by_number,
    not_one_of,
    number,
)
from trainmaster.orchestrator.core.requests.vertex.program import ProgramTranslation

ROLES = ("chief", "workers", "parameter_servers", "evaluators")
"""The role of each pool; an empty pool keeps the places of those after it.

Source: https://cloud.google.com/vertex-ai/docs/training/distributed-training
"""
ACCELERATOR_NUMBERS: Numbers = {
    0: "ACCELERATOR_TYPE_UNSPECIFIED",
    1: "NVIDIA_TESLA_K80",
    2: "NVIDIA_TESLA_P100",
    3: "NVIDIA_TESLA_V100",
    4: "NVIDIA_TESLA_P4",
    5: "NVIDIA_TESLA_T4",
    6: "TPU_V2",
    7: "TPU_V3",
    8: "NVIDIA_TESLA_A100",
    9: "NVIDIA_A100_80GB",
    10: "TPU_V4_POD",
    11: "NVIDIA_L4",
    12: "TPU_V5_LITEPOD",
    13: "NVIDIA_H100_80GB",
    14: "NVIDIA_H100_MEGA_80GB",
    15: "NVIDIA_H200_141GB",
    16: "NVIDIA_B200",
    17: "NVIDIA_GB200",
    18: "NVIDIA_RTX_PRO_6000",
}
"""Source: google/cloud/aiplatform_v1/types/accelerator_type.py, read 2026-11; a test holds it to the client's."""
MACHINE_WITHOUT_PLACE = ("gpuPartitionSize", "reservationAffinity")
POOL_WITHOUT_PLACE = ("lustreMounts",)
_DISK_KEYS = {"bootDiskType": "type", "bootDiskSizeGb": "size_gb"}
_MOUNT_KEYS = {"server": "server", "path": "path", "mountPoint": "mount_point"}


class PoolTranslation(ProgramTranslation):
    """The pools of a job. The chief's program is the request's own, whose flags and image the checks read."""

    def _pools(self, mine: dict[str, Any], spec: Fields) -> None:
        source, cluster = spec.at("workerPoolSpecs"), dict[str, Any]()
        self._put(mine, (), "cluster", cluster, source)
        self._places["$.image"] = json_path((*source, 0))
        for index, role in enumerate(ROLES):
            self._places[json_path(("cluster", role))] = json_path((*source, index))
        for index, value in enumerate(self._list(spec, "workerPoolSpecs")):
            path = (*source, index)
            if index >= len(ROLES):
                self._refuse(path, "no role is left for this pool", value, allowed=_PLACES)
            elif isinstance(value, Mapping):
                if any(number(each) for each in value.values()):
                    self._pool(mine, cluster, index, Fields(value, path))
            elif value is not None:
                self._refuse(path, "a mapping is wanted here", value)
        if "chief" not in cluster:
            problem = "there is no chief, which every job has"
            self._faults.append(Fault(path=json_path((*source, 0)), problem=problem, allowed=_PLACES))
        self._replica_environment(cluster)

    def _replica_environment(self, cluster: dict[str, Any]) -> None:
        if not self._environments:
            return
        path, value = self._environments[0]
        self._put(cluster, ("cluster",), "replica_environment", value, path)
        if len(self._environments) != sum(role in cluster for role in ROLES) or any(
            other != value for _, other in self._environments
        ):
            problem = "the replicas of a job are told of one environment alike"
            repair = "give every pool the variable with the same value, or none"
            self._refuse(path, problem, [each for _, each in self._environments], repair=repair)

    def _pool(self, mine: dict[str, Any], cluster: dict[str, Any], index: int, pool: Fields) -> None:
        here: Path = ("cluster", ROLES[index])
        fields: dict[str, Any] = {}
        self._put(cluster, ("cluster",), ROLES[index], fields, pool.path)
        self._count(fields, here, pool)
        self._machine(fields, here, self._fields(pool, "machineSpec"))
        self._disk(fields, here, pool)
        self._mounts(fields, here, pool)
        self._program(*((mine, ()) if index == 0 else (fields, here)), pool)
        self._faults += pool.unknown(POOL_WITHOUT_PLACE)

    def _count(self, mine: dict[str, Any], here: Path, pool: Fields) -> None:
        count = number(pool.get("replicaCount"))
        if here[-1] != "chief":
            self._put(mine, here, "count", 1 if count is None else count, pool.at("replicaCount"))
        elif count is not None and (count != 1 or isinstance(count, bool)):
            self._refuse(
                pool.at("replicaCount"),
                "there is exactly one chief",
                count,
                allowed="1 in pool 0",
                repair="the others are workers: pool 1",
            )

    def _machine(self, mine: dict[str, Any], here: Path, machine: Fields) -> None:
        self._put(mine, here, "machine", machine.get("machineType"), machine.at("machineType"))
        accelerator: dict[str, Any] = {}
        inner = (*here, "accelerator")
        self._places[json_path(inner)] = json_path(machine.at("acceleratorType"))
        kind = by_number(machine.get("acceleratorType"), ACCELERATOR_NUMBERS)
        if isinstance(kind, int):
            known = tuple(ACCELERATOR_NUMBERS.values())
            self._faults.append(not_one_of(machine.at("acceleratorType"), kind, known))
        none = kind == ACCELERATOR_NUMBERS[0]
        self._put(accelerator, inner, "type", None if none else kind, machine.at("acceleratorType"))
        count = number(machine.get("acceleratorCount"))
        unsaid = count == 0 and "type" not in accelerator  # the API's own way to say that there are none
        self._put(accelerator, inner, "count", None if unsaid else count, machine.at("acceleratorCount"))
        if accelerator:
            mine["accelerator"] = accelerator
        self._put(mine, here, "tpu_topology", machine.get("tpuTopology"), machine.at("tpuTopology"))
        self._faults += machine.unknown(MACHINE_WITHOUT_PLACE)

    def _disk(self, mine: dict[str, Any], here: Path, pool: Fields) -> None:
        disk = self._fields(pool, "diskSpec")
        fields: dict[str, Any] = {}
        self._put(mine, here, "disk", fields if pool.has("diskSpec") else None, disk.path)
        for theirs, ours in _DISK_KEYS.items():
            self._put(fields, (*here, "disk"), ours, number(disk.get(theirs)), disk.at(theirs))
        self._faults += disk.unknown()

    def _mounts(self, mine: dict[str, Any], here: Path, pool: Fields) -> None:
        mounts: list[dict[str, Any]] = []
        for index, value in enumerate(self._list(pool, "nfsMounts")):
            mount, fields = Fields(value, (*pool.at("nfsMounts"), index)), dict[str, Any]()
            if mount.kind_fault:
                self._refuse(mount.path, "a mapping is wanted here", value)
                continue
            inner = (*here, "nfs_mounts", len(mounts))
            self._places[json_path(inner)] = json_path(mount.path)
            for theirs, ours in _MOUNT_KEYS.items():
                self._put(fields, inner, ours, mount.get(theirs), mount.at(theirs))
            self._faults += mount.unknown()
            mounts.append(fields)
        self._put(mine, here, "nfs_mounts", mounts or None, pool.at("nfsMounts"))


_PLACES = listed(f"{index} {role.replace('_', ' ')}" for index, role in enumerate(ROLES))
