"""How a replica uses GPUs: which ones of its host, how gradients travel between them, and in which 16 bits they compute.

Nothing here imports TensorFlow.
"""

from collections.abc import Iterable
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class OwnGpus:
    """The GPUs of one replica. `indices` counts its host's from 0; `is_shared`: other replicas compute on them too."""

    indices: tuple[int, ...] = ()
    is_shared: bool = False


def own_gpus(cluster: Cluster, count: int, *, has_coordinator: bool) -> OwnGpus:
    """Which of its host's `count` GPUs this replica uses.

    Replicas that compute on one host get equal parts, because a synchronous strategy needs the same number in each;
    if there are fewer GPUs than replicas, they share all. With `has_coordinator`, parameter servers hold the variables
    and only workers compute.
    """
    everything = OwnGpus(indices=tuple(range(count)))
    if not cluster.members or cluster.role is Role.EVALUATOR:
        return everything
    computing = cluster.members.get(Role.WORKER, ()) if has_coordinator else cluster.trainers
    own = cluster.members[cluster.role][cluster.index]
    if own not in computing:
        return OwnGpus()
    neighbours = cluster.on_this_host(computing)
    each = count // len(neighbours)
    if not each:
        return OwnGpus(indices=everything.indices, is_shared=count > 0)
    first = neighbours.index(own) * each
    return OwnGpus(indices=everything.indices[first : first + each])


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
