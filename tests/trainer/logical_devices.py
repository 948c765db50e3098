"""Checks on a machine whose processor counts as two devices; each prints what it found as JSON.

python -m tests.trainer.logical_devices CHECK DATA_DIR OUT
"""

import json
import sys
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

from trainer.data.pipeline import Pipeline
from trainer.devices.choices import Strategy
from trainer.devices.strategy import (
    multi_worker_mirrored,
    name_of,
    sixteen_bits,
    strategy_for,
)
from trainer.parameter_server.roles import for_worker
from trainer.parameter_server.steps import evaluate_in_shards
from trainer.replicas.cluster import ClusterSpec
from trainer.replicas.ending import end_with
from trainer.storage import outputs_from
from trainer.task import command_from
from trainer.workload import TrainingRun

BATCH_SIZE = 4


def run_of(data_dir: str) -> TrainingRun:
    arguments = (
        f"--data_dir={data_dir}", "--workload=horses_or_humans", "--image_size=32", f"--batch_size={BATCH_SIZE}",
        "--epochs=1", "--steps_per_epoch=2", "--weights=random",
    )  # fmt: skip
    command = command_from(arguments)
    run = TrainingRun(
        workload=command.workload, settings=command.settings, flags=command.flags, cluster=ClusterSpec(),
        outputs=outputs_from({}, None), environment={},
    )  # fmt: skip
    return run.with_data()


def strategies(*_: str) -> dict[str, Any]:
    """Name and number of devices of each strategy that one process can build."""
    asked = (Strategy.AUTO, Strategy.ONE_DEVICE, Strategy.MULTI_WORKER_MIRRORED, Strategy.MIRRORED)
    built = {each: strategy_for(ClusterSpec(), asked=each, mirrored=False) for each in asked}
    return {
        each: [name_of(found), found.num_replicas_in_sync, sixteen_bits(found, ClusterSpec())]
        for each, found in built.items()
    }


def multi_worker(*_: str) -> list[dict[str, Any]]:
    """Devices and collectives of a replica without GPUs, with two, and with one that another replica uses."""
    found = []
    for gpus, is_shared in ((0, False), (2, False), (1, True)):
        extended = multi_worker_mirrored(ClusterSpec(), gpus=gpus, is_shared=is_shared).extended
        options = extended._communication_options  # the only way to read them
        devices = [device.rpartition("device:")[2] for device in extended.worker_devices]
        found.append({"devices": devices, "by": options.implementation.name, "pack": options.bytes_per_pack})
    return found


def batches(data_dir: str) -> dict[str, Any]:
    """The examples of a worker's two devices in a step, to train on and to evaluate on, and those that Keras evaluates.

    On two GPUs, a worker of ParameterServerStrategy takes its data from the same class as MirroredStrategy here.
    """
    strategy = tf.distribute.MirroredStrategy()
    replicas = strategy.num_replicas_in_sync
    run = run_of(data_dir)
    pipeline = Pipeline(
        examples=run.data.training, evaluated=run.data.evaluation, settings=run.settings,
        replicas=replicas,
    )  # fmt: skip

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
    check, *folders, out = sys.argv[1:]
    Path(out).write_text(json.dumps(globals()[check](*folders)))
    end_with(0)  # as the trainer ends: TensorFlow's servers and iterators have no end that can be relied on
