"""Strategies and batches on a machine whose processor counts as two devices, as JSON by case: `python -m` this module."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import trainer  # noqa: F401  # chooses Keras before TensorFlow is loaded

import tensorflow as tf  # isort: skip
from tensorflow.python.distribute import input_ops
from tensorflow.python.distribute.coordinator.coordinator_context import (
    with_dispatch_context,
)
from tf_keras.src.engine.training import reduce_per_replica

from trainer.data.examples import Examples
from trainer.data.pipeline import Pipeline
from trainer.devices.choices import Strategy
from trainer.devices.strategy import (
    multi_worker_mirrored,
    name_of,
    sixteen_bits,
    strategy_for,
)
from trainer.faults import collect_faults
from trainer.parameter_server.roles import for_worker
from trainer.parameter_server.steps import evaluate_in_shards
from trainer.replicas.cluster import ClusterSpec
from trainer.replicas.ending import end_with
from trainer.settings.settings import TrainingSettings


def strategies() -> dict[str, Any]:
    """Name and number of devices of each strategy that one process can build."""
    asked = (Strategy.AUTO, Strategy.ONE_DEVICE, Strategy.MULTI_WORKER_MIRRORED, Strategy.MIRRORED)
    built = {each: strategy_for(ClusterSpec(), asked=each, mirrored=False) for each in asked}
    return {
        each: [name_of(found), found.num_replicas_in_sync, sixteen_bits(found, ClusterSpec())]
        for each, found in built.items()
    }


def without_tpu() -> str:
    """Why a machine without a TPU cannot train on one."""
    faults: list[str] = []
    with collect_faults(faults):
        strategy_for(ClusterSpec(), asked=Strategy.TPU, mirrored=False)
    return "".join(faults)


def multi_worker() -> list[dict[str, Any]]:
    """Devices and collectives of a replica without GPUs, with two, and with one that another replica uses."""
    found = []
    for gpus, is_shared in ((0, False), (2, False), (1, True)):
        extended = multi_worker_mirrored(ClusterSpec(), gpus=gpus, is_shared=is_shared).extended
        options = extended._communication_options  # the only way to read them
        devices = [device.rpartition("device:")[2] for device in extended.worker_devices]
        found.append({"devices": devices, "by": options.implementation.name, "pack": options.bytes_per_pack})
    return found


def batches() -> dict[str, Any]:
    """The examples of a worker's two devices in a step, to train on and to evaluate on, and those that Keras evaluates.

    On two GPUs, a worker of ParameterServerStrategy takes its data from the same class as MirroredStrategy here.
    """
    strategy = tf.distribute.MirroredStrategy()
    numbers = tf.range(6)
    examples = Examples(lambda: tf.data.Dataset.from_tensor_slices((numbers, numbers)), count=6)
    settings = TrainingSettings(batch_size=4)
    pipeline = Pipeline(
        examples=examples, evaluated=examples, settings=settings, replicas=strategy.num_replicas_in_sync
    )

    def first(made: Callable[[], Any]) -> Any:
        return next(iter(strategy.distribute_datasets_from_function(lambda _: made())))[1]

    def sizes(labels: Any) -> list[int]:
        return [len(each) for each in strategy.experimental_local_results(labels)]

    with with_dispatch_context(SimpleNamespace(worker_index=0)):
        training = tf.function(first)(lambda: for_worker(pipeline, workers=1, first_pass=0))
    evaluation = first(lambda: input_ops.auto_shard_dataset(pipeline.in_shards(), 1, 0))  # as Keras does
    model = SimpleNamespace()
    evaluate_in_shards(model, coordinator=None, shards=1)
    evaluated = reduce_per_replica(evaluation, strategy, model.distribute_reduction_method)
    return {
        "training": sizes(training),
        "evaluation": sizes(evaluation),
        "evaluated": evaluated.shape.as_list(),
    }


if __name__ == "__main__":
    processor = tf.config.list_physical_devices("CPU")[0]
    # Each device's iterator blocks a thread while it waits for the next batch; two of them may block all.
    tf.config.threading.set_inter_op_parallelism_threads(16)
    tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * 2)
    cases = (strategies, multi_worker, batches, without_tpu)
    Path("cases.json").write_text(json.dumps({case.__name__: case() for case in cases}))
    end_with(0)  # as the trainer ends: TensorFlow's servers and iterators have no end that can be relied on
