"""The chief's part: it builds the model on the parameter servers and hands steps out to the workers."""

import tempfile
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.cluster import Role
from trainer.loop import Loop
from trainer.model import built_model
from trainer.parameter_server.input import WorkerPipeline
from trainer.parameter_server.peers import end_for_loss, guard
from trainer.parameter_server.progress import AHEAD_PER_WORKER, RemoteProgressReport
from trainer.parameter_server.saver import CoordinatorSaver, copied
from trainer.peers import is_loss_of_peer
from trainer.place import Cadence, Place, place_after
from trainer.preemption import Preemption
from trainer.saver import chosen
from trainer.settings import steps_per_epoch
from trainer.subject import Subject
from trainer.training import Trained, Training
from trainer.weights import RANDOM

EVALUATION_SHARDS_PER_WORKER = 2  # more even out workers of different speed, and read the split more often


def train(training: Training) -> Trained:
    """Train all epochs, or what a checkpoint leaves of them, with a checkpoint and an evaluation after each.

    A step is one worker's batch; `steps_per_epoch` of them, whoever computes them, are an epoch.
    Does not return where SIGTERM ends it, nor when a parameter server is lost.

    Raises:
        Unusable: the model cannot be built for this data, or the checkpoint is of another model.
    """
    try:
        return _trained(training)
    except tf.errors.OpError as error:
        # A parameter server that was replaced within seconds has no variables: whatever asks for one fails.
        if is_loss_of_peer(error) or f"/job:{Role.PARAMETER_SERVER}" in str(error):
            end_for_loss(training.cluster, "a parameter server", type(error).__name__)
        raise


def _trained(training: Training) -> Trained:
    settings, cluster = training.settings, training.cluster
    workers = len(cluster.members[Role.WORKER])
    batch_size = settings.batch_size * training.strategy.num_replicas_in_sync  # of one worker with its GPUs
    steps = steps_per_epoch(training.dataset.train_examples, batch_size, settings.steps_per_epoch)
    checkpoint = chosen(training.checkpoints, cluster, None)
    place = place_after(checkpoint, steps_per_epoch=steps, global_batch_size=batch_size)
    initial_epoch = checkpoint.epoch if checkpoint else 0
    known = dict(checkpoint.metrics or {}) if checkpoint else {}
    subject = Subject(workload=training.workload, settings=settings, dataset=training.dataset)
    model = built_model(
        subject, weights=training.weights, strategy=training.strategy, total_steps=settings.epochs * steps
    )
    coordinator = tf.distribute.coordinator.ClusterCoordinator(training.strategy)
    # What `fit` and `compile` would set: steps are handed out, and an evaluation in shards that are each evaluated once.
    model._cluster_coordinator = coordinator  # noqa: SLF001
    model._pss_evaluation_shards = workers * EVALUATION_SHARDS_PER_WORKER  # noqa: SLF001
    metric_report = training.metric_report(initial_epoch, steps)
    for reporting in metric_report if known else ():
        reporting.report(known, epochs=initial_epoch)
    training.report_start(initial_epoch, place.step % steps, steps, batch_size)
    progress = RemoteProgressReport(
        replica=cluster.replica,
        replicas=training.strategy.num_replicas_in_sync,
        epochs=settings.epochs,
        steps_per_epoch=steps,
        global_batch_size=batch_size,
        ahead=AHEAD_PER_WORKER * workers,
    )
    guard(cluster, idle_s=progress.idle_s)
    callbacks = [
        progress,
        tf.keras.callbacks.TensorBoard(str(training.logs), write_graph=False),
        *metric_report,
    ]
    with tempfile.TemporaryDirectory(prefix=f"trainer-{cluster.replica}-checkpoint-") as scratch:
        saver = CoordinatorSaver(
            model,
            checkpoints=training.checkpoints,
            cluster=cluster,
            scratch=Path(scratch),
            global_batch_size=batch_size,
            coordinator=coordinator,
            progress=progress,
        )
        if checkpoint is not None:
            saver.restore(checkpoint)
        metrics = _loop(training, model, saver, place=place, steps=steps, callbacks=callbacks).run(
            place, known
        )
        local = built_model(
            subject,
            weights=RANDOM,
            strategy=tf.distribute.get_strategy(),
            total_steps=settings.epochs * steps,
        )
        exported = copied(model, local, Path(scratch))
    return Trained(
        model=exported,
        metrics=metrics,
        initial_epoch=initial_epoch,
        steps_per_epoch=steps,
        global_batch_size=batch_size,
    )


def _loop(
    training: Training, model: Any, saver: CoordinatorSaver, *, place: Place, steps: int, callbacks: list[Any]
) -> Loop:
    settings, cluster = training.settings, training.cluster
    pipeline = WorkerPipeline(
        dataset=training.dataset,
        image_size=settings.image_size,
        batch_size=settings.batch_size * training.strategy.num_replicas_in_sync,
        replicas=1,
        cache=settings.cache,
        seed=settings.seed,
        threads=max(2, training.processors),
        workers=len(cluster.members[Role.WORKER]),
    )
    distributed = training.strategy.distribute_datasets_from_function
    # TFDS's functions are wrapped in a way that AutoGraph warns of.
    batches = tf.autograph.experimental.do_not_convert(lambda _: pipeline.for_worker(first_pass=place.epoch))
    shards = tf.autograph.experimental.do_not_convert(lambda _: pipeline.in_shards())
    evaluation = tf.keras.utils.experimental.DatasetCreator(shards)
    return Loop(
        model=model,
        training=model._cluster_coordinator.create_per_worker_dataset(  # noqa: SLF001 - set above
            lambda: distributed(batches)
        ),
        evaluation=evaluation if training.dataset.evaluation_split else None,
        evaluation_steps=model._pss_evaluation_shards,  # noqa: SLF001 - set above
        epochs=settings.epochs,
        steps_per_epoch=steps,
        callbacks=tf.keras.callbacks.CallbackList(
            callbacks, model=model, epochs=settings.epochs, steps=steps
        ),
        saver=saver,
        preemption=Preemption(cluster, training.peers, done=place.epoch * steps + place.step),
        cadence=Cadence(every_s=settings.checkpoint_every_s, every_steps=settings.checkpoint_steps),
        is_chief=cluster.is_chief,
    )
