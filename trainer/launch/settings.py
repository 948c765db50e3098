"""The environment variables from which each framework learns its cluster. Each function cites its source."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainer.faults import Unusable
from trainer.replicas.cluster import Cluster, Role, host_of, is_tpu

LOOPBACK_INTERFACE = "lo"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Variables for the command: `variables` overwrite the environment, `defaults` do not."""

    variables: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)


def torch(cluster: Cluster) -> Settings:
    """What `init_process_group()` reads with its default `env://`; one process per replica.

    https://docs.pytorch.org/docs/stable/distributed.html#environment-variable-initialization; LOCAL_* and GROUP_* as
    documented at https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables. The PET_* are the
    defaults of torchrun's flags: `-- torchrun --nproc_per_node=gpu train.py` starts one process per GPU.

    Raises:
        Unusable: the cluster has replicas that cannot join the process group.
    """
    require_trainers_alone("torch", cluster)
    host, port = coordinator_of(cluster)
    rank, size = str(rank_of(cluster)), str(len(cluster.trainers))
    master = {"MASTER_ADDR": host, "MASTER_PORT": port}
    return Settings(
        variables={
            **master,
            "RANK": rank,
            "WORLD_SIZE": size,
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "GROUP_RANK": rank,
            "GROUP_WORLD_SIZE": size,
            "NODE_RANK": rank,  # Lightning's name for it
            **{f"PET_{name}": value for name, value in master.items()},
            "PET_NNODES": size,
            "PET_NODE_RANK": rank,
        },
        defaults={"GLOO_SOCKET_IFNAME": LOOPBACK_INTERFACE} if is_on_loopback(cluster) else {},
    )


def jax(cluster: Cluster, gpus: int) -> Settings:
    """What `jax.distributed.initialize()` reads when called without arguments, with `gpus` devices per replica.

    JAX (0.10) has variables only for the coordinator's address and the local devices; it takes the number and the
    rank of the processes from Open MPI, Slurm or Kubernetes (jax/_src/clusters), so Open MPI's variables are set.
    With these alone a process would use one device, hence JAX_LOCAL_DEVICE_IDS. JAX_NUM_PROCESSES and
    JAX_PROCESS_ID are for programs that pass them on. `keras.distribution.initialize()` reads KERAS_DISTRIBUTION_*,
    https://keras.io/api/distribution. The hosts of a TPU need none of these variables.

    Raises:
        Unusable: the cluster has replicas that cannot join the computation.
    """
    require_trainers_alone("jax", cluster)
    if _has_tpu(cluster):
        return Settings()
    rank, size = str(rank_of(cluster)), str(len(cluster.trainers))
    address = cluster.trainers[0]
    local_devices = {"JAX_LOCAL_DEVICE_IDS": ",".join(map(str, range(gpus)))} if gpus else {}
    bind = {"JAX_COORDINATOR_BIND_ADDRESS": address} if is_on_loopback(cluster) else {}
    return Settings(
        variables={
            "JAX_COORDINATOR_ADDRESS": address,
            "JAX_NUM_PROCESSES": size,
            "JAX_PROCESS_ID": rank,
            "OMPI_MCA_orte_hnp_uri": f"0.0;tcp://{address}",
            "OMPI_COMM_WORLD_SIZE": size,
            "OMPI_COMM_WORLD_RANK": rank,
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            "KERAS_DISTRIBUTION_JOB_ADDRESSES": address,
            "KERAS_DISTRIBUTION_NUM_PROCESSES": size,
            "KERAS_DISTRIBUTION_PROCESS_ID": rank,
        },
        defaults={**local_devices, **bind},
    )


def mxnet(cluster: Cluster) -> Settings:
    """What MXNet's distributed key-value store reads: https://github.com/dmlc/ps-lite/blob/master/docs/env.md.

    The scheduler is the master and the servers are the parameter servers, as in
    https://cloud.google.com/ai-platform/training/docs/distributed-training-containers. The scheduler trains nothing
    and exits with 0 once the workers have exited, which completes the job. A single replica needs no variables.

    Raises:
        Unusable: several replicas, but no worker or no parameter server; or evaluators.
    """
    roles = {Role.CHIEF: "scheduler", Role.WORKER: "worker", Role.PARAMETER_SERVER: "server"}
    chiefs, workers, servers = (len(cluster.members.get(role, ())) for role in roles)
    faults = _evaluators("mxnet", cluster)
    if not (workers or servers or faults):
        return Settings()
    for count, role, pool in (
        (chiefs, "a chief", 0),
        (workers, "workers", 1),
        (servers, "parameter servers", 2),
    ):
        if not count:
            faults.append(
                f"mxnet needs {role}, and this cluster has none: the chief schedules, workers train and parameter "
                f"servers hold the model. Request replicas in worker pool {pool}, or only the chief."
            )
    if faults:
        raise Unusable(*faults)
    host, port = coordinator_of(cluster)
    own = host_of(cluster.members[cluster.role][cluster.index])
    by_name = {} if _is_numeric(host) else {"DMLC_USE_KUBERNETES": "1"}
    return Settings(
        variables={
            "DMLC_ROLE": roles[cluster.role],
            "DMLC_PS_ROOT_URI": host,
            "DMLC_PS_ROOT_PORT": port,
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": str(servers),
        },
        # A scheduler binds to DMLC_PS_ROOT_URI, and ZeroMQ cannot bind to a name; DMLC_USE_KUBERNETES makes it bind to
        # all addresses. DMLC_NODE_HOST must be numeric for the same reason; without it, ps-lite finds the address.
        defaults={**by_name, **({"DMLC_NODE_HOST": own} if _is_numeric(own) else {})},
    )


def horovod(cluster: Cluster, peers_within_s: float) -> Settings:
    """What Horovod's gloo controller reads; one process per replica. A single replica needs no variables.

    https://github.com/horovod/horovod/blob/master/horovod/runner/gloo_run.py sets the same variables over ssh, which
    Vertex AI's replicas do not run, and serves the rendezvous, which the chief does here.
    TRAINMASTER_HOROVOD_HOSTS is for images that run sshd: `horovodrun -np N -H "$TRAINMASTER_HOROVOD_HOSTS"`.

    Raises:
        Unusable: the cluster has replicas that cannot join the ring.
    """
    require_trainers_alone("horovod", cluster)
    if not cluster.is_multi_worker:
        return Settings()
    host, port = coordinator_of(cluster)
    rank, size = str(rank_of(cluster)), str(len(cluster.trainers))
    hosts = [_plain(host_of(address)) for address in cluster.trainers]
    return Settings(
        variables={
            "HOROVOD_RANK": rank,
            "HOROVOD_SIZE": size,
            "HOROVOD_LOCAL_RANK": "0",
            "HOROVOD_LOCAL_SIZE": "1",
            "HOROVOD_CROSS_RANK": rank,
            "HOROVOD_CROSS_SIZE": size,
            "HOROVOD_HOSTNAME": hosts[int(rank)],
            "HOROVOD_GLOO_RENDEZVOUS_ADDR": host,
            "HOROVOD_GLOO_RENDEZVOUS_PORT": port,
            "HOROVOD_CONTROLLER": "gloo",
            "HOROVOD_CPU_OPERATIONS": "gloo",
            "TRAINMASTER_HOROVOD_HOSTS": ",".join(f"{each}:1" for each in hosts),
        },
        defaults={
            # Horovod's default of 30 seconds is too short if replicas start minutes apart.
            "HOROVOD_GLOO_TIMEOUT_SECONDS": str(max(1, round(peers_within_s))),
            **({"HOROVOD_GLOO_IFACE": LOOPBACK_INTERFACE} if is_on_loopback(cluster) else {}),
        },
    )


def require_trainers_alone(framework: str, cluster: Cluster) -> None:
    """Raises Unusable if any replica is neither chief nor worker nor reduction server."""
    faults = _evaluators(framework, cluster)
    servers = len(cluster.members.get(Role.PARAMETER_SERVER, ()))
    if servers and not (cluster.has_reduction_servers and cluster.trains):
        faults.append(
            f"{framework} does not use parameter servers, and this cluster has {servers}: every process computes gradients. "
            f"Leave worker pool 2 empty (`{{}}`), or use Reduction Server's image in it."
        )
    if faults:
        raise Unusable(*faults)


def rank_of(cluster: Cluster) -> int:
    """The rank: 0 for the chief, then the workers in order."""
    return cluster.trainers.index(cluster.members[cluster.role][cluster.index])


def coordinator_of(cluster: Cluster) -> tuple[str, str]:
    """Host and port of the chief. Nothing else listens there: Vertex AI reserves the port, 2222, for the cluster."""
    first = cluster.trainers[0]
    return _plain(host_of(first)), first.rpartition(":")[2]


def is_on_loopback(cluster: Cluster) -> bool:
    """Whether every replica is on this machine, as in the local stack."""
    addresses = [address for members in cluster.members.values() for address in members]
    return all(host_of(address).startswith("127.") for address in addresses)


def _evaluators(framework: str, cluster: Cluster) -> list[str]:
    if not cluster.evaluators and cluster.role is not Role.EVALUATOR:
        return []
    found = len(cluster.evaluators) or "some"
    repair = "Leave worker pool 3 out of the request, and evaluate in the chief."
    return [f"{framework} does not use evaluators, and this cluster has {found}. {repair}"]


def _has_tpu(cluster: Cluster) -> bool:
    """Whether the job requests TPU machines, by https://cloud.google.com/vertex-ai/docs/training/training-with-tpu-vm."""
    return any(map(is_tpu, cluster.of_pools("machine_spec")))


def _is_numeric(host: str) -> bool:
    return host.replace(".", "").isdigit()


def _plain(host: str) -> str:
    return host.strip("[]")
