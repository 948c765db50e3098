"""The tf.distribute strategy for the cluster and this machine, and each replica's share of the processors."""

import os
from typing import Any

import tensorflow as tf

from trainer.accelerators import TPU_VARIABLES
from trainer.cluster import Cluster, Role
from trainer.faults import Unusable
from trainer.strategy_choice import Machine, Strategy, chosen

# Gradients travel in packs of about this size. In one pack they would be copied whole several times
# at once: 400 MiB more memory and twice the system time with ResNet50 (bench/trainer_throughput.py).
GRADIENT_PACK_BYTES = 8 << 20
# Of a variable on one parameter server: TensorFlow's own advice for MinSizePartitioner.
MIN_SHARD_BYTES = 256 << 10


def processors_for(cluster: Cluster) -> int:
    """How many processors this process may keep busy: the machine's, divided among the replicas on it."""
    return max(1, len(os.sched_getaffinity(0)) // cluster.trainers_on_this_host)


def limit_threads(processors: int) -> None:
    """Size TensorFlow's thread pools. Must be called before its first operation.

    Without a limit each replica on a shared machine starts a thread for every processor, and they
    take turns instead of working.
    """
    tf.config.threading.set_intra_op_parallelism_threads(processors)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, processors))


def strategy_for(cluster: Cluster, *, asked: Strategy = Strategy.AUTO, mirrored: bool) -> Any:
    """The requested strategy, or the one that fits the cluster, this machine's devices and the workload.

    Must be called before any operation or data set: collective operations are configured at start-up.
    With several replicas it returns when all of them have started.

    Raises:
        Unusable: a TPU is requested, but this machine has none.
    """
    strategy = chosen(asked, cluster, machine(), mirrored=mirrored)
    match strategy:
        case Strategy.PARAMETER_SERVER:
            return _parameter_server(cluster)
        case Strategy.MULTI_WORKER_MIRRORED:
            packed = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=GRADIENT_PACK_BYTES)
            return tf.distribute.MultiWorkerMirroredStrategy(
                cluster_resolver=resolver(cluster), communication_options=packed
            )
        case Strategy.MIRRORED:
            return tf.distribute.MirroredStrategy()
        case Strategy.ONE_DEVICE:
            return tf.distribute.OneDeviceStrategy(
                "/gpu:0" if tf.config.list_physical_devices("GPU") else "/cpu:0"
            )
        case Strategy.TPU:
            return _tpu()
        case Strategy.DEFAULT | Strategy.AUTO:
            return tf.distribute.get_strategy()


def machine() -> Machine:
    """This machine's devices. A TPU is one that TensorFlow lists, or whose address the environment gives."""
    has_tpu = bool(tf.config.list_physical_devices("TPU")) or any(
        os.environ.get(name) for name in TPU_VARIABLES
    )
    return Machine(gpus=len(tf.config.list_physical_devices("GPU")), has_tpu=has_tpu)


def resolver(cluster: Cluster) -> Any:
    """TensorFlow's description of the cluster, and of which task this process is."""
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({str(role): list(addresses) for role, addresses in cluster.members.items()}),
        task_type=str(cluster.role),
        task_id=cluster.index,
        rpc_layer="grpc",
    )


def _parameter_server(cluster: Cluster) -> Any:
    """On the chief, which coordinates; large variables are spread over all parameter servers."""
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(
        min_shard_bytes=MIN_SHARD_BYTES, max_shards=len(cluster.members[Role.PARAMETER_SERVER])
    )
    return tf.distribute.ParameterServerStrategy(resolver(cluster), variable_partitioner=partitioner)


def _tpu() -> Any:
    """The TPU system that the environment names, else the one of this machine, initialized."""
    try:
        found = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=next((os.environ[name] for name in TPU_VARIABLES if os.environ.get(name)), "local")
        )
        tf.config.experimental_connect_to_cluster(found)
        tf.tpu.experimental.initialize_tpu_system(found)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise Unusable(
            f"--strategy=tpu: no TPU can be used here ({type(error).__name__}: {str(error).splitlines()[0]}). "
            f"Request a machine type with TPUs, for example ct5lp-hightpu-4t, and an image whose TensorFlow supports "
            f"them, or use --strategy=auto."
        ) from error
    return tf.distribute.TPUStrategy(found)


def name_of(strategy: Any) -> str:
    """The strategy's class in TensorFlow's public API; the implementation's own name differs."""
    name = type(strategy).__name__
    return {
        "CollectiveAllReduceStrategy": "MultiWorkerMirroredStrategy",
        "ParameterServerStrategyV2": "ParameterServerStrategy",
        "TPUStrategyV2": "TPUStrategy",
        "_DefaultDistributionStrategy": "default",
    }.get(name, name)


def all_replicas_agree(strategy: Any, claim: bool) -> bool:
    """Whether `claim` is true on every replica. All must call this; it returns after all of them have.

    Raises:
        tf.errors.UnavailableError: a replica is gone.
    """
    if strategy.num_replicas_in_sync == 1:
        return claim
    vote = tf.constant(1.0 if claim else 0.0)

    def counted() -> Any:
        return strategy.reduce("SUM", strategy.run(lambda: tf.identity(vote)), axis=None)

    votes = tf.function(counted)()
    return bool(votes.numpy() >= strategy.num_replicas_in_sync)
