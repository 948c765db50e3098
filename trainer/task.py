"""The image's entry point: train a workload on a TFDS data set and export a model that can be served.

    python -m trainer.task --dataset=cassava --epochs=2

Exit status: 0 the run finished; 1 it failed; 2 the flags, the environment or the data are unusable (every fault is
on standard error); 134 a peer was lost or did not start; 143 SIGTERM ended the run after a checkpoint. After 134
and 143, starting all replicas again continues the run; see docs/explanation/survival.md.
"""

import gc
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainer.command_line.flags import Flags, flags_from
from trainer.devices.accelerators import require_accelerators, unequal_accelerators
from trainer.devices.strategy_choice import contradictions, uses_parameter_servers
from trainer.export.finished import has_finished
from trainer.faults import Unusable, collected
from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.cluster_variable import cluster_from
from trainer.replicas.ending import PEER_LOST, end_at_once, end_with, on_sigterm
from trainer.replicas.peers import is_loss_of_peer
from trainer.storage import Outputs, outputs_from

if TYPE_CHECKING:
    from trainer.training.attempt import Trained, Training

Part = Callable[[Flags, Cluster, Outputs, Mapping[str, str]], None]


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status of a run with these flags in this environment."""
    try:
        flags, cluster, outputs = _parse_arguments(arguments, environment)
        print(cluster.description(), file=sys.stderr, flush=True)  # noqa: T201 - the job's log
        if has_finished(flags, cluster, outputs, environment):
            return 0
        require_accelerators(cluster, environment)
        _load_tensorflow()
        _part_of(cluster, flags)(flags, cluster, outputs, environment)
    except Unusable as unusable:
        for fault in unusable.faults:
            print(fault, file=sys.stderr)  # noqa: T201 - the job's log
        return 2
    return 0


def _parse_arguments(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[Flags, Cluster, Outputs]:
    """Flags, cluster and outputs.

    Raises:
        Unusable: the faults of all three at once.
    """
    faults: list[str] = []
    with collected(faults):
        flags = flags_from(arguments)
    with collected(faults):
        cluster = cluster_from(environment).without_reduction_servers()
    if not faults:
        has_directory = bool(environment.get("AIP_CHECKPOINT_DIR") or flags.job_dir)
        faults += contradictions(flags.strategy, cluster, has_checkpoint_directory=has_directory)
        in_step = not uses_parameter_servers(flags.strategy, cluster)
        if in_step and (fault := unequal_accelerators(cluster, environment)):
            faults.append(fault)
    if faults:
        raise Unusable(*faults)
    return flags, cluster, outputs_from(environment, flags.job_dir)


def _load_tensorflow() -> None:
    """Import TensorFlow, only once the flags are known to be sound, so that a wrong one fails at once.

    An import leaves little garbage, and collections would take a fifth of its time. What it loads stays until the
    end, so later collections need not look at it.
    """
    gc.disable()
    try:
        import tensorflow as tf  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


def _part_of(cluster: Cluster, flags: Flags) -> Part:
    """The function that runs this replica's part."""
    if cluster.role is Role.EVALUATOR:
        from trainer.evaluator.evaluator import evaluate

        return evaluate
    if not cluster.is_chief and uses_parameter_servers(flags.strategy, cluster):
        from trainer.parameter_server.server import serve

        return serve
    return train_and_export


def train_and_export(
    flags: Flags, cluster: Cluster, outputs: Outputs, environment: Mapping[str, str]
) -> None:
    """Run this replica from start to end.

    Raises:
        Unusable: the data or the weights cannot be used.
        tensorflow.errors.OpError: another replica is gone.
    """
    started = time.monotonic()
    training = _prepared(flags, cluster, outputs, environment)
    _export(training, training.run(), started)


def _prepared(flags: Flags, cluster: Cluster, outputs: Outputs, environment: Mapping[str, str]) -> "Training":
    import tensorflow as tf

    from trainer.checkpoints.files import latest
    from trainer.data.dataset import ready_subject
    from trainer.devices.strategy import all_replicas_agree, limit_threads, processors_for, sixteen_bits
    from trainer.replicas.peers import Peers
    from trainer.training.attempt import Training
    from trainer.training.keras_models import set_mixed_precision
    from trainer.training.metric_file import trial_from
    from trainer.training.weights import RANDOM, starting_weights, warn_of_random

    subject = ready_subject(flags, cluster, environment)
    workload, dataset = subject.workload, subject.dataset
    if (trial := trial_from(environment)) is not None and dataset.evaluation_split is None:
        raise Unusable(
            f"Trial {trial.trial_id} has no metric to report: {dataset.name} has no evaluation split, and a study "
            f"compares its trials by their evaluation. Name a split with --evaluation_split."
        )
    weights = starting_weights(
        flags.weights,
        workload.pretrained,
        environment,
        has_checkpoint=lambda: latest(outputs.checkpoints.path) is not None,
    )
    processors = processors_for(cluster)
    limit_threads(processors)
    strategy = _strategy(flags, cluster, mirrored=workload.mirrored)
    tf.keras.utils.set_random_seed(flags.seed)
    if flags.mixed_precision:
        set_mixed_precision(sixteen_bits(strategy, cluster))
    # Replicas with different initial weights would silently train different models.
    if not all_replicas_agree(strategy, weights.path is not None) and weights.path is not None:
        weights = replace(RANDOM, because="another replica could not read them")
    warn_of_random(weights, workload.pretrained, cluster.replica)
    kind, joined = Training, cluster
    if uses_parameter_servers(flags.strategy, cluster):
        from trainer.parameter_server.coordinator import CoordinatedTraining

        # A coordinator and its workers share no collective operation, so the workers are not its peers.
        kind, joined = CoordinatedTraining, Cluster()
    return kind(
        subject=subject,
        cluster=cluster,
        strategy=strategy,
        peers=Peers(joined),
        weights=weights,
        trial=trial,
        outputs=outputs,
        processors=processors,
    )


def _strategy(flags: Flags, cluster: Cluster, *, mirrored: bool) -> Any:
    """The run's strategy, built once all the replicas that it needs have started."""
    from trainer.devices.strategy import strategy_for
    from trainer.replicas.gathering import gather

    if uses_parameter_servers(flags.strategy, cluster):
        from trainer.parameter_server.peers import await_peers, guard

        await_peers(cluster, within_s=flags.peers_within_s)
        guard(cluster)
    else:
        gather(cluster, within_s=flags.peers_within_s)
    return strategy_for(cluster, asked=flags.strategy, mirrored=mirrored)


def _export(training: "Training", trained: "Trained", started: float) -> None:
    from trainer.checkpoints.files import remove_backups
    from trainer.evaluator.evaluations import await_evaluators
    from trainer.events import report
    from trainer.export.manifest import MANIFEST_NAME, manifest_of, remove_manifest, write_manifest
    from trainer.export.saved_model import export_directory, save_model
    from trainer.training.attempt import weights_sha256

    cluster, flags, outputs = training.cluster, training.flags, training.outputs
    with export_directory(outputs.model.path, cluster) as directory:
        remove_manifest(directory)
        save_model(
            trained.model,
            directory,
            image_size=flags.image_size,
            class_names=training.subject.dataset.class_names,
        )
        if cluster.is_chief:
            manifest = manifest_of(
                directory,
                model_uri=outputs.model.directory_uri,
                created_at=datetime.now(UTC),
                description=_description(training, trained, time.monotonic() - started),
            )
            write_manifest(directory, manifest)
            report(
                "model_exported",
                f"Model exported to {outputs.model.name}",
                severity="NOTICE",
                replica=cluster.replica,
                model_path=outputs.model.name,
                manifest_path=f"{outputs.model.name.rstrip('/')}/{MANIFEST_NAME}",
                metrics=trained.metrics,
            )
    report(
        "train_finished",
        f"{cluster.replica} finished",
        replica=cluster.replica,
        seconds=round(time.monotonic() - started, 1),
        weights_sha256=weights_sha256(trained.model),
    )
    on_sigterm(
        lambda: None
    )  # the run is finished: with an exit status other than 0, its chief would repeat it
    await_evaluators(outputs.logs.path, epochs=flags.epochs)
    training.peers.part()
    if cluster.is_chief:
        remove_backups(outputs.checkpoints.path)


def _description(training: "Training", trained: "Trained", seconds: float) -> dict[str, Any]:
    """The manifest's description of data, metrics, versions and training."""
    import tensorflow as tf
    import tensorflow_datasets as tfds
    import tf_keras

    from trainer.devices.strategy import name_of
    from trainer.events import finite
    from trainer.export.manifest import job_of

    flags, dataset = training.flags, training.subject.dataset
    job = job_of(training.cluster.service_variables)
    return {
        **({"job": job} if job else {}),
        "metrics": {name: value for name, value in finite(trained.metrics).items() if value is not None},
        "class_names": list(dataset.class_names),
        "image_size": list(flags.image_size),
        "dataset": {
            "name": dataset.name,
            "version": dataset.version,
            "train_split": dataset.train_split,
            "evaluation_split": dataset.evaluation_split,
            "train_examples": dataset.train_examples,
        },
        "frameworks": {
            "python": platform.python_version(),
            "tensorflow": tf.__version__,
            "tf_keras": tf_keras.__version__,
            "tensorflow_datasets": tfds.__version__,
        },
        "training": {
            "epochs": flags.epochs,
            "initial_epoch": trained.initial_epoch,
            "steps_per_epoch": training.steps_per_epoch,
            "global_batch_size": training.global_batch_size,
            "replicas_in_sync": training.strategy.num_replicas_in_sync,
            "strategy": name_of(training.strategy),
            "weights": training.weights.label,
            "seconds": round(seconds, 1),
        },
    }


def run() -> None:
    """Run with the flags and environment of this process, and exit."""
    on_sigterm(end_at_once)
    try:
        status = main(sys.argv[1:], os.environ)
    except Exception as error:
        traceback.print_exc()
        status = PEER_LOST if is_loss_of_peer(error) else 1
    # After the loss of a peer there is no clean shutdown: TensorFlow's would wait for the peers that are gone.
    end_with(status)


if __name__ == "__main__":
    run()
