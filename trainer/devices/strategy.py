"""The tf.distribute strategy for the cluster and this machine, and each replica's share of the processors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf
from tensorflow.python.checkpoint import saveable_compat
from tensorflow.python.distribute.values import SyncOnReadVariable

from trainer.devices import choices
from trainer.devices.choices import TPU_VARIABLES, Strategy, accelerators_of
from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole

# Of a variable on one parameter server: TensorFlow's own advice for MinSizePartitioner.
MIN_SHARD_BYTES = 256 << 10


def limit_threads(cluster: ClusterSpec) -> None:
    """Size TensorFlow's thread pools by this replica's share of its machine's processors.

    By default, each replica on a machine would start a thread for every processor. Must be called before TensorFlow's
    first operation, and raises RuntimeError after it.
    """
    processors = max(1, len(os.sched_getaffinity(0)) // cluster.trainers_on_this_host)
    tf.config.threading.set_intra_op_parallelism_threads(processors)
    tf.config.threading.set_inter_op_parallelism_threads(max(2, processors))


def claim_gpus(cluster: ClusterSpec) -> int:
    """Let TensorFlow see only this replica's GPUs, and take their memory as it needs it; by default, it takes all.

    Returns their number. Must be called before TensorFlow's first operation.
    """
    devices = tf.config.list_physical_devices("GPU")
    visible = [devices[index] for index in choices.own_gpus(cluster, len(devices))]
    tf.config.set_visible_devices(visible, "GPU")
    for gpu in visible:
        tf.config.experimental.set_memory_growth(gpu, True)
    return len(visible)


def strategy_for(cluster: ClusterSpec, *, asked: Strategy = Strategy.AUTO, mirrored: bool) -> Any:
    """The requested strategy, or the one that fits the cluster, this machine's devices and the workload.

    Must be called before any operation or data set: GPUs and collective operations are configured at start-up.
    With several replicas it returns when all of them have started.

    Raises:
        Unusable: a TPU is requested, but this machine has none, or has one that it cannot use.
    """
    gpus = claim_gpus(cluster)
    tpu_address = next(filter(None, map(os.environ.get, TPU_VARIABLES)), None)
    has_tpu = bool(tpu_address or tf.config.list_physical_devices("TPU"))
    if fault := choices.tpu_fault(cluster, sees_tpu=has_tpu):
        raise Unusable(fault)
    match choices.chosen_strategy(asked, cluster, gpus=gpus, has_tpu=has_tpu, mirrored=mirrored):
        case Strategy.PARAMETER_SERVER:
            return _parameter_server(cluster)
        case Strategy.MULTI_WORKER_MIRRORED:
            is_shared = len(tf.config.list_physical_devices("GPU")) < cluster.trainers_on_this_host
            return multi_worker_mirrored(cluster, gpus=gpus, is_shared=is_shared)
        case Strategy.MIRRORED:
            return tf.distribute.MirroredStrategy()
        case Strategy.ONE_DEVICE:
            return tf.distribute.OneDeviceStrategy("/gpu:0" if gpus else "/cpu:0")
        case Strategy.TPU:
            return _tpu_strategy(tpu_address or "local")
        case Strategy.AUTO:
            return tf.distribute.get_strategy()


def multi_worker_mirrored(cluster: ClusterSpec, *, gpus: int, is_shared: bool) -> Any:
    """Gradients travel by NCCL between GPUs, which AUTO never chooses; else by TensorFlow's rings over gRPC.

    `is_shared`: other replicas compute on this replica's GPUs, too. NCCL refuses two processes on one GPU: https://github.com/NVIDIA/nccl/issues/418 (read 2026-11).
    """
    kind, pack = "AUTO", choices.CPU_PACK_BYTES
    if gpus:
        kind, pack = "RING" if is_shared else "NCCL", choices.GPU_PACK_BYTES
    # None, as on every variable. Missing in the class, it is looked for in the value of each moving average: saving a
    # ResNet50 reduces 106 of them over all replicas, one after the other, two times more than for their values.
    saveable_compat.legacy_saveable_name(None)(SyncOnReadVariable)
    return tf.distribute.MultiWorkerMirroredStrategy(
        cluster_resolver=cluster_resolver(cluster, gpus=gpus),
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=kind, bytes_per_pack=pack
        ),
    )


@contextmanager
def read_alone(root: Any, strategy: Any) -> Iterator[None]:
    """A context in which this replica reads and saves all below `root` without the others. All must enter it at the same step.

    Of some variables, moving averages for example, each replica has a copy, and every reading is a collective operation.
    Here all of them are reduced once, in a row; reading another one raises RuntimeError, where it would wait for ever.
    """
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        yield
        return
    # A variable of Keras 3 holds TensorFlow's, which is no part of it to TensorFlow. Not getattr, which reads a variable.
    parts = [
        getattr(part, "__dict__", {}).get("_value", part)
        for part in tf.train.TrackableView(root).descendants()
    ]
    known, values = [part for part in parts if isinstance(part, SyncOnReadVariable)], dict[int, Any]()
    for how in ("MEAN", "SUM"):
        if copied := [one for one in known if one.aggregation == tf.VariableAggregation[how]]:
            with strategy.scope():
                reduced = strategy.extended.batch_reduce_to(how, [(one, one) for one in copied])
            values |= dict(
                zip(map(id, copied), map(strategy.experimental_local_results, reduced), strict=True)
            )

    def read_reduced(variable: Any) -> Any:
        if id(variable) not in values:
            raise RuntimeError(f"{variable.name} is no part of the model, and its value takes all replicas")
        return tf.identity(values[id(variable)][0])

    reading = "_get_cross_replica"  # what every reading calls
    by_all = getattr(SyncOnReadVariable, reading)
    setattr(SyncOnReadVariable, reading, read_reduced)
    try:
        yield
    finally:
        setattr(SyncOnReadVariable, reading, by_all)


def cluster_resolver(cluster: ClusterSpec, *, gpus: int = 0) -> Any:
    """TensorFlow's description of the cluster and of this process, which computes on its CPU without a number of `gpus`."""
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({str(role): list(addresses) for role, addresses in cluster.members.items()}),
        task_type=str(cluster.role),
        task_id=cluster.index,
        num_accelerators={"GPU": gpus} if gpus else None,
        rpc_layer="grpc",
    )


def _parameter_server(cluster: ClusterSpec) -> Any:
    """On the chief, which coordinates; large variables are spread over all parameter servers."""
    partitioner = tf.distribute.experimental.partitioners.MinSizePartitioner(
        min_shard_bytes=MIN_SHARD_BYTES, max_shards=len(cluster.members[ReplicaRole.PARAMETER_SERVER])
    )
    return tf.distribute.ParameterServerStrategy(cluster_resolver(cluster), variable_partitioner=partitioner)


def _tpu_strategy(address: str) -> Any:
    """The TPU system at this address, or `local`, the one of this machine, initialized."""
    try:
        tpu = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
        tf.config.experimental_connect_to_cluster(tpu)
        tf.tpu.experimental.initialize_tpu_system(tpu)
    except (ValueError, RuntimeError, tf.errors.OpError) as error:
        raise Unusable(
            f"--strategy=tpu: no TPU can be used here ({type(error).__name__}: {str(error).splitlines()[0]}). "
            f"Request a machine type with TPUs, for example ct5lp-hightpu-4t, and an image whose TensorFlow supports "
            f"them, or use --strategy=auto."
        ) from error
    return tf.distribute.TPUStrategy(tpu)


def name_of(strategy: Any) -> str:
    """The strategy's class in TensorFlow's public API; the implementation's own name differs."""
    name = type(strategy).__name__.removesuffix("V2")
    return {
        "CollectiveAllReduceStrategy": "MultiWorkerMirroredStrategy",
        "_DefaultDistributionStrategy": "default",
    }.get(name, name)


def all_replicas_agree(strategy: Any, claim: bool) -> bool:
    """Whether `claim` is true on every replica. All must call this; it returns after all of them have.

    Raises:
        tf.errors.UnavailableError: a replica is gone.
    """
    # Other strategies have all their devices in one process, or in workers that make no choices.
    is_alone = not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    if is_alone or strategy.num_replicas_in_sync == 1:
        return claim
    vote = tf.constant(1.0 if claim else 0.0)
    votes = tf.function(lambda: strategy.reduce("SUM", strategy.run(lambda: tf.identity(vote)), axis=None))()
    return bool(votes.numpy() >= strategy.num_replicas_in_sync)


def sixteen_bits(strategy: Any, cluster: ClusterSpec) -> str:
    """The floats of mixed precision, the same on every replica: `bfloat16` if all devices compute it, else `float16`.

    All replicas must call this; it returns after all of them have. Keras adds loss scaling for float16.

    Raises:
        Unusable: parameter servers are used, and their workers' GPUs need float16.
        tf.errors.UnavailableError: a replica is gone.
    """
    if isinstance(strategy, tf.distribute.ParameterServerStrategy):
        has_gpus = any("GPU" in device for device in strategy.extended.worker_devices)
        if has_gpus and (
            fault := choices.no_mixed_precision(accelerators_of(cluster, ReplicaRole.WORKER)[1])
        ):
            raise Unusable(fault)
        return "bfloat16"
    details = map(tf.config.experimental.get_device_details, tf.config.get_visible_devices("GPU"))
    claim = choices.computes_bfloat16([device.get("compute_capability") for device in details])
    return "bfloat16" if all_replicas_agree(strategy, claim) else "float16"
