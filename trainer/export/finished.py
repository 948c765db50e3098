"""A restart after the export: the replica says so and exits, without TensorFlow, data or other replicas."""

from collections.abc import Mapping
from typing import Any

from trainer.checkpoints.files import has_any, remove_backups
from trainer.command_line.flags import Flags
from trainer.evaluator.evaluations import await_evaluators
from trainer.events import report
from trainer.export.manifest import finished_export, job_of
from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.ending import on_sigterm
from trainer.storage import Outputs
from trainer.training.metric_file import MetricFile, evaluated, trial_from


def has_finished(flags: Flags, cluster: Cluster, outputs: Outputs, environment: Mapping[str, str]) -> bool:
    """Whether an earlier attempt of this job exported its model, so that nothing is left to do here.

    Each replica decides from the export alone. The chief also does what may be left after an export: a trial's last
    report, and the removal of the checkpoints. An evaluator may still have the last checkpoint to evaluate.
    """
    manifest = finished_export(outputs.model.path, job_of(cluster.service_variables))
    if manifest is None:
        return False
    has_checkpoints = has_any(outputs.checkpoints.path)
    if cluster.role is Role.EVALUATOR and has_checkpoints:
        return False
    on_sigterm(lambda: None)  # with another exit status than 0, the job would be restarted once more
    report(
        "already_exported",
        f"An earlier attempt of this job exported its model to {outputs.model.name}: {cluster.replica} has nothing to do",
        severity="NOTICE",
        replica=cluster.replica,
        model_path=outputs.model.name,
    )
    if cluster.is_chief:
        _report_trial(flags, manifest, environment)
        if has_checkpoints:
            await_evaluators(outputs.logs.path, epochs=flags.epochs)
            remove_backups(outputs.checkpoints.path)
    return True


def _report_trial(flags: Flags, manifest: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Report a trial's last metrics if its metric file lacks them: a restarted container may have a new one."""
    if (trial := trial_from(environment)) is None:
        return
    step = flags.epochs * int(manifest["training"]["steps_per_epoch"])
    file = MetricFile(trial.metric_file, trial_id=trial.trial_id, after_step=step)
    file.report(evaluated(manifest["metrics"], flags.reported_metrics), step=step)
