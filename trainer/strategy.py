"""The tf.distribute strategy that fits the cluster and this machine, and this machine's processors shared out."""

import os
from typing import Any

import tensorflow as tf

from trainer.cluster import Cluster

# Gradients travel in packs of about this size. In one pack they would be copied whole several times
# at once: 400 MiB more memory and twice the system time with ResNet50 (bench/trainer_throughput.py).
GRADIENT_PACK_BYTES = 8 << 20


def processors_for(cluster: Cluster) -> int:
    """How many processors this process may keep busy: those of the machine, shared with its peers on it."""
    return max(1, len(os.sched_getaffinity(0)) // cluster.trainers_on_this_host)


def limit_threads(processors: int) -> None:
    """Size TensorFlow's pools. Must come before its first operation.

    Without a limit each replica on a shared machine starts a thread for every processor, and they
    take turns instead of working.
    """
    tf.config.threading.set_intra_op_parallelism_threads(processors)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, processors))


def strategy_for(cluster: Cluster, *, mirrored: bool) -> Any:
    """MultiWorkerMirrored for several replicas, Mirrored for several local GPUs or where asked, else TensorFlow's default.

    Must come before any operation or data set: collective operations are configured at start-up.
    With several replicas it returns when all of them have come.
    """
    if cluster.is_multi_worker:
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({str(role): list(addresses) for role, addresses in cluster.members.items()}),
            task_type=str(cluster.role),
            task_id=cluster.index,
            rpc_layer="grpc",
        )
        packed = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=GRADIENT_PACK_BYTES)
        return tf.distribute.MultiWorkerMirroredStrategy(
            cluster_resolver=resolver, communication_options=packed
        )
    if mirrored or len(tf.config.list_physical_devices("GPU")) > 1:
        return tf.distribute.MirroredStrategy()
    return tf.distribute.get_strategy()


def name_of(strategy: Any) -> str:
    """The strategy's class in TensorFlow's public API; the implementation's own name differs."""
    name = type(strategy).__name__
    return {
        "CollectiveAllReduceStrategy": "MultiWorkerMirroredStrategy",
        "_DefaultDistributionStrategy": "default",
    }.get(name, name)


def all_replicas_agree(strategy: Any, claim: bool) -> bool:
    """Whether `claim` is true on every replica; all must ask, and none goes on before all have.

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
