"""Any Keras program as one that survives: `survive.run` trains, checkpoints, continues and exports a model.

A whole program:

    from trainer import survive  # first: it chooses the Keras that `tf.keras` is
    import tensorflow as tf

    def build_model():
        model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse", metrics=["mae"])
        return model

    def training():
        return tf.data.Dataset.from_tensor_slices((features, labels))

    survive.run(build_model, survive.Examples(training), settings=survive.TrainingSettings(epochs=5, batch_size=32))
"""

import gc
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from trainer.data.examples import Examples
from trainer.devices.choices import (
    Strategy,
    chosen_strategy,
    require_accelerators,
    strategy_contradictions,
    tpu_fault,
    unequal_accelerators,
)
from trainer.events import name_replica, report_event
from trainer.faults import Diverged, Unusable, collect_faults
from trainer.finishing import export_model, finished_metrics
from trainer.replicas.cluster import ClusterSpec, ReplicaRole
from trainer.replicas.cluster_variable import VARIABLES, cluster_from
from trainer.replicas.ending import (
    PEER_LOST,
    end_at_once,
    end_for_taken_address,
    end_with,
    is_loss_of_peer,
    on_sigterm,
)
from trainer.replicas.liveness import gather_replicas
from trainer.settings.setting import read_flags, with_defaults
from trainer.settings.settings import SETTINGS, TrainingSettings
from trainer.storage import copy_earlier_checkpoints, outputs_from
from trainer.training.callbacks import callbacks_from
from trainer.training.metric_file import trial_from
from trainer.training.starting_weights import exported_weights
from trainer.workload import Data, StartingWeights, TrainingRun, Workload

__all__ = ["Data", "Examples", "TrainingRun", "TrainingSettings", "Unusable", "Workload"]  # of other modules


def run(
    build_model: Callable[[], Any],
    training: Examples,
    evaluation: Examples | None = None,
    *,
    settings: TrainingSettings | None = None,
    name: str = "data",
    callbacks: Sequence[Any] | Callable[[], Sequence[Any]] = (),
    serving: Callable[[Any], Mapping[str, Any]] | None = None,
    environment: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Train a model to its export, from wherever an earlier attempt stopped; do this replica's part of it.

    TF_CONFIG or CLUSTER_SPEC say which replica of which cluster this process is, the AIP_… variables or
    `settings.job_dir` where model, checkpoints and logs go. Start every replica with the same program, and start all of
    them again with the same settings whenever one ended with 134 or 143: docs/explanation/survival.md.

    Args:
        build_model: returns the compiled model, of tf.keras or keras. Called in the strategy's scope.
        training: what to train on.
        evaluation: what to evaluate after each epoch.
        settings: `settings_from(sys.argv[1:], prog=…)` reads them from a command line.
        name: of the data, in events, export.json and checkpoints: those of another name are refused.
        callbacks: Keras callbacks, or a function without arguments that returns them, for those that need the strategy:
            it is called once the model is built. One that sets `stop_training` must do so on every replica at
            the same step.
        serving: of the trained model, the functions to export by name of signature, each a tf.function with an input
            signature. None: `serving_default`, which takes what the model takes.
        environment: os.environ by default.

    Returns:
        The metrics of the last epoch, those of its evaluation with `val_` before their names.

    Does not return where this replica does not train to the end. The process then ends with 0 if it is an evaluator,
    worker of parameter servers or parameter server that has done its part, 1 after an error, 2 if something cannot be
    used (every fault is on standard error), 134 if a peer was lost, 143 after SIGTERM and a checkpoint.

    Raises:
        Exception: what else the functions raise, in a process without peers; SystemExit in place of 2, too.
    """
    data = Data(training=training, evaluation=evaluation, name=name, unchanged={"name": name})
    variables = os.environ if environment is None else environment
    with end_on_error(at_once=any(map(variables.get, VARIABLES))):
        called = callbacks_from(callbacks)
        workload = Workload(
            build=lambda _: build_model(),
            data=lambda _: data,
            callbacks=lambda _: called(),
            serving=None if serving is None else lambda _, model: serving(model),
        )
        metrics = attempt(workload, settings or TrainingSettings(), variables)
    if metrics is None:
        end_with(0)
    return metrics


def settings_from(
    arguments: Sequence[str], *, prog: str, defaults: TrainingSettings | None = None
) -> TrainingSettings:
    """The settings that `arguments` give; those of `defaults` for the rest.

    Ends the process as argparse does: with 0 after `--help`, and with 2 after unknown flags and invalid values, of which
    standard error has every one.
    """
    flags = with_defaults(SETTINGS, vars(defaults or TrainingSettings()))
    try:
        return TrainingSettings(**read_flags(arguments, {"flags": flags}, prog=prog))
    except Unusable as unusable:
        print(f"usage: {prog} [--name=value …]", file=sys.stderr)  # noqa: T201 - the job's log
        for fault in unusable.faults:
            print(f"{prog}: error: {fault}", file=sys.stderr)  # noqa: T201 - as above
        raise SystemExit(2) from unusable


@contextmanager
def end_on_error(*, at_once: bool = True) -> Iterator[None]:
    """A context that ends the process after an error, with the status that says why.

    `at_once`: without a clean shutdown, which would wait for the peers that are gone; else errors get out.
    """
    on_sigterm(end_at_once)
    try:
        yield
    except Unusable as unusable:
        print(unusable, file=sys.stderr)  # noqa: T201 - the job's log
        if not at_once:
            raise SystemExit(2) from unusable
        end_with(2)
    except Diverged as diverged:
        repair = (
            f"The training diverged: {diverged}. It ends here, and the checkpoints from before are kept. Lower the learning rate, "
            f"limit the gradients (clipnorm=1.0 of the optimizer), or look for values in the data that are not finite. A restart "
            f"continues from the last checkpoint; to begin afresh, use another AIP_CHECKPOINT_DIR or --job_dir."
        )
        report_event("diverged", repair, severity="ERROR")
        if not at_once:
            raise
        end_with(1)
    except Exception as error:
        if not at_once:
            raise
        end_for_taken_address(error)
        traceback.print_exc()
        end_with(PEER_LOST if is_loss_of_peer(error) else 1)


def attempt(
    workload: Workload,
    settings: TrainingSettings,
    environment: Mapping[str, str],
    *,
    name: str = "",
    flags: Mapping[str, Any] | None = None,
) -> dict[str, float] | None:
    """This replica's part of a run: the metrics of the last epoch, or None if it does not train.

    Raises:
        Unusable: settings, environment, data, checkpoints or the model cannot be used; every fault that is known.
        tensorflow.errors.OpError: another replica is gone.
    """
    faults = settings.faults()
    with collect_faults(faults):
        cluster = cluster_from(environment).without_reduction_servers()
    if faults:
        raise Unusable(*faults)
    name_replica(cluster.replica)
    run = TrainingRun(
        workload=workload,
        settings=settings,
        cluster=cluster,
        outputs=outputs_from(environment, settings.job_dir),
        environment=environment,
        name=name,
        flags=flags or {},
    )
    if faults := _contradictions_of(run):
        raise Unusable(*faults)
    print(cluster.description(), file=sys.stderr, flush=True)  # noqa: T201 - the job's log
    copy_earlier_checkpoints(run.outputs, environment, is_chief=cluster.is_chief)
    if (metrics := finished_metrics(run)) is not None:
        return metrics
    require_accelerators(cluster, environment)
    _load_tensorflow()
    if cluster.role is ReplicaRole.EVALUATOR:
        from trainer.evaluator.evaluator import evaluate

        evaluate(run)
        return None
    if cluster.has_parameter_servers and not cluster.is_chief:
        from trainer.parameter_server.roles import serve_chief

        serve_chief(run)
        return None
    return _train_replica(run)


def _contradictions_of(run: TrainingRun) -> list[str]:
    """Every fault of settings that do not fit the cluster or the workload."""
    settings, cluster, environment = run.settings, run.cluster, run.environment
    has_directory = bool(environment.get("AIP_CHECKPOINT_DIR") or settings.job_dir)
    faults = list(strategy_contradictions(settings.strategy, cluster, has_checkpoint_directory=has_directory))
    has_servers = chosen_strategy(settings.strategy, cluster) is Strategy.PARAMETER_SERVER
    if has_servers:
        faults += [
            f"--{name} is for replicas that train in step, which workers of parameter servers do not. Remove the flag, or "
            f"leave worker pool 2 out of the request."
            for name in ("deterministic", "warmup_steps")
            if getattr(settings, name)
        ]
    unequal = None if has_servers else unequal_accelerators(cluster, environment)
    return [*faults, *filter(None, (unequal, tpu_fault(cluster)))]


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


def _train_replica(run: TrainingRun) -> dict[str, float]:
    import tensorflow as tf

    from trainer.checkpoints.files import latest
    from trainer.devices.strategy import limit_threads, sixteen_bits, strategy_for
    from trainer.replicas.peers import Peers
    from trainer.training.attempt import Training
    from trainer.training.keras_models import set_mixed_precision

    started, settings = time.monotonic(), run.settings
    run = run.with_data()
    if (trial := trial_from(run.environment)) is not None and run.data.evaluation is None:
        raise Unusable(
            f"Trial {trial.trial_id} has no metric to report: {run.data.name} has no evaluation split, and a study "
            f"compares its trials by their evaluation. Name a split with --evaluation_split, or give the program "
            f"examples to evaluate."
        )

    def has_checkpoint() -> bool:
        return latest(run.outputs.checkpoints.path) is not None

    if settings.start_from is None:
        weights = run.data.weights(has_checkpoint)
    else:
        weights = exported_weights(settings.start_from, run.environment, has_checkpoint)
    try:
        limit_threads(run.cluster)
    except RuntimeError as error:
        raise Unusable(
            "TensorFlow has run an operation before the strategy existed. Move operations into the functions that "
            "load and decode examples, or into the one that builds the model."
        ) from error
    gather_replicas(run.cluster, within_s=settings.peers_within_s)
    strategy = strategy_for(run.cluster, asked=settings.strategy, mirrored=run.workload.mirrored)
    tf.keras.utils.set_random_seed(settings.seed)
    if settings.deterministic:
        tf.config.experimental.enable_op_determinism()
    if settings.mixed_precision:
        set_mixed_precision(sixteen_bits(strategy, run.cluster))
    run = replace(run, loaded=run.data.with_counts(), weights=_agreed_weights(weights, strategy, run.cluster))
    kind, joined = Training, run.cluster
    if run.cluster.has_parameter_servers:
        from trainer.parameter_server.roles import CoordinatedTraining

        # A coordinator and its workers share no collective operation, so the workers are not its peers.
        kind, joined = CoordinatedTraining, ClusterSpec()
    training = kind(run=run, strategy=strategy, peers=Peers(joined), trial=trial)
    trained = training.train()
    export_model(training, trained, started)
    return trained.metrics


def _agreed_weights(weights: StartingWeights, strategy: Any, cluster: ClusterSpec) -> StartingWeights:
    """The weights that all replicas start from: with different ones, they would silently train different models."""
    from trainer.devices.strategy import all_replicas_agree

    if not all_replicas_agree(strategy, weights.path is not None) and weights.path is not None:
        weights = StartingWeights(
            label="random", because="another replica could not read them", is_fallback=True
        )
    warn_of_fallback(weights, cluster.replica)
    return weights


def warn_of_fallback(weights: StartingWeights, replica: str) -> None:
    """Report a WARNING if the model starts from random values in place of others."""
    if weights.is_fallback:
        message = f"{replica} starts from random weights: {weights.because}"
        report_event("random_weights", message, severity="WARNING")
