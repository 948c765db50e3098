"""The environment variables from which each framework learns its cluster: one table, and the facts that fill it."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole, host_of, is_tpu

LEGACY_NAMES = {**{role: role.value for role in ReplicaRole}, ReplicaRole.CHIEF: "master"}
UNUSED_ROLES = {
    ReplicaRole.PARAMETER_SERVER: (
        "parameter servers",
        "Every process computes gradients: leave worker pool 2 empty (`{}`), or use Reduction Server's image in it.",
    ),
    ReplicaRole.EVALUATOR: (
        "evaluators",
        "Leave worker pool 3 out of the request, and evaluate in the chief.",
    ),
}
"""The roles that only programs of AI Platform Training have, and the repair of a request with them for another program."""

KEPT_IF_SET = (
    "GLOO_SOCKET_IFNAME",
    "PET_NPROC_PER_NODE",
    "JAX_LOCAL_DEVICE_IDS",
    "JAX_COORDINATOR_BIND_ADDRESS",
    "HOROVOD_GLOO_TIMEOUT_SECONDS",
    "HOROVOD_GLOO_IFACE",
)
"""The variables that a user may know better: the others overwrite the environment."""


@dataclass(frozen=True, kw_only=True)
class Framework:
    """A row of the table.

    Attributes:
        variables: names by their value, which has facts of the cluster in braces. Those whose value is empty are not set.
        has_every_role: whether it also has parameter servers and evaluators.
        applies: whether the variables are set in such a cluster.
    """

    variables: Mapping[str, tuple[str, ...]]
    has_every_role: bool = False
    applies: Callable[[ClusterSpec], bool] = lambda _: True


FRAMEWORKS: Mapping[str, Framework] = {
    # What `init_process_group()` reads with its default `env://`; one process per replica:
    # https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization; LOCAL_* and GROUP_*:
    # https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables. The PET_* are the defaults of
    # torchrun's flags: `-- torchrun train.py` starts one process per GPU, and one without GPUs.
    "torch": Framework(
        variables={
            "{host}": ("MASTER_ADDR", "PET_MASTER_ADDR"),
            "{port}": ("MASTER_PORT", "PET_MASTER_PORT"),
            "{rank}": ("RANK", "GROUP_RANK", "PET_NODE_RANK", "NODE_RANK"),  # the last is Lightning's
            "{size}": ("WORLD_SIZE", "GROUP_WORLD_SIZE", "PET_NNODES"),
            "0": ("LOCAL_RANK",),
            "1": ("LOCAL_WORLD_SIZE",),
            "{processes}": ("PET_NPROC_PER_NODE",),
            "{loopback_interface}": ("GLOO_SOCKET_IFNAME",),
        },
    ),
    # What `jax.distributed.initialize()` reads when called without arguments. JAX (0.10) has variables only for the
    # coordinator's address and the local devices; it takes the number and the rank of the processes from Open MPI, Slurm
    # or Kubernetes (jax/_src/clusters), so Open MPI's variables are set. With these alone a process would use one device,
    # hence JAX_LOCAL_DEVICE_IDS. JAX_NUM_PROCESSES and JAX_PROCESS_ID are for programs that pass them on.
    # `keras.distribution.initialize()` reads KERAS_DISTRIBUTION_*, https://keras.io/api/distribution. The hosts of a TPU
    # need none: https://cloud.google.com/vertex-ai/docs/training/training-with-tpu-vm.
    "jax": Framework(
        variables={
            "{address}": ("JAX_COORDINATOR_ADDRESS", "KERAS_DISTRIBUTION_JOB_ADDRESSES"),
            "0.0;tcp://{address}": ("OMPI_MCA_orte_hnp_uri",),
            "{size}": ("JAX_NUM_PROCESSES", "OMPI_COMM_WORLD_SIZE", "KERAS_DISTRIBUTION_NUM_PROCESSES"),
            "{rank}": ("JAX_PROCESS_ID", "OMPI_COMM_WORLD_RANK", "KERAS_DISTRIBUTION_PROCESS_ID"),
            "0": ("OMPI_COMM_WORLD_LOCAL_RANK",),
            "{gpu_indices}": ("JAX_LOCAL_DEVICE_IDS",),
            "{loopback_address}": ("JAX_COORDINATOR_BIND_ADDRESS",),
        },
        applies=lambda cluster: not any(map(is_tpu, cluster.of_pools("machine_spec"))),
    ),
    # What Horovod's gloo controller reads; one process per replica.
    # https://github.com/horovod/horovod/blob/master/horovod/runner/gloo_run.py sets the same variables over ssh, which
    # Vertex AI's replicas do not run, and serves the rendezvous, which the chief's program does (the page has the lines).
    # TRAINMASTER_HOROVOD_HOSTS is for images that run sshd: `horovodrun -np N -H "$TRAINMASTER_HOROVOD_HOSTS"`. Horovod's
    # default wait of 30 seconds is too short if replicas start minutes apart.
    "horovod": Framework(
        variables={
            "{rank}": ("HOROVOD_RANK", "HOROVOD_CROSS_RANK"),
            "{size}": ("HOROVOD_SIZE", "HOROVOD_CROSS_SIZE"),
            "0": ("HOROVOD_LOCAL_RANK",),
            "1": ("HOROVOD_LOCAL_SIZE",),
            "{own_host}": ("HOROVOD_HOSTNAME",),
            "{host}": ("HOROVOD_GLOO_RENDEZVOUS_ADDR",),
            "{port}": ("HOROVOD_GLOO_RENDEZVOUS_PORT",),
            "gloo": ("HOROVOD_CONTROLLER", "HOROVOD_CPU_OPERATIONS"),
            "{hosts}": ("TRAINMASTER_HOROVOD_HOSTS",),
            "1800": ("HOROVOD_GLOO_TIMEOUT_SECONDS",),
            "{loopback_interface}": ("HOROVOD_GLOO_IFACE",),
        },
        applies=lambda cluster: cluster.is_multi_worker,
    ),
    # Also for a single replica, but not for a process outside a job. Idempotent.
    # https://cloud.google.com/ai-platform/training/docs/distributed-training-details: `master` for the chief, unless
    # `useChiefInTfConfig` is set; the evaluator only in CLUSTER_SPEC.
    "ai-platform": Framework(
        variables={"{legacy_tf_config}": ("TF_CONFIG",), "{legacy_cluster_spec}": ("CLUSTER_SPEC",)},
        has_every_role=True,
        applies=lambda cluster: bool(cluster.source),
    ),
}


def variables_for(name: str, cluster: ClusterSpec, *, gpus: int = 0) -> dict[str, str]:
    """What the framework of that name needs in this replica, which has this number of GPUs.

    Raises:
        Unusable: the framework does not use a role of the cluster.
    """
    framework = FRAMEWORKS[name]
    if faults := [] if framework.has_every_role else _role_faults(name, cluster):
        raise Unusable(*faults)
    if not framework.applies(cluster):
        return {}
    facts = _facts_of(cluster, gpus)
    return {
        variable: value
        for text, names in framework.variables.items()
        for variable in names
        if (value := text.format_map(facts))
    }


def _role_faults(name: str, cluster: ClusterSpec) -> list[str]:
    members = cluster.without_reduction_servers().members
    counts = {
        ReplicaRole.PARAMETER_SERVER: len(members.get(ReplicaRole.PARAMETER_SERVER, ())),
        ReplicaRole.EVALUATOR: len(cluster.evaluators) or int(cluster.role is ReplicaRole.EVALUATOR),
    }
    return [
        f"{name} does not use {words}, and this cluster has {counts[role]}. {repair}"
        for role, (words, repair) in UNUSED_ROLES.items()
        if counts[role]
    ]


def _facts_of(cluster: ClusterSpec, gpus: int) -> dict[str, object]:
    """What the texts of the table name in braces; empty where it does not hold.

    Nothing else listens at the chief's port, 2222, which Vertex AI reserves for the cluster.
    """
    address = next(iter(cluster.trainers), "")
    members = cluster.members.get(cluster.role, ())  # none for an evaluator
    own_address = members[cluster.index] if members else ""
    # Every replica is on this machine, as in the local stack.
    is_local = all(host_of(host).startswith("127.") for group in cluster.members.values() for host in group)
    legacy = _legacy_document(cluster)
    evaluators = {LEGACY_NAMES[ReplicaRole.EVALUATOR]: cluster.evaluators} if cluster.evaluators else {}
    return {
        "address": address,
        "host": _plain_host(address),
        "port": address.rpartition(":")[2],
        "rank": cluster.trainers.index(own_address) if cluster.trains else "",
        "size": len(cluster.trainers),
        "own_host": _plain_host(own_address),
        "hosts": ",".join(f"{_plain_host(member)}:1" for member in cluster.trainers),
        "loopback_interface": "lo" if is_local else "",
        "loopback_address": address if is_local else "",
        "processes": max(1, gpus),
        "gpu_indices": ",".join(map(str, range(gpus))),
        "legacy_tf_config": json.dumps(legacy),
        "legacy_cluster_spec": json.dumps({**legacy, "cluster": {**legacy["cluster"], **evaluators}}),
    }


def _legacy_document(cluster: ClusterSpec) -> dict[str, Any]:
    """What TF_CONFIG held on AI Platform Training."""
    job_id = cluster.service_variables.get("CLOUD_ML_JOB_ID")
    # To single replicas the service gives no name within its project.
    made_up_id = f"{job_id}-{LEGACY_NAMES[cluster.role]}-{cluster.index}" if job_id else ""
    task = {"type": LEGACY_NAMES[cluster.role], "index": cluster.index}
    return {
        "cluster": {LEGACY_NAMES[role]: addresses for role, addresses in cluster.members.items()},
        "environment": "cloud",
        "task": {**task, "trial": cluster.trial, "cloud": cluster.cloud or made_up_id},
        "job": cluster.job,
    }


def gpus_from(environment: Mapping[str, str], devices: list[str]) -> int:
    """How many GPUs programs in this container see, by the names in /dev and by CUDA_VISIBLE_DEVICES.

    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables: the devices after an
    invalid one do not count.
    """
    count = sum(re.fullmatch(r"nvidia\d+", device) is not None for device in devices)
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return count
    listed = takewhile(lambda name: name.strip() not in {"", "-1", "NoDevFiles"}, visible.split(","))
    return min(count, len(list(listed)))


def _plain_host(address: str) -> str:
    """Without the brackets of an IPv6 address."""
    return host_of(address).strip("[]")
