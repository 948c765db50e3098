"""The choice of how a replica computes, made without TensorFlow, so that an impossible one fails at once.

With which tf.distribute strategy, on which of its host's GPUs, and in which 16 bits; and
whether TensorFlow sees the accelerators that the job pays for: an image without CUDA would train on the processor.

`CLUSTER_SPEC` repeats the job's worker pools with their machines. The local stack attaches no accelerators; in its
replicas none is expected.
Source of CLUSTER_SPEC: https://cloud.google.com/vertex-ai/docs/training/distributed-training (read 2026-11)
"""

import math
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole, is_tpu

GPU, TPU = "GPU", "TPU"
TPU_VARIABLES = ("TPU_NAME", "KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS")  # tensorflow/python/tpu/client/client.py
TPU_CORES = 8  # of a host of TPU v2 and v3, which are counted in cores
LOCAL_STACK = "TRAINMASTER_STACK"
_POOLS = tuple(ReplicaRole)  # by the number of the worker pool
_REPAIRS = {
    GPU: "Build the image with _VARIANT=cuda (docs/decisions/029-trainer-image-base.md)",
    TPU: "Use an image whose TensorFlow supports TPUs",
}

# Gradients travel in packs of about this size. In one pack, the default, they would be copied whole several times
# at once: 400 MiB more memory and twice the system time with ResNet50 (bench/trainer_throughput.py).
CPU_PACK_BYTES = 8 << 20
# NCCL needs larger ones to fill a link, and several, so that the first travel while later gradients are computed.
# The size for NCCL in TensorFlow's documentation, not measured here:
# https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CommunicationOptions (read 2026-11).
GPU_PACK_BYTES = 50 << 20

# The first with bfloat16 in hardware and in cuDNN's convolutions.
# https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html (read 2026-11)
BFLOAT16_CAPABILITY = (8, 0)
# Vertex AI's accelerator types of lower compute capability, 6.0 to 7.5: https://developer.nvidia.com/cuda-legacy-gpus.
# Google adds only newer ones.
WITHOUT_BFLOAT16 = frozenset(f"NVIDIA_TESLA_{name}" for name in ("P100", "P4", "V100", "T4"))


class Strategy(StrEnum):
    """The values of `--strategy`. Where no other applies, AUTO is TensorFlow's default strategy."""

    AUTO = "auto"
    MULTI_WORKER_MIRRORED = "multi_worker_mirrored"
    MIRRORED = "mirrored"
    PARAMETER_SERVER = "parameter_server"
    ONE_DEVICE = "one_device"
    TPU = "tpu"


OF_ONE_MACHINE = (Strategy.MIRRORED, Strategy.ONE_DEVICE, Strategy.TPU)


def chosen_strategy(
    asked: Strategy, cluster: ClusterSpec, *, gpus: int = 0, has_tpu: bool = False, mirrored: bool = False
) -> Strategy:
    """The strategy to build. `gpus` are this process's; `mirrored` is the workload's."""
    if asked is not Strategy.AUTO:
        return asked
    if cluster.has_parameter_servers:
        return Strategy.PARAMETER_SERVER
    if cluster.is_multi_worker:
        return Strategy.MULTI_WORKER_MIRRORED
    if has_tpu:
        return Strategy.TPU
    return Strategy.MIRRORED if mirrored or gpus > 1 else Strategy.AUTO


def strategy_contradictions(
    asked: Strategy, cluster: ClusterSpec, *, has_checkpoint_directory: bool
) -> list[str]:
    """Why the strategy cannot run on this cluster: each fault has what the cluster has and the likely repair.

    `has_checkpoint_directory`: the service or `--job_dir` sets the checkpoints' directory, which all replicas share.
    """
    faults = []
    if chosen_strategy(asked, cluster) is Strategy.PARAMETER_SERVER:
        faults += _missing_for_parameter_servers(asked, cluster)
    elif servers := len(cluster.members.get(ReplicaRole.PARAMETER_SERVER, ())):
        faults.append(
            f"--strategy={asked} does not use parameter servers, but the cluster has {servers}. "
            f"Use --strategy=parameter_server, or leave worker pool 2 out of the request."
        )
    if asked in OF_ONE_MACHINE and cluster.is_multi_worker:
        faults.append(
            f"--strategy={asked} trains on one machine, but the cluster has {len(cluster.trainers)} that train: each "
            f"would train a separate model. Use --strategy=multi_worker_mirrored, or leave worker pool 1 out of the "
            f"request."
        )
    if cluster.role is ReplicaRole.EVALUATOR and not has_checkpoint_directory:
        faults.append(
            f"{cluster.replica} evaluates the chief's checkpoints, but AIP_CHECKPOINT_DIR is not set. Give the job a "
            f"baseOutputDirectory, or every replica the same --job_dir, in a bucket that all of them can reach."
        )
    return faults


def _missing_for_parameter_servers(asked: Strategy, cluster: ClusterSpec) -> list[str]:
    needed = {
        ReplicaRole.PARAMETER_SERVER: "parameter server, to hold the variables: add worker pool 2",
        ReplicaRole.WORKER: "worker, to compute gradients, which the chief does not do: add worker pool 1",
        ReplicaRole.CHIEF: "chief, to coordinate the workers: add worker pool 0",
    }
    otherwise = (
        "use --strategy=multi_worker_mirrored or auto"
        if not cluster.has_parameter_servers
        else "leave worker pool 2 out of the request"
    )
    return [
        f"--strategy={asked}: training with parameter servers needs at least one {need}, or {otherwise}."
        for role, need in needed.items()
        if not cluster.members.get(role)
    ]


def own_gpus(cluster: ClusterSpec, count: int) -> range:
    """Which of its host's `count` GPUs this replica uses, counted from 0.

    Replicas that compute on one host get equal parts, because a synchronous strategy needs the same number in each;
    if there are fewer GPUs than replicas, they share all. With parameter servers, only workers compute.
    """
    if not cluster.members or cluster.role is ReplicaRole.EVALUATOR:
        return range(count)
    computing = (
        cluster.members.get(ReplicaRole.WORKER, ()) if cluster.has_parameter_servers else cluster.trainers
    )
    address = cluster.members[cluster.role][cluster.index]
    if address not in computing:
        return range(0)
    neighbours = cluster.on_this_host(computing)
    per_replica = count // len(neighbours)
    first = neighbours.index(address) * per_replica
    return range(first, first + per_replica) if per_replica else range(count)


def computes_bfloat16(capabilities: Iterable[tuple[int, int] | None]) -> bool:
    """Whether GPUs of these compute capabilities do, None for an unknown one. True without any: CPUs and TPUs do."""
    return all(capability is not None and capability >= BFLOAT16_CAPABILITY for capability in capabilities)


def no_mixed_precision(accelerator_type: str) -> str | None:
    """The fault of mixed precision on parameter servers' workers with these GPUs, empty if unknown; None if it works."""
    if accelerator_type and accelerator_type not in WITHOUT_BFLOAT16:
        return None
    return (
        f"--mixed_precision: the workers have {accelerator_type or 'GPUs of an unknown type'}, and below compute "
        f"capability 8.0 GPUs need float16 with loss scaling, which TensorFlow does not support with parameter "
        f"servers. Use NVIDIA_L4, NVIDIA_TESLA_A100 or newer GPUs, or leave out --mixed_precision, or leave worker "
        f"pool 2 out of the request."
    )


def require_accelerators(cluster: ClusterSpec, environment: Mapping[str, str]) -> None:
    """Return at once where the job has no accelerators for this replica, without importing TensorFlow.

    Raises:
        Unusable: TensorFlow sees none of the kind that the job has.
    """
    expected = expected_accelerator(cluster, environment)
    if expected is None:
        return
    import tensorflow as tf

    kind, words = expected
    seen = [device.device_type for device in tf.config.list_physical_devices()]
    if not any(device.startswith(kind) for device in seen):  # TPU_SYSTEM is a TPU that is not initialized yet
        raise Unusable(
            f"The job has {words} for {cluster.replica}, but TensorFlow sees no {kind} and would train on the CPU. "
            f"{_REPAIRS[kind]}, or remove the accelerator from the request."
        )


def expected_accelerator(cluster: ClusterSpec, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """The kind, GPU or TPU, and in words what the job has for this replica; None where nothing can be expected.

    A TPU at an address of the network needs no device.
    """
    if LOCAL_STACK in environment or cluster.role is ReplicaRole.PARAMETER_SERVER:
        return None
    machine = _machine_of(cluster, cluster.role)
    if is_tpu(machine):
        has_address = any(environment.get(name) for name in TPU_VARIABLES)
        return None if has_address else (TPU, f"a TPU ({machine.get('machine_type', 'its machine')})")
    count, kind = accelerators_of(cluster, cluster.role)
    return (GPU, f"{count} {kind}") if count else None


def unequal_accelerators(cluster: ClusterSpec, environment: Mapping[str, str]) -> str | None:
    """The fault of chief and workers that are to train in step on different numbers of GPUs; None if there is none.

    TensorFlow takes each replica's own number for that of all (collective_all_reduce_strategy.py, 2.21).
    """
    trainers = (ReplicaRole.CHIEF, ReplicaRole.WORKER)
    is_known = cluster.is_multi_worker and all(_machine_of(cluster, role) for role in trainers)
    chief, worker = (accelerators_of(cluster, role)[0] for role in trainers)
    if LOCAL_STACK in environment or not is_known or chief == worker:
        return None
    return (
        f"Worker pools 0 and 1 train in step and need the same number of accelerators in each replica: pool 0 has "
        f"{chief or 'none'}, pool 1 has {worker or 'none'}. Give both the same machine and accelerators; a chief "
        f"without them can coordinate workers that have them, with parameter servers in worker pool 2."
    )


def tpu_fault(cluster: ClusterSpec, *, sees_tpu: bool = False) -> str | None:
    """The fault of a TPU that this replica could not train on; None without one. `sees_tpu`: whatever the job has."""
    machine = _machine_of(cluster, cluster.role)
    if cluster.is_multi_worker and (sees_tpu or is_tpu(machine)):
        found = f"{len(cluster.trainers)} replicas would train together, on their CPUs"
    elif is_tpu(machine) and (hosts := _tpu_hosts(machine)) > 1:
        found = f"the TPU of the job has {hosts} hosts, each of which would train a separate model"
    else:
        return None
    return (
        f"{cluster.replica} has a TPU, and the trainer uses TPUs of one replica on one host: {found}. Request one chief "
        f"with a topology that one machine has, such as ct5lp-hightpu-8t with 2x4, or machines with GPUs."
    )


def _tpu_hosts(machine: Mapping[str, Any]) -> int:
    """The chips of the topology over those that the machine's name counts; without one, the cores over those of a host."""
    in_name = re.search(r"-(\d+)t$", str(machine.get("machine_type")))
    sides = re.findall(r"\d+", str(machine.get("tpu_topology") or machine.get("accelerator_count") or 1))
    return math.ceil(math.prod(map(int, sides)) / (int(in_name[1]) if in_name else TPU_CORES))


def accelerators_of(cluster: ClusterSpec, role: ReplicaRole) -> tuple[int, str]:
    """Number and type, such as NVIDIA_L4, of each replica's in this role's worker pool; 0 and empty without any."""
    machine = _machine_of(cluster, role)
    count, kind = (str(machine.get(f"accelerator_{name}") or "") for name in ("count", "type"))
    is_named = count.isdecimal() and kind not in {"", "ACCELERATOR_TYPE_UNSPECIFIED"}
    return (int(count), kind) if is_named else (0, "")


def _machine_of(cluster: ClusterSpec, role: ReplicaRole) -> Mapping[str, Any]:
    """The machine of this role's worker pool; empty where the job does not say it."""
    machines = cluster.of_pools("machine_spec")
    number = _POOLS.index(role)
    return machines[number] if number < len(machines) else {}
