"""The work of an evaluator: it evaluates each new checkpoint and records the metrics until the model is exported."""

import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainer.checkpoints.files import Checkpoint, latest
from trainer.data.examples import batch_spec, counted_examples
from trainer.data.pipeline import Pipeline
from trainer.devices.strategy import claim_gpus, limit_threads, sixteen_bits
from trainer.evaluator.evaluations import Evaluation, read_evaluations, write_evaluations
from trainer.events import finite_numbers, report_event
from trainer.export.manifest import MANIFEST_NAME, finished_export, job_of
from trainer.faults import Unusable, reason_of
from trainer.replicas.cluster import ReplicaRole
from trainer.replicas.liveness import await_peers, watch_replicas
from trainer.training.keras_models import keras_of, set_mixed_precision
from trainer.training.model import built_model, fitting
from trainer.training.steps import Steps
from trainer.workload import TrainingRun

POLL_S = 0.5


def evaluate(run: TrainingRun) -> None:
    """Run an evaluator from start to end.

    Raises:
        Unusable: no evaluation split, the model cannot be built for it, or the checkpoints belong to a different model.
    """
    limit_threads(run.cluster)
    claim_gpus(run.cluster)
    run = run.with_data()
    if run.data.evaluation is None:
        raise Unusable(
            f"An evaluator needs an evaluation split: {run.data.name} has none. Name one with --evaluation_split, or "
            f"leave worker pool 3 out of the request."
        )
    pipeline = Pipeline(
        examples=run.data.training,
        evaluated=counted_examples(run.data.evaluation, "evaluation"),
        settings=run.settings,
        replicas=1,
    )
    strategy = tf.distribute.get_strategy()
    if run.settings.mixed_precision:
        set_mixed_precision(sixteen_bits(strategy, run.cluster))
    model = built_model(run, strategy=strategy, total_steps=run.settings.epochs)
    steps, data = Steps(model, run.settings, run.data), pipeline.evaluation(tf.distribute.InputContext())
    callbacks = keras_of(model).callbacks.CallbackList()
    _evaluate_checkpoints(run, model, lambda: steps.evaluate(data, pipeline.evaluation_steps, callbacks))


def _evaluate_checkpoints(run: TrainingRun, model: Any, metrics_now: Callable[[], dict[str, float]]) -> None:
    """Evaluate each new checkpoint once; return when the model is exported and no checkpoint is new.

    `metrics_now` evaluates the model, a tf.keras.Model, as it is when called.
    A checkpoint is left out if a newer one appears before it is read, or if it is removed meanwhile.
    Exits with PEER_LOST if the chief did not start in time, or is gone before its export.

    Raises:
        Unusable: the checkpoints belong to a different model, or were trained on something else.
    """
    replica = run.cluster.replica
    directory = run.outputs.logs.path / replica
    write_evaluations(directory, known := read_evaluations(directory))
    writer = tf.summary.create_file_writer(str(directory))
    _watch_chief(run)
    while True:
        # Checked first: the last checkpoint is older than the export, so `latest` below finds it.
        exported = _is_exported(run)
        newest = latest(run.outputs.checkpoints.path)
        if newest and any((done.epoch, done.step) == (newest.epoch, newest.step) for done in known):
            newest = None
        if newest and (evaluation := _evaluation_of(newest, run, model, metrics_now)):
            known.append(evaluation)
            write_evaluations(directory, known)
            _report_evaluation(evaluation, replica, writer)
        elif exported:
            break
        else:
            time.sleep(POLL_S)
    writer.close()
    report_event("evaluator_finished", f"{replica} finished")


def _watch_chief(run: TrainingRun) -> None:
    """If the chief trains with others: one that trains alone opens no port."""
    cluster = run.cluster
    listens = cluster.is_multi_worker or cluster.has_parameter_servers
    chief = cluster.replicas_of(ReplicaRole.CHIEF) if listens else {}
    if not _is_exported(run):
        await_peers(cluster, chief, within_s=run.settings.peers_within_s)
    watch_replicas(cluster, chief, lambda peers, now: () if _is_exported(run) else peers.gone_addresses(now))


def _is_exported(run: TrainingRun) -> bool:
    """Whether a run has exported its model: one of this job, or outside of a job any."""
    model, job = run.outputs.model.path, job_of(run.cluster.service_variables)
    return (model / MANIFEST_NAME).is_file() if job is None else finished_export(model, job) is not None


def _evaluation_of(
    checkpoint: Checkpoint, run: TrainingRun, model: Any, metrics_now: Callable[[], dict[str, float]]
) -> Evaluation | None:
    """None if the chief removed the checkpoint, or part of it, before it was read completely."""
    checkpoint.require(run.unchanged)
    try:
        status = tf.train.Checkpoint(model=model).restore(checkpoint.path)
        status.expect_partial().assert_nontrivial_match()
    except (tf.errors.NotFoundError, tf.errors.DataLossError, tf.errors.OutOfRangeError):
        return None
    except (ValueError, AssertionError) as error:
        raise Unusable(
            f"The checkpoint {checkpoint.path} belongs to a different model ({reason_of(error)}). Give "
            f"{run.cluster.replica} the chief's --workload, --dataset, --image_size and flags of the workload."
        ) from error
    with fitting(batch_spec(run.data.training)):
        metrics = finite_numbers(metrics_now())
    return Evaluation(
        epoch=checkpoint.epoch,
        step=checkpoint.step,
        iterations=int(model.optimizer.iterations.numpy()),
        metrics=metrics,
    )


def _report_evaluation(evaluation: Evaluation, replica: str, writer: Any) -> None:
    with writer.as_default(step=evaluation.iterations):
        for name, value in evaluation.metrics.items():
            if value is not None:
                # As Keras' SidecarEvaluator names it.
                tf.summary.scalar(f"evaluation_{name}_vs_iterations", value)
    writer.flush()
    shown = " ".join(f"{name} {value}" for name, value in evaluation.metrics.items())
    report_event(
        "evaluated",
        f"{replica} evaluated the checkpoint of epoch {evaluation.epoch}"
        f"{f' and {evaluation.step} steps' if evaluation.step else ''}: {shown}",
        epoch=evaluation.epoch,
        step=evaluation.step,
        metrics=evaluation.metrics,
    )
