"""Whether TensorFlow sees the accelerators that the job pays for: an image without CUDA would train on the processor.

`CLUSTER_SPEC` repeats the job's worker pools with their machines, and the service attaches a GPU as /dev/nvidia0, …,
whatever the image holds. The local stack attaches none; in its replicas nothing is expected.
Source of CLUSTER_SPEC: https://cloud.google.com/vertex-ai/docs/training/distributed-training (read 2026-11)
"""

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from trainer.faults import Unusable
from trainer.replicas.cluster import Cluster, Role, is_tpu

GPU, TPU = "GPU", "TPU"
TPU_VARIABLES = ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS")  # tensorflow/python/tpu/client/client.py
LOCAL_STACK = "TRAINMASTER_STACK"
_POOLS = (Role.CHIEF, Role.WORKER, Role.PARAMETER_SERVER, Role.EVALUATOR)  # by the number of the worker pool
_REPAIRS = {
    GPU: "Build the image with _VARIANT=cuda (docs/decisions/029-trainer-image-base.md)",
    TPU: "Use an image whose TensorFlow supports TPUs",
}
_GPU_FILE = re.compile(r"nvidia\d+")


def require_accelerators(cluster: Cluster, environment: Mapping[str, str]) -> None:
    """Return at once where the job has no accelerators for this replica, without importing TensorFlow.

    Raises:
        Unusable: TensorFlow sees none of the kind that the job has.
    """
    files = [path.name for path in Path("/dev").glob("nvidia*")]
    expected = expected_accelerator(cluster, environment, files)
    if expected is None:
        return
    import tensorflow as tf

    seen = {device.device_type for device in tf.config.list_physical_devices()}
    if fault := missing_accelerator(cluster.replica, expected, seen):
        raise Unusable(fault)


def expected_accelerator(
    cluster: Cluster, environment: Mapping[str, str], device_files: Iterable[str]
) -> tuple[str, str] | None:
    """The kind, GPU or TPU, and in words what the job has for this replica; None where nothing can be expected.

    `device_files`, names in /dev, count only in a job of the service: other programs may leave a GPU unused. A TPU at
    an address of the network needs no device.
    """
    if LOCAL_STACK in environment or cluster.role is Role.PARAMETER_SERVER:
        return None
    machine = _machine(cluster, cluster.role)
    if is_tpu(machine):
        has_address = any(environment.get(name) for name in TPU_VARIABLES)
        return None if has_address else (TPU, f"a TPU ({machine.get('machine_type', 'its machine')})")
    if count := _count(cluster, cluster.role):
        return GPU, f"{count} {accelerator_of(cluster, cluster.role)}"
    files = sorted(name for name in device_files if _GPU_FILE.fullmatch(name))
    return (GPU, f"/dev/{files[0]}") if files and environment.get("CLOUD_ML_JOB_ID") else None


def unequal_accelerators(cluster: Cluster, environment: Mapping[str, str]) -> str | None:
    """The fault of chief and workers that are to train in step on different numbers of GPUs; None if there is none.

    TensorFlow takes each replica's own number for that of all (collective_all_reduce_strategy.py, 2.21).
    """
    trainers = (Role.CHIEF, Role.WORKER)
    is_known = cluster.is_multi_worker and all(_machine(cluster, role) for role in trainers)
    chief, worker = (_count(cluster, role) for role in trainers)
    if LOCAL_STACK in environment or not is_known or chief == worker:
        return None
    return (
        f"Worker pools 0 and 1 train in step and need the same number of accelerators in each replica: pool 0 has "
        f"{chief or 'none'}, pool 1 has {worker or 'none'}. Give both the same machine and accelerators; a chief "
        f"without them can coordinate workers that have them, with parameter servers in worker pool 2."
    )


def missing_accelerator(replica: str, expected: tuple[str, str], seen: Collection[str]) -> str | None:
    """The fault of a replica that should have the expected accelerator. `seen`: TensorFlow's types of devices."""
    kind, words = expected
    if any(device.startswith(kind) for device in seen):  # TPU_SYSTEM is a TPU that is not initialized yet
        return None
    return (
        f"The job has {words} for {replica}, but TensorFlow sees no {kind} and would train on the CPU. "
        f"{_REPAIRS[kind]}, or remove the accelerator from the request."
    )


def accelerator_of(cluster: Cluster, role: Role) -> str:
    """The accelerator type in the worker pool of this role, such as NVIDIA_L4; empty where the job names none."""
    kind = str(_machine(cluster, role).get("accelerator_type") or "")
    return "" if kind == "ACCELERATOR_TYPE_UNSPECIFIED" else kind


def _count(cluster: Cluster, role: Role) -> int:
    """The accelerators of each replica in the worker pool of this role; 0 where the job names none."""
    count = str(_machine(cluster, role).get("accelerator_count"))
    return int(count) if count.isdecimal() and accelerator_of(cluster, role) else 0


def _machine(cluster: Cluster, role: Role) -> Mapping[str, Any]:
    """The machine of this role's worker pool; empty where the job does not say it."""
    machines = cluster.of_pools("machine_spec")
    number = _POOLS.index(role)
    return machines[number] if number < len(machines) else {}
