"""The environment variables from which each framework learns its cluster: one table, and the facts that fill it."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole, host_of, is_tpu

MXNET_NAMES = {
    ReplicaRole.CHIEF: "scheduler",
    ReplicaRole.WORKER: "worker",
    ReplicaRole.PARAMETER_SERVER: "server",
}
VERTEX_NAMES = {role: role.value for role in ReplicaRole}
LEGACY_NAMES = {**VERTEX_NAMES, ReplicaRole.CHIEF: "master"}
POOLS = {
    ReplicaRole.CHIEF: "a chief",
    ReplicaRole.WORKER: "workers",
    ReplicaRole.PARAMETER_SERVER: "parameter servers",
    ReplicaRole.EVALUATOR: "evaluators",
}
REPAIRS = {
    ReplicaRole.PARAMETER_SERVER: "Every process computes gradients: leave worker pool 2 empty (`{}`), or use Reduction Server's "
    "image in it.",
    ReplicaRole.EVALUATOR: "Leave worker pool 3 out of the request, and evaluate in the chief.",
}


@dataclass(frozen=True, kw_only=True)
class FrameworkVariables:
    """Variables for the command: `variables` overwrite the environment, `defaults` do not."""

    variables: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Framework(FrameworkVariables):
    """A row of the table. Its texts have facts of the cluster in braces; a variable whose text is empty is not set.

    Attributes:
        roles: those that it uses.
        needs_each: whether a cluster of several replicas must have each of these.
        applies: whether the variables are set in such a cluster.
    """

    roles: Collection[ReplicaRole] = (ReplicaRole.CHIEF, ReplicaRole.WORKER)
    needs_each: bool = False
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
        },
        defaults={"GLOO_SOCKET_IFNAME": "{loopback_interface}"},
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
        },
        defaults={
            "JAX_LOCAL_DEVICE_IDS": "{gpu_indices}",
            "JAX_COORDINATOR_BIND_ADDRESS": "{loopback_address}",
        },
        applies=lambda cluster: not any(map(is_tpu, cluster.of_pools("machine_spec"))),
    ),
    # What MXNet's distributed key-value store reads: https://github.com/dmlc/ps-lite/blob/master/docs/env.md. The
    # scheduler is the master and the servers are the parameter servers, as in
    # https://cloud.google.com/ai-platform/training/docs/distributed-training-containers. The scheduler trains nothing and
    # exits with 0 once the workers have exited, which completes the job. It binds to DMLC_PS_ROOT_URI, and ZeroMQ cannot
    # bind to a name; DMLC_USE_KUBERNETES makes it bind to all addresses. DMLC_NODE_HOST must be numeric for the same
    # reason; without it, ps-lite finds the address.
    "mxnet": Framework(
        variables={
            "DMLC_ROLE": "{mxnet_role}",
            "DMLC_PS_ROOT_URI": "{host}",
            "DMLC_PS_ROOT_PORT": "{port}",
            "DMLC_NUM_WORKER": "{workers}",
            "DMLC_NUM_SERVER": "{servers}",
        },
        defaults={"DMLC_USE_KUBERNETES": "{one_for_names}", "DMLC_NODE_HOST": "{numeric_own_host}"},
        roles=(ReplicaRole.CHIEF, ReplicaRole.WORKER, ReplicaRole.PARAMETER_SERVER),
        needs_each=True,
        applies=lambda cluster: len(cluster.members) > 1,
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
        },
        defaults={
            "HOROVOD_GLOO_TIMEOUT_SECONDS": "1800",
            "HOROVOD_GLOO_IFACE": "{loopback_interface}",
        },
        applies=lambda cluster: cluster.is_multi_worker,
    ),
    # A single replica has no TF_CONFIG, as on Vertex AI, and TensorFlow 2 does not accept `master` in it.
    "tensorflow": Framework(
        variables={"TF_CONFIG": "{tf_config}"},
        roles=tuple(ReplicaRole),
        applies=lambda cluster: (
            len(cluster.evaluators) + sum(map(len, cluster.members.values())) > 1
            and ("TF_CONFIG" not in cluster.source or cluster.spelling.get(ReplicaRole.CHIEF) == "master")
        ),
    ),
    # Also for a single replica, but not for a process outside a job. Idempotent.
    # https://cloud.google.com/ai-platform/training/docs/distributed-training-details: `master` for the chief, unless
    # `useChiefInTfConfig` is set; the evaluator only in CLUSTER_SPEC.
    "ai-platform": Framework(
        variables={"TF_CONFIG": "{legacy_tf_config}", "CLUSTER_SPEC": "{legacy_cluster_spec}"},
        roles=tuple(ReplicaRole),
        applies=lambda cluster: bool(cluster.source),
    ),
}


def settings_of(name: str, cluster: ClusterSpec, *, gpus: int = 0) -> FrameworkVariables:
    """What the framework of that name needs in this replica, which has this number of GPUs.

    Raises:
        Unusable: the framework does not use a role of the cluster, or lacks one that it needs.
    """
    row = FRAMEWORKS[name]
    if faults := _role_faults(name, row, cluster):
        raise Unusable(*faults)
    if not row.applies(cluster):
        return FrameworkVariables()
    facts = _facts_of(cluster, gpus)
    variables, defaults = (
        {variable: value for variable, text in texts.items() if (value := text.format_map(facts))}
        for texts in (row.variables, row.defaults)
    )
    return FrameworkVariables(variables=variables, defaults=defaults)


def _role_faults(name: str, row: Framework, cluster: ClusterSpec) -> list[str]:
    counts = {role: len(addresses) for role, addresses in cluster.members.items()}
    if cluster.has_reduction_servers and cluster.trains:
        counts.pop(ReplicaRole.PARAMETER_SERVER, None)
    if cluster.evaluators or cluster.role is ReplicaRole.EVALUATOR:
        counts[ReplicaRole.EVALUATOR] = len(cluster.evaluators) or 1
    missing = set(row.roles) - set(counts) if row.needs_each and counts != {ReplicaRole.CHIEF: 1} else ()
    return [
        f"{name} does not use {POOLS[role]}, and this cluster has {count}. {REPAIRS[role]}"
        for role, count in counts.items()
        if role not in row.roles
    ] + [
        f"{name} needs {words}, and this cluster has none: the chief schedules, workers train and parameter servers hold "
        f"the model. Request replicas in worker pool {pool}, or only the chief."
        for pool, (role, words) in enumerate(POOLS.items())
        if role in missing
    ]


def _facts_of(cluster: ClusterSpec, gpus: int) -> dict[str, object]:
    """What the texts of the table name in braces; empty where it does not hold.

    Nothing else listens at the chief's port, 2222, which Vertex AI reserves for the cluster.
    """
    address = next(iter(cluster.trainers), "")
    host, port = _plain_host(address), address.rpartition(":")[2]
    members = cluster.members.get(cluster.role, ())  # none for an evaluator
    own_address = members[cluster.index] if members else ""
    own_host = _plain_host(own_address)
    # Every replica is on this machine, as in the local stack.
    is_local = all(host_of(host).startswith("127.") for group in cluster.members.values() for host in group)
    job_id = cluster.service_variables.get("CLOUD_ML_JOB_ID")
    # To single replicas the service gives no name within its project.
    made_up_id = f"{job_id}-{LEGACY_NAMES[cluster.role]}-{cluster.index}" if job_id else ""
    known = {"trial": cluster.trial, "cloud": cluster.cloud}
    vertex = _document_of(VERTEX_NAMES, cluster, {name: text for name, text in known.items() if text})
    legacy = _document_of(LEGACY_NAMES, cluster, {**known, "cloud": cluster.cloud or made_up_id})
    evaluators = {LEGACY_NAMES[ReplicaRole.EVALUATOR]: cluster.evaluators} if cluster.evaluators else {}
    return {
        "address": address,
        "host": host,
        "port": port,
        "rank": cluster.trainers.index(own_address) if cluster.trains else "",
        "size": len(cluster.trainers),
        "own_host": own_host,
        "hosts": ",".join(f"{_plain_host(member)}:1" for member in cluster.trainers),
        "mxnet_role": MXNET_NAMES.get(cluster.role, ""),
        "workers": len(cluster.members.get(ReplicaRole.WORKER, ())),
        "servers": len(cluster.members.get(ReplicaRole.PARAMETER_SERVER, ())),
        "loopback_interface": "lo" if is_local else "",
        "loopback_address": address if is_local else "",
        "one_for_names": "" if _is_numeric(host) else "1",
        "numeric_own_host": own_host if _is_numeric(own_host) else "",
        "gpu_indices": ",".join(map(str, range(gpus))),
        "tf_config": json.dumps({**vertex, "job": json.dumps(cluster.job)}),
        "legacy_tf_config": json.dumps(legacy),
        "legacy_cluster_spec": json.dumps({**legacy, "cluster": {**legacy["cluster"], **evaluators}}),
    }


def _document_of(
    names: Mapping[ReplicaRole, str], cluster: ClusterSpec, ids: Mapping[str, str]
) -> dict[str, Any]:
    """What TF_CONFIG holds, with these names of roles and ids of the task."""
    return {
        "cluster": {names[role]: addresses for role, addresses in cluster.members.items()},
        "environment": "cloud",
        "task": {"type": names[cluster.role], "index": cluster.index, **ids},
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


def _is_numeric(host: str) -> bool:
    return host.replace(".", "").isdigit()


def _plain_host(address: str) -> str:
    """Without the brackets of an IPv6 address."""
    return host_of(address).strip("[]")
