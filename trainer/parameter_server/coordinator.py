"""The chief's part: it builds the model on the parameter servers and hands steps out to the workers."""

from typing import Any

import tensorflow as tf

from trainer.checkpoints import next_epoch
from trainer.cluster import Role
from trainer.metric_report import EVALUATED
from trainer.model import built_model
from trainer.parameter_server.input import WorkerPipeline
from trainer.parameter_server.progress import RemoteProgressReport
from trainer.reporting import numbers
from trainer.settings import steps_per_epoch
from trainer.training import Trained, Training

EVALUATION_SHARDS_PER_WORKER = 2  # more even out workers of different speed, and read the split more often


def train(training: Training) -> Trained:
    """Train all epochs, or those a backup leaves, with a backup and an evaluation after each.

    A step is one worker's batch; `steps_per_epoch` of them, whoever computes them, are an epoch.

    Raises:
        Unusable: the model cannot be built for this data.
        tf.errors.OpError: a parameter server is gone; the run can be started again and continues.
    """
    settings, dataset = training.settings, training.dataset
    workers = len(training.cluster.members[Role.WORKER])
    batch_size = (
        settings.batch_size * training.strategy.num_replicas_in_sync
    )  # of one worker, whatever its GPUs
    steps = steps_per_epoch(dataset.train_examples, batch_size, settings.steps_per_epoch)
    initial_epoch = next_epoch(training.checkpoints)
    pipeline = WorkerPipeline(
        dataset=dataset,
        image_size=settings.image_size,
        batch_size=batch_size,
        replicas=1,
        cache=settings.cache,
        seed=settings.seed,
        threads=max(2, training.processors),
        workers=workers,
    )
    model = built_model(
        training.workload,
        settings,
        dataset,
        weights=training.weights,
        strategy=training.strategy,
        total_steps=settings.epochs * steps,
    )
    model._pss_evaluation_shards = workers * EVALUATION_SHARDS_PER_WORKER  # noqa: SLF001 - an argument of `compile`, which the workload called
    metric_report = training._metric_report(initial_epoch, steps)
    training._report_start(initial_epoch, steps, batch_size)
    callbacks = [
        RemoteProgressReport(
            replica=training.cluster.replica,
            replicas=training.strategy.num_replicas_in_sync,
            epochs=settings.epochs,
            steps_per_epoch=steps,
            global_batch_size=batch_size,
        ),
        tf.keras.callbacks.BackupAndRestore(str(training.checkpoints), delete_checkpoint=False),
        tf.keras.callbacks.TensorBoard(str(training.logs), write_graph=False),
        *metric_report,
    ]
    history = model.fit(
        tf.keras.utils.experimental.DatasetCreator(
            lambda _: pipeline.for_worker(first_epoch=min(initial_epoch, settings.epochs - 1))
        ),
        validation_data=evaluation,
        validation_steps=shards if evaluation else None,
        epochs=settings.epochs,
        steps_per_epoch=steps,
        callbacks=callbacks,
        verbose=0,
    )
    metrics = numbers({name: values[-1] for name, values in history.history.items()})
    if not metrics and (evaluation := pipeline.in_shards()) is not None:  # only the export was left to do
        found = model.evaluate(evaluation, verbose=0, return_dict=True)
        metrics = {EVALUATED + name: value for name, value in numbers(found).items()}
        for reporting in metric_report:
            reporting.report(metrics, epochs=settings.epochs)
    return Trained(
        model=model,
        metrics=metrics,
        initial_epoch=initial_epoch,
        steps_per_epoch=steps,
        global_batch_size=batch_size,
    )
