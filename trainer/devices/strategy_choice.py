"""The tf.distribute strategy of a run: requested by a flag, or chosen from the cluster and the machine.

Nothing here imports TensorFlow, so that an impossible strategy fails at once.
"""

from enum import StrEnum

from trainer.replicas.cluster import Cluster, Role


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
    """The strategy of that name, a dash for an underscore allowed.

    Raises:
        ValueError: there is no such strategy; the message lists the valid names.
    """
    name = text.replace("-", "_").lower()
    if name not in CHOICES:
        raise ValueError(f"one of {', '.join(CHOICES)}")
    return Strategy(name)


def uses_parameter_servers(asked: Strategy, cluster: Cluster) -> bool:
    """Whether this cluster trains with parameter servers; the same on every replica, before TensorFlow is loaded."""
    return asked is Strategy.PARAMETER_SERVER or (
        asked is Strategy.AUTO and Role.PARAMETER_SERVER in cluster.members
    )


def chosen(
    asked: Strategy, cluster: Cluster, *, gpus: int = 0, has_tpu: bool = False, mirrored: bool = False
) -> Strategy:
    """The strategy to build, never AUTO.

    This process has `gpus` GPUs. `has_tpu`: TensorFlow lists a TPU, or the environment gives its address.
    `mirrored`: on a single machine the workload uses MirroredStrategy.
    """
    if asked is not Strategy.AUTO:
        return asked
    if uses_parameter_servers(asked, cluster):
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
    if uses_parameter_servers(asked, cluster):
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
        if Role.PARAMETER_SERVER not in cluster.members
        else "leave worker pool 2 out of the request"
    )
    return [
        f"--strategy={asked}: training with parameter servers needs at least one {need}, or {otherwise}."
        for role, need in needed.items()
        if not cluster.members.get(role)
    ]
