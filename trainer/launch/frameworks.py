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
        variables: texts by name, which have facts of the cluster in braces; one whose text is empty is not set.
        has_every_role: whether it also has parameter servers and evaluators.
        applies: whether the variables are set in such a cluster.
    """

    variables: Mapping[str, str]
    has_every_role: bool = False
    applies: Callable[[ClusterSpec], bool] = lambda _: True


FRAMEWORKS: Mapping[str, Framework] = {
    # What `init_process_group()` reads with its default `env://`; one process per replica:
    # https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization; LOCAL_* and GROUP_*:
    # https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables. The PET_* are the defaults of
    # torchrun's flags: `-- torchrun --nproc_per_node=gpu train.py` starts one process per GPU.
    "torch": Framework(
        variables={
            "MASTER_ADDR": "{host}",
            "MASTER_PORT": "{port}",
            "RANK": "{rank}",
            "WORLD_SIZE": "{size}",
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "GROUP_RANK": "{rank}",
            "GROUP_WORLD_SIZE": "{size}",
            "NODE_RANK": "{rank}",  # Lightning's name for it
            "PET_MASTER_ADDR": "{host}",
            "PET_MASTER_PORT": "{port}",
            "PET_NNODES": "{size}",
            "PET_NODE_RANK": "{rank}",
            "GLOO_SOCKET_IFNAME": "{loopback_interface}",
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
            "JAX_COORDINATOR_ADDRESS": "{address}",
            "JAX_NUM_PROCESSES": "{size}",
            "JAX_PROCESS_ID": "{rank}",
            "OMPI_MCA_orte_hnp_uri": "0.0;tcp://{address}",
            "OMPI_COMM_WORLD_SIZE": "{size}",
            "OMPI_COMM_WORLD_RANK": "{rank}",
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            "KERAS_DISTRIBUTION_JOB_ADDRESSES": "{address}",
            "KERAS_DISTRIBUTION_NUM_PROCESSES": "{size}",
            "KERAS_DISTRIBUTION_PROCESS_ID": "{rank}",
            "JAX_LOCAL_DEVICE_IDS": "{gpu_indices}",
            "JAX_COORDINATOR_BIND_ADDRESS": "{loopback_address}",
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
            "HOROVOD_RANK": "{rank}",
            "HOROVOD_SIZE": "{size}",
            "HOROVOD_LOCAL_RANK": "0",
            "HOROVOD_LOCAL_SIZE": "1",
            "HOROVOD_CROSS_RANK": "{rank}",
            "HOROVOD_CROSS_SIZE": "{size}",
            "HOROVOD_HOSTNAME": "{own_host}",
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": "{host}",
            "HOROVOD_GLOO_RENDEZVOUS_PORT": "{port}",
            "HOROVOD_CONTROLLER": "gloo",
            "HOROVOD_CPU_OPERATIONS": "gloo",
            "TRAINMASTER_HOROVOD_HOSTS": "{hosts}",
            "HOROVOD_GLOO_TIMEOUT_SECONDS": "1800",
            "HOROVOD_GLOO_IFACE": "{loopback_interface}",
        },
        applies=lambda cluster: cluster.is_multi_worker,
    ),
    # Also for a single replica, but not for a process outside a job. Idempotent.
    # https://cloud.google.com/ai-platform/training/docs/distributed-training-details: `master` for the chief, unless
    # `useChiefInTfConfig` is set; the evaluator only in CLUSTER_SPEC.
    "ai-platform": Framework(
        variables={"TF_CONFIG": "{legacy_tf_config}", "CLUSTER_SPEC": "{legacy_cluster_spec}"},
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
    texts = {variable: text.format_map(facts) for variable, text in framework.variables.items()}
    return {variable: text for variable, text in texts.items() if text}


def _role_faults(name: str, cluster: ClusterSpec) -> list[str]:
    is_reduced = cluster.has_reduction_servers and cluster.trains
    counts = {
        ReplicaRole.PARAMETER_SERVER: len(cluster.members.get(ReplicaRole.PARAMETER_SERVER, ()))
        * (not is_reduced),
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
