"""One training run on one replica: from data to a trained model and its last metrics."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from trainer.checkpoints.files import TrainingPosition, position_after
from trainer.checkpoints.saver import Saver, agreed_checkpoint
from trainer.checkpoints.upload import Uploads
from trainer.data.examples import batch_spec, steps_per_epoch
from trainer.data.pipeline import Pipeline, distributed_batches
from trainer.devices.strategy import all_replicas_agree, name_of
from trainer.events import report_event
from trainer.faults import Diverged, Unusable, suggestion_for
from trainer.replicas.cluster import ClusterSpec
from trainer.replicas.peers import Peers
from trainer.replicas.preemption import Preemption
from trainer.settings.settings import TrainingSettings
from trainer.training.callbacks import (
    KeptState,
    best_epoch_of,
    checked_callbacks,
    finished_epochs_at_best,
    has_hook,
)
from trainer.training.keras_models import keras_of, metrics_known, metrics_to_save
from trainer.training.loop import Batches, Loop
from trainer.training.metric_file import (
    EVALUATED,
    MetricFile,
    ReportedTrial,
    evaluated_metrics,
    missing_metrics,
)
from trainer.training.model import built_model
from trainer.training.reporting import Progress
from trainer.training.starting_weights import load_weights
from trainer.training.steps import Steps
from trainer.workload import TrainingRun


@dataclass(frozen=True, kw_only=True)
class Trained:
    """`metrics` are the last epoch's; `initial_epoch` is the number of epochs finished before this start."""

    model: Any  # tf.keras.Model
    metrics: dict[str, float]
    initial_epoch: int


@dataclass(frozen=True, kw_only=True)
class Training:
    """The inputs of `train`.

    `trial` is None unless this run is a trial of a study; only a trial's chief reports its metrics.
    CoordinatedTraining overrides the methods below `train`: there a coordinator hands the steps to workers.
    """

    IO_DEVICE: ClassVar[str | None] = None
    """The device that reads and writes checkpoint files; None leaves it to TensorFlow."""

    run: TrainingRun  # its data counted
    strategy: Any  # tf.distribute.Strategy
    peers: Peers
    trial: ReportedTrial | None

    @property
    def settings(self) -> TrainingSettings:
        return self.run.settings

    @property
    def cluster(self) -> ClusterSpec:
        return self.run.cluster

    @property
    def global_batch_size(self) -> int:
        """Examples of one step."""
        return self.settings.batch_size * int(self.strategy.num_replicas_in_sync)

    @property
    def steps_per_epoch(self) -> int:
        count = self.run.data.training.count or 0
        return steps_per_epoch(count, self.global_batch_size, self.settings.steps_per_epoch)

    @property
    def facts(self) -> dict[str, Any]:
        """What the event of the start and export.json report."""
        return {
            "strategy": name_of(self.strategy),
            "replicas_in_sync": self.strategy.num_replicas_in_sync,
            "global_batch_size": self.global_batch_size,
            "epochs": self.settings.epochs,
            "steps_per_epoch": self.steps_per_epoch,
            "weights": self.run.weights.label,
        }

    def train(self) -> Trained:
        """Train the epochs that the last checkpoint does not cover, with a checkpoint and an evaluation after each.

        Every replica must call this with the same settings. Does not return if SIGTERM ends the run.

        Raises:
            Unusable: the model cannot be built for this data or trained with these settings, the checkpoint belongs to
                a different model, or a trial's metric file cannot be written.
            Diverged: the loss or a weight is not finite any more; the checkpoints from before are there.
            tf.errors.OpError: another replica is gone; the run can be started again and continues.
        """
        epochs, outputs = self.settings.epochs, self.run.outputs
        agreed = partial(agreed_checkpoint, outputs.checkpoints.path, self.cluster, self.peers.board)
        checkpoint = agreed()
        place = position_after(
            checkpoint, steps_per_epoch=self.steps_per_epoch, global_batch_size=self.global_batch_size
        )
        initial_epoch = checkpoint.epoch if checkpoint else 0
        model = self._built_model(self.run, self.strategy)
        steps = self._built_steps(model)
        to_study = self._trial_report(initial_epoch, steps.model)
        self._report_start(initial_epoch, place.step if place.epoch == initial_epoch else 0)
        scratch_prefix = f"trainer-{self.cluster.replica}-checkpoint-"
        with tempfile.TemporaryDirectory(prefix=scratch_prefix) as name, Uploads() as uploads:
            scratch = Path(name)
            saver = Saver(
                model=model,
                metrics=metrics_to_save(steps.model),
                checkpoints=outputs.checkpoints.path,
                cluster=self.cluster,
                scratch=scratch,
                uploads=uploads,
                global_batch_size=self.global_batch_size,
                trained_on=self.run.unchanged,
                io_device=self.IO_DEVICE,
                wait_for_steps=steps.finish,
            )
            if checkpoint is not None:
                saver.restore(checkpoint)
            elif self.run.weights.exported is not None:
                self._load_weights(model, scratch)
            done = place.epoch * self.steps_per_epoch + place.step
            callbacks = checked_callbacks(self.run.workload.callbacks(self.run))
            best = best_epoch_of(callbacks, asked := self._asked_best(steps.model))
            watched = [*([best] if asked else []), *callbacks]
            saver.best_epoch = lambda: finished_epochs_at_best(best)
            called = self._callback_list(steps.model, watched)  # sets the model's history
            loop = Loop(
                steps=steps,
                batches=self._batches_from(place),
                steps_per_epoch=self.steps_per_epoch,
                callbacks=called,
                kept=KeptState([steps.model.history, *watched], checkpoint.callbacks if checkpoint else ()),
                saver=saver,
                preemption=Preemption(self.cluster, self.peers, done=done, finish_upload=uploads.finish),
                progress=Progress(
                    epochs=epochs,
                    steps_per_epoch=self.steps_per_epoch,
                    global_batch_size=self.global_batch_size,
                ),
                to_study=to_study,
                best=best,
                checkpoint_of=lambda epoch: agreed(of_epoch=epoch),
                reads_each=self._is_needed(
                    has_hook(callbacks, "on_batch_end", "on_train_batch_end", "on_test_batch_end")
                ),
                watches=self._is_needed(bool(callbacks) or getattr(model.optimizer, "use_ema", False)),
            )
            to_study(checkpoint.metrics or {} if checkpoint else {}, min(initial_epoch, epochs))
            try:
                metrics = loop.run(place, checkpoint)
            except Diverged:
                self.peers.stop_watching()  # all end here, some a moment later
                raise
            to_study(metrics, epochs, is_exported=True)
            return Trained(
                model=self._exportable_model(model, scratch), metrics=metrics, initial_epoch=initial_epoch
            )

    def _asked_best(self, model: Any) -> tuple[str, bool] | None:
        """The metric and direction of --export. Raises Unusable if the model will not have it, as far as that is known."""
        asked, known = self.settings.asked_best, metrics_known(model)
        if asked is not None and known is not None:
            names = [*known, *(EVALUATED + name for name in known if self.run.data.evaluation)]
            if asked[0] not in names:
                raise Unusable(
                    f"--export={self.settings.export}: an epoch of this run has no {asked[0]}.{suggestion_for(asked[0], names)} "
                    f"Name one of {', '.join(names)}."
                )
        return asked

    def _is_needed(self, claim: bool) -> bool:
        """Whether any replica claims so: what reads metrics or weights takes all of them."""
        return not all_replicas_agree(self.strategy, not claim)

    def _callback_list(self, model: Any, watched: Sequence[Any]) -> Any:  # of the model's Keras
        kinds, callbacks = keras_of(model).callbacks, [*watched]
        if self.cluster.is_chief:  # one writer; no graph, which is large and never read
            logs, profiled = str(self.run.outputs.logs.path), self.settings.profile or 0
            callbacks.append(kinds.TensorBoard(logs, write_graph=False, profile_batch=profiled))
        how = {"epochs": self.settings.epochs, "steps": self.steps_per_epoch, "verbose": 0}
        return kinds.CallbackList(callbacks, add_history=True, model=model, **how)

    def _built_model(self, run: TrainingRun, strategy: Any) -> Any:
        return built_model(run, strategy=strategy, total_steps=self.settings.epochs * self.steps_per_epoch)

    def _built_steps(self, model: Any) -> Steps:
        return Steps(model, self.settings, self.run.data)

    @property
    def pipeline(self) -> Pipeline:
        """Of this replica."""
        return Pipeline(
            examples=self.run.data.training,
            evaluated=self.run.data.evaluation,
            settings=self.settings,
            replicas=self.strategy.num_replicas_in_sync,
        )

    def _batches_from(self, place: TrainingPosition) -> Batches:
        pipeline = self.pipeline
        training = partial(
            pipeline.training,
            first_epoch=place.epoch,
            first_step=place.step,
            steps_per_epoch=self.steps_per_epoch,
        )
        evaluation_steps = pipeline.evaluation_steps
        return Batches(
            training=distributed_batches(self.strategy, training),
            evaluation=distributed_batches(self.strategy, pipeline.evaluation) if evaluation_steps else None,
            evaluation_steps=evaluation_steps,
            spec=batch_spec(self.run.data.training),
        )

    def _load_weights(self, model: Any, scratch: Path) -> None:  # noqa: ARG002 - as below
        load_weights(model, self.run.weights, self.cluster, self.peers.board)

    def _exportable_model(self, model: Any, scratch: Path) -> Any:  # noqa: ARG002 - CoordinatedTraining writes there
        """The trained model with variables that an export can hold."""
        return model

    def _trial_report(self, initial_epoch: int, model: Any) -> Callable[..., None]:
        """What reports the metrics after a number of epochs to a trial's study, on its chief; elsewhere it does nothing.

        A checkpoint is written before each evaluation: what was reported is never trained again. Raises Unusable if the
        model has none of the metrics: before the training where their names are known, else after the first evaluation.
        """
        trial = self.trial
        if trial is None or not self.cluster.is_chief:
            return lambda *_, **__: None
        names, asked, steps = self.settings.reported_metrics, trial.asked_metric, self.steps_per_epoch
        file = MetricFile(trial.metric_file, trial_id=trial.trial_id, after_step=initial_epoch * steps)
        known = metrics_known(model)
        if known is not None and not any(metric in name for metric in known for name in names):
            missing_metrics(names, known)
        message = f"trial {trial.trial_id} reports {', '.join(names)} to {trial.metric_file}"
        is_missing = asked not in {None, *names}
        if is_missing:
            message += f", but its study optimizes {asked!r}: add that metric to --reported_metrics"
        report_event(
            "trial_reports",
            message,
            severity="WARNING" if is_missing else "INFO",
            trial_id=trial.trial_id,
            metrics=list(names),
            asked_metric=asked,
            metric_file=str(trial.metric_file),
        )

        reported: dict[str, float] = {}

        def to_study(metrics: Mapping[str, float], epochs: int, *, is_exported: bool = False) -> None:
            """`is_exported`: these are the exported model's, which are reported last if they are others."""
            in_logs = [name.removeprefix(EVALUATED) for name in metrics if name.startswith(EVALUATED)]
            if in_logs and not file.last_step and (missing := missing_metrics(names, in_logs)):
                report_event(
                    "metrics_missing",
                    f"trial {trial.trial_id} cannot report {', '.join(missing)}: the model has {', '.join(in_logs)}",
                    severity="WARNING",
                    trial_id=trial.trial_id,
                    metrics=missing,
                )
            evaluated = evaluated_metrics(metrics, names)
            if not is_exported or evaluated != reported:
                file.report(evaluated, step=epochs * steps + is_exported)
            reported.update(evaluated)

        return to_study

    def _report_start(self, initial_epoch: int, step: int) -> None:
        facts, weights = self.facts, self.run.weights
        because = f" ({weights.because})" if weights.because else ""
        starts = "starts"
        if initial_epoch or step:
            starts = f"continues after epoch {initial_epoch}" + (f" and {step} steps" if step else "")
        report_event(
            "train_started",
            f"{self.cluster.replica} {starts}: {facts['epochs']} epochs of {facts['steps_per_epoch']} steps, "
            f"{facts['strategy']} over {facts['replicas_in_sync']}, weights {weights.label}{because}",
            dataset=self.run.data.name,
            initial_epoch=initial_epoch,
            initial_step=step,
            **facts,
        )
