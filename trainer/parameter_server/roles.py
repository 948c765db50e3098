"""The roles of a cluster with parameter servers: a chief that hands out steps, and workers and servers that serve it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import tensorflow as tf
from tensorflow.python.eager import context

from trainer.checkpoints.files import TrainingPosition
from trainer.data.examples import batch_spec
from trainer.data.pipeline import Pipeline
from trainer.devices.strategy import claim_gpus, cluster_resolver, limit_threads
from trainer.events import report_event
from trainer.export.manifest import MANIFEST_NAME
from trainer.parameter_server.steps import CoordinatedSteps, evaluate_in_shards, require_one_output
from trainer.replicas.cluster import ReplicaRole
from trainer.replicas.ending import end_for_loss, end_with, is_loss_of_peer
from trainer.replicas.liveness import Attendance, PeerAnswer, await_peers, judge_by, watch_replicas
from trainer.training.attempt import Trained, Training
from trainer.training.loop import Batches
from trainer.training.steps import Steps
from trainer.workload import AS_BUILT, TrainingRun

EVALUATION_SHARDS_PER_WORKER = 2  # more even out workers of different speed, and read the split more often


def for_worker(pipeline: Pipeline, *, workers: int, first_pass: int) -> Any:
    """Endless batches for the one of `workers` that calls this, in a function that the coordinator has it run.

    All workers compute the same order of examples, a different one in each pass, and each takes every
    n-th of them: while they keep pace, an epoch trains every example about once. While a worker is
    away, its share is not trained; the next pass distributes the examples again.

    TensorFlow does not split these batches: of a data set that a function makes, each device of a worker takes the
    next element whole (OwnedMultiDeviceIterator in tensorflow/python/distribute/input_lib.py, TensorFlow 2.21).
    """
    worker = tf.cast(tf.distribute.coordinator.experimental_get_current_worker_index(), tf.int64)
    count = pipeline.examples.count or 0
    return pipeline.shuffled_batches(
        block=workers, start=worker, stop=worker + 1, length=count, first=count * first_pass
    )


@dataclass(frozen=True, kw_only=True)
class CoordinatedTraining(Training):
    """A step is one worker's batch; an epoch is `steps_per_epoch` of them, on any workers."""

    IO_DEVICE: ClassVar[str | None] = "/job:chief/replica:0/task:0/device:CPU:0"
    """By default each parameter server would write its variables on its own machine."""

    @property
    def _workers(self) -> int:
        return len(self.cluster.members[ReplicaRole.WORKER])

    def train(self) -> Trained:
        """As Training's; does not return when a parameter server is lost, either."""
        try:
            return super().train()
        except tf.errors.OpError as error:
            # A parameter server that was replaced within seconds has no variables: every access to one fails.
            if is_loss_of_peer(error) or f"/job:{ReplicaRole.PARAMETER_SERVER}" in str(error):
                end_for_loss(self.cluster, "a parameter server", type(error).__name__)
            raise

    @property
    def _evaluation_shards(self) -> int:
        return self._workers * EVALUATION_SHARDS_PER_WORKER

    @property
    def _coordinator(self) -> Any:
        """The strategy's only one: TensorFlow returns the same each time."""
        return tf.distribute.coordinator.ClusterCoordinator(self.strategy)

    def _built_model(self, run: TrainingRun, strategy: Any) -> Any:
        model = super()._built_model(run, strategy)
        if strategy is self.strategy:
            evaluate_in_shards(model, self._coordinator, self._evaluation_shards)
        return model

    def _built_steps(self, model: Any) -> Steps:
        steps = CoordinatedSteps(
            model, self.settings, self._coordinator, workers=self._workers, data=self.run.data
        )
        judge_by(steps.idle_s)
        return steps

    def _batches_from(self, place: TrainingPosition) -> Batches:
        pipeline = self.pipeline
        distributed = self.strategy.distribute_datasets_from_function
        # TFDS's functions are wrapped in a way that AutoGraph warns of.
        batches = tf.autograph.experimental.do_not_convert(
            lambda _: for_worker(pipeline, workers=self._workers, first_pass=place.epoch)
        )
        shards = tf.autograph.experimental.do_not_convert(lambda _: pipeline.in_shards())
        evaluation = tf.keras.utils.experimental.DatasetCreator(shards)
        spec = batch_spec(self.run.data.training)
        if self.run.data.evaluation:
            require_one_output(spec)
        return Batches(
            training=self._coordinator.create_per_worker_dataset(lambda: distributed(batches)),
            evaluation=evaluation if self.run.data.evaluation else None,
            evaluation_steps=self._evaluation_shards,
            spec=spec,
        )

    def _exportable_model(self, model: Any, scratch: Path) -> Any:
        """The model with variables in the chief's process.

        A large variable is split over several parameter servers, which an export cannot contain; restored
        from a checkpoint it is whole again.
        """
        local = self._local_model()
        self._copy_state(model, local, scratch)
        return local

    def _load_weights(self, model: Any, scratch: Path) -> None:
        local = self._local_model()
        super()._load_weights(local, scratch)
        self._copy_state(local, model, scratch)

    def _local_model(self) -> Any:
        return self._built_model(replace(self.run, weights=AS_BUILT), tf.distribute.get_strategy())

    def _copy_state(self, source: Any, target: Any, scratch: Path) -> None:
        options = tf.train.CheckpointOptions(experimental_io_device=self.IO_DEVICE)
        path = tf.train.Checkpoint(model=source).write(str(scratch / "copied"), options)
        tf.train.Checkpoint(model=target).read(path, options).assert_existing_objects_matched()


def serve_chief(run: TrainingRun) -> None:
    """Serve the chief that coordinates the training, as a worker or parameter server, and exit.

    The exit status is 0 after the chief's export, else PEER_LOST. A restarted chief reconnects to running servers, and
    a running chief to a restarted worker. TensorFlow's servers cannot be stopped: this does not return.
    """
    cluster, model = run.cluster, run.outputs.model.path
    if cluster.trains:  # its steps read the data, at the path that the chief names
        run.with_data()
    limit_threads(cluster)
    claim_gpus(cluster)
    exported_before = _export_time_ns(model)
    server = tf.distribute.Server(
        cluster_resolver(cluster).cluster_spec(),
        job_name=str(cluster.role),
        task_index=cluster.index,
        config=context.context().config,  # without it, the server would use all GPUs and all of their memory
    )
    report_event("serving", f"{cluster.replica} serves at {server.target}")
    chief = cluster.replicas_of(ReplicaRole.CHIEF)
    await_peers(cluster, chief, within_s=run.settings.peers_within_s)

    def lost_chief(peers: Attendance, now: float) -> Sequence[str]:
        if PeerAnswer.ABSENT in peers.last.values() and _export_time_ns(model) not in {None, exported_before}:
            report_event("serving_finished", f"{cluster.replica} finished: the model is exported")
            end_with(0)
        return peers.gone_addresses(now)

    watch_replicas(cluster, chief, lost_chief)
    server.join()


def _export_time_ns(model: Path) -> int | None:
    """When an export in this directory was finished, in nanoseconds; None without one."""
    try:
        return (model / MANIFEST_NAME).stat().st_mtime_ns
    except FileNotFoundError:
        return None
