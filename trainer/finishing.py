"""The end of a run: the export and its description, and a restart that finds both."""

import platform
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from trainer.checkpoints.files import has_any, remove_backups
from trainer.evaluator.evaluations import await_evaluators
from trainer.events import report_event
from trainer.export.manifest import (
    MANIFEST_NAME,
    described_metrics,
    finished_export,
    job_of,
    manifest_of,
    metrics_of,
    write_manifest,
)
from trainer.replicas.cluster import ReplicaRole
from trainer.replicas.ending import on_sigterm
from trainer.training.metric_file import MetricFile, evaluated_metrics, trial_from
from trainer.training.starting_weights import KERAS_MODEL
from trainer.workload import TrainingRun

if TYPE_CHECKING:
    from trainer.training.attempt import Trained, Training


def finished_metrics(run: TrainingRun) -> dict[str, float] | None:
    """The metrics of an earlier attempt of this job, if it exported its model: nothing is left to do here. Else None.

    Each replica decides from the export alone, without TensorFlow, data or other replicas. The chief also does what may
    be left after an export: a trial's last report, and the removal of the checkpoints. An evaluator may still have the
    last checkpoint to evaluate.
    """
    cluster, outputs = run.cluster, run.outputs
    manifest = finished_export(outputs.model.path, job_of(cluster.service_variables))
    has_checkpoints = manifest is not None and has_any(outputs.checkpoints.path)
    if manifest is None or (cluster.role is ReplicaRole.EVALUATOR and has_checkpoints):
        return None
    on_sigterm(lambda: None)  # with another exit status than 0, the job would be restarted once more
    report_event(
        "already_exported",
        f"An earlier attempt of this job exported its model to {outputs.model.name}: {cluster.replica} has nothing to do",
        severity="NOTICE",
        model_path=outputs.model.name,
    )
    if cluster.is_chief:
        _report_trial(run, manifest)
        if has_checkpoints:
            await_evaluators(outputs.logs.path, epochs=run.settings.epochs)
            remove_backups(outputs.checkpoints.path)
    return metrics_of(manifest)


def _report_trial(run: TrainingRun, manifest: Mapping[str, Any]) -> None:
    """Report a trial's last metrics if its metric file lacks them: a restarted container may have a new one."""
    if (trial := trial_from(run.environment)) is None:
        return
    step = run.settings.epochs * int(manifest["training"]["steps_per_epoch"])
    file = MetricFile(trial.metric_file, trial_id=trial.trial_id, after_step=step)
    file.report(evaluated_metrics(metrics_of(manifest), run.settings.reported_metrics), step=step)


def export_model(training: "Training", trained: "Trained", started: float) -> None:
    """Export the model, and return when no other replica needs this one. `started` is of time.monotonic()."""
    import tensorflow as tf

    from trainer.devices.strategy import read_alone
    from trainer.export.saved_model import save_keras_model, save_model
    from trainer.training.keras_models import metrics_to_save, variables_digest

    run, cluster, outputs = training.run, training.cluster, training.run.outputs
    signatures = _signatures_of(run, trained.model)
    # Keras saves metrics, too, which no model tracks.
    state = tf.train.Checkpoint(model=trained.model, metrics=metrics_to_save(trained.model))
    with read_alone(state, training.strategy):
        if cluster.is_chief:
            directory = outputs.model.path
            # An earlier export's, before its files change.
            (directory / MANIFEST_NAME).unlink(missing_ok=True)
            save_model(trained.model, directory, signatures)
            if why_not := save_keras_model(trained.model, directory / KERAS_MODEL):
                report_event(
                    "keras_model_missing",
                    f"The export has no {KERAS_MODEL}, because Keras cannot save this model: {why_not}. The SavedModel is "
                    f"complete. Give the model's classes a get_config method to have both.",
                    severity="WARNING",
                )
            manifest = manifest_of(
                directory,
                model_uri=outputs.model.directory_uri,
                created_at=datetime.now(UTC),
                description=_manifest_description(training, trained, time.monotonic() - started),
            )
            write_manifest(directory, manifest)
            report_event(
                "model_exported",
                f"Model exported to {outputs.model.name}",
                severity="NOTICE",
                model_path=outputs.model.name,
                manifest_path=f"{outputs.model.name.rstrip('/')}/{MANIFEST_NAME}",
                metrics=trained.metrics,
            )
    report_event(
        "train_finished",
        f"{cluster.replica} finished",
        seconds=round(time.monotonic() - started, 1),
        weights_sha256=variables_digest(trained.model.trainable_variables),  # equal on replicas in sync
    )
    # The run is finished: with an exit status other than 0, its chief would repeat it.
    on_sigterm(lambda: None)
    await_evaluators(outputs.logs.path, epochs=run.settings.epochs)
    training.peers.part()
    if cluster.is_chief:
        remove_backups(outputs.checkpoints.path)


def _signatures_of(run: TrainingRun, model: Any) -> Mapping[str, Any]:
    from trainer.data.examples import batch_spec
    from trainer.export.saved_model import plain_serving
    from trainer.training.keras_models import inputs_of

    if run.workload.serving is not None:
        return run.workload.serving(run, model)
    return plain_serving(model, inputs_of(batch_spec(run.data.training)))


def _manifest_description(training: "Training", trained: "Trained", seconds: float) -> dict[str, Any]:
    """The manifest's description of data, metrics, versions and training."""
    run, job = training.run, job_of(training.cluster.service_variables)
    described = dict(run.data.description)
    return {
        **({"job": job} if job else {}),
        **described_metrics(trained.metrics),
        "dataset": {"name": run.data.name, "train_examples": run.data.training.count},
        "frameworks": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("tensorflow", "tf_keras", "keras")},
            **described.pop("frameworks", {}),
        },
        "training": training.facts | {"initial_epoch": trained.initial_epoch, "seconds": round(seconds, 1)},
        **described,
    }
