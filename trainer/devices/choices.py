"""How a replica computes, chosen without TensorFlow, so that an impossible choice fails at once.

With which tf.distribute strategy, on which of its host's GPUs, how gradients travel, and in which 16 bits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from trainer.replicas.cluster import Cluster, Role

# Gradients travel in packs of about this size. In one pack they would be copied whole several times
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
    """The values of `--strategy`. DEFAULT is what AUTO chooses if no other strategy applies."""

    AUTO = "auto"
    MULTI_WORKER_MIRRORED = "multi_worker_mirrored"
    MIRRORED = "mirrored"
    PARAMETER_SERVER = "parameter_server"
    ONE_DEVICE = "one_device"
    TPU = "tpu"
    DEFAULT = "default"


CHOICES = tuple(strategy for strategy in Strategy if strategy is not Strategy.DEFAULT)
OF_ONE_MACHINE = (Strategy.MIRRORED, Strategy.ONE_DEVICE, Strategy.TPU)


def read_strategy(text: str) -> Strategy:
    """The strategy of that name, a dash for an underscore allowed. Raises ValueError with the valid names."""
    name = text.replace("-", "_").lower()
    if name not in CHOICES:
        raise ValueError(f"one of {', '.join(CHOICES)}")
    return Strategy(name)


def chosen(
    asked: Strategy, cluster: Cluster, *, gpus: int = 0, has_tpu: bool = False, mirrored: bool = False
) -> Strategy:
    """The strategy to build, never AUTO. `gpus` are this process's; `mirrored` is the workload's."""
    if asked is not Strategy.AUTO:
        return asked
    if cluster.has_parameter_servers:
        return Strategy.PARAMETER_SERVER
    if cluster.is_multi_worker:
        return Strategy.MULTI_WORKER_MIRRORED
    if has_tpu:
        return Strategy.TPU
    return Strategy.MIRRORED if mirrored or gpus > 1 else Strategy.DEFAULT


def contradictions(asked: Strategy, cluster: Cluster, *, has_checkpoint_directory: bool) -> list[str]:
    """Why the strategy cannot run on this cluster: each fault has what the cluster has and the likely repair.

    `has_checkpoint_directory`: the service or `--job_dir` sets the checkpoints' directory, which all replicas share.
    """
    faults = []
    if chosen(asked, cluster) is Strategy.PARAMETER_SERVER:
        faults += _missing_for_parameter_servers(asked, cluster)
    elif servers := len(cluster.members.get(Role.PARAMETER_SERVER, ())):
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
    if cluster.role is Role.EVALUATOR and not has_checkpoint_directory:
        faults.append(
            f"{cluster.replica} evaluates the chief's checkpoints, but AIP_CHECKPOINT_DIR is not set. Give the job a "
            f"baseOutputDirectory, or every replica the same --job_dir, in a bucket that all of them can reach."
        )
    return faults


def _missing_for_parameter_servers(asked: Strategy, cluster: Cluster) -> list[str]:
    needed = {
        Role.PARAMETER_SERVER: "parameter server, to hold the variables: add worker pool 2",
        Role.WORKER: "worker, to compute gradients, which the chief does not do: add worker pool 1",
        Role.CHIEF: "chief, to coordinate the workers: add worker pool 0",
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


@dataclass(frozen=True, kw_only=True)
class OwnGpus:
    """The GPUs of one replica. `indices` counts its host's from 0; `is_shared`: other replicas compute on them too."""

    indices: tuple[int, ...] = ()
    is_shared: bool = False


def own_gpus(cluster: Cluster, count: int) -> OwnGpus:
    """Which of its host's `count` GPUs this replica uses.

    Replicas that compute on one host get equal parts, because a synchronous strategy needs the same number in each;
    if there are fewer GPUs than replicas, they share all. With parameter servers, only workers compute.
    """
    everything = tuple(range(count))
    if not cluster.members or cluster.role is Role.EVALUATOR:
        return OwnGpus(indices=everything)
    computing = cluster.members.get(Role.WORKER, ()) if cluster.has_parameter_servers else cluster.trainers
    own = cluster.members[cluster.role][cluster.index]
    if own not in computing:
        return OwnGpus()
    neighbours = cluster.on_this_host(computing)
    each = count // len(neighbours)
    if not each:
        return OwnGpus(indices=everything, is_shared=count > 0)
    first = neighbours.index(own) * each
    return OwnGpus(indices=everything[first : first + each])


def collectives(own: OwnGpus) -> dict[str, Any]:
    """TensorFlow's CommunicationOptions, by name: NCCL for GPUs, which AUTO never chooses; else its rings over gRPC.

    NCCL refuses two processes on one GPU: https://github.com/NVIDIA/nccl/issues/418 (read 2026-11).
    """
    if not own.indices:
        return {"implementation": "AUTO", "bytes_per_pack": CPU_PACK_BYTES}
    return {"implementation": "RING" if own.is_shared else "NCCL", "bytes_per_pack": GPU_PACK_BYTES}


def computes_bfloat16(capabilities: Iterable[tuple[int, int] | None]) -> bool:
    """Whether GPUs of these compute capabilities do, None for an unknown one. True without any: CPUs and TPUs do."""
    return all(found is not None and found >= BFLOAT16_CAPABILITY for found in capabilities)


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
