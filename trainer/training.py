"""One training run on one replica: from settings to a trained model and its last metrics."""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.cluster import Cluster
from trainer.dataset import Dataset
from trainer.events import report
from trainer.loop import Cadence, Loop, Place, place_after
from trainer.metric_file import MetricFile
from trainer.metric_report import MetricReport
from trainer.peers import Peers
from trainer.pipeline import Pipeline
from trainer.preemption import Preemption
from trainer.reporting import ProgressReport
from trainer.saver import Saver, chosen
from trainer.settings import Settings, batch_norm_momentum, steps_per_epoch
from trainer.strategy import name_of
from trainer.trial import Trial
from trainer.weights import StartingWeights
from trainer.workloads import ModelSpec, Workload


@dataclass(frozen=True, kw_only=True)
class Trained:
    """`metrics` are the last epoch's; `initial_epoch` counts the epochs that were finished before this start."""

    model: Any  # tf.keras.Model
    metrics: dict[str, float]
    initial_epoch: int
    steps_per_epoch: int
    global_batch_size: int


@dataclass(frozen=True, kw_only=True)
class Training:
    """What `run` needs; `processors` is how many this process may keep busy.

    `trial` is None where this run is no trial of a study; of a trial the chief alone reports.
    """

    settings: Settings
    workload: Workload
    dataset: Dataset
    cluster: Cluster
    strategy: Any  # tf.distribute.Strategy
    peers: Peers
    weights: StartingWeights
    trial: Trial | None
    checkpoints: Path
    logs: Path
    processors: int

    def run(self) -> Trained:
        """Train all epochs, or what a checkpoint leaves of them, with a checkpoint and an evaluation after each.

        Every replica must call this with the same settings. Does not return where SIGTERM ends it.

        Raises:
            Unusable: the model cannot be built for this data, the checkpoint is of another model, or a trial's
                metric file cannot be written.
            tf.errors.OpError: another replica is gone; the run can be started again and continues.
        """
        settings, replicas = self.settings, self.strategy.num_replicas_in_sync
        global_batch_size = settings.batch_size * replicas
        steps = steps_per_epoch(self.dataset.train_examples, global_batch_size, settings.steps_per_epoch)
        checkpoint = chosen(self.checkpoints, self.cluster, self.peers.board)
        place = place_after(checkpoint, steps_per_epoch=steps, global_batch_size=global_batch_size)
        initial_epoch = checkpoint.epoch if checkpoint else 0
        known = dict(checkpoint.metrics or {}) if checkpoint else {}
        model = self._model(settings.epochs * steps)
        metric_report = self.metric_report(initial_epoch, steps)
        self.report_start(initial_epoch, place.step % steps, steps, global_batch_size)
        with tempfile.TemporaryDirectory(prefix=f"trainer-{self.cluster.replica}-checkpoint-") as scratch:
            saver = Saver(
                model,
                checkpoints=self.checkpoints,
                cluster=self.cluster,
                scratch=Path(scratch),
                global_batch_size=global_batch_size,
            )
            if checkpoint is not None:
                saver.restore(checkpoint)
            callbacks = [*self._callbacks(steps, global_batch_size), *metric_report]
            loop = self._loop(model, saver, place, steps, callbacks)
            is_left = place.epoch < settings.epochs
            for reporting in metric_report if is_left and known else ():
                reporting.report(known, epochs=initial_epoch)
            metrics = loop.run(place, known)
            for reporting in () if is_left else metric_report:  # only the export is left to do
                reporting.report(metrics, epochs=settings.epochs)
        return Trained(
            model=model,
            metrics=metrics,
            initial_epoch=initial_epoch,
            steps_per_epoch=steps,
            global_batch_size=global_batch_size,
        )

    def _loop(self, model: Any, saver: Saver, place: Place, steps: int, callbacks: list[Any]) -> Loop:
        settings, replicas = self.settings, self.strategy.num_replicas_in_sync
        pipeline = Pipeline(
            dataset=self.dataset,
            image_size=settings.image_size,
            batch_size=settings.batch_size,
            replicas=replicas,
            cache=settings.cache,
            seed=settings.seed,
            threads=max(2, self.processors),
        )
        training = pipeline.training(
            first_epoch=min(place.epoch, settings.epochs - 1),
            first_step=place.step,
            epochs=settings.epochs,
            steps_per_epoch=steps,
        )
        distributed = self.strategy.experimental_distribute_dataset
        evaluation = pipeline.evaluation()
        return Loop(
            model=model,
            training=distributed(training),
            evaluation=None if evaluation is None else distributed(evaluation),
            evaluation_steps=pipeline.evaluation_steps,
            epochs=settings.epochs,
            steps_per_epoch=steps,
            callbacks=tf.keras.callbacks.CallbackList(
                callbacks, model=model, epochs=settings.epochs, steps=steps
            ),
            saver=saver,
            preemption=Preemption(self.cluster, self.peers, done=place.epoch * steps + place.step),
            cadence=Cadence(every_s=settings.checkpoint_every_s, every_steps=settings.checkpoint_steps),
            is_chief=self.cluster.is_chief,
        )

    def _model(self, total_steps: int) -> Any:
        spec = ModelSpec(
            image_size=self.settings.image_size,
            classes=len(self.dataset.class_names),
            learning_rate=self.settings.learning_rate,
            hyperparameters=self.settings.hyperparameters,
            weights_path=None if self.weights.path is None else str(self.weights.path),
        )
        with self.strategy.scope():
            model = self.workload.build(spec)
            create_training_variables(model)
        momentum = batch_norm_momentum(self.settings.batch_norm_momentum, total_steps)
        for layer in model.layers:
            if isinstance(layer, tf.keras.layers.BatchNormalization):
                layer.momentum = momentum
        return model

    def _callbacks(self, steps: int, global_batch_size: int) -> list[Any]:
        callbacks = [
            ProgressReport(
                replica=self.cluster.replica,
                replicas=self.strategy.num_replicas_in_sync,
                epochs=self.settings.epochs,
                steps_per_epoch=steps,
                global_batch_size=global_batch_size,
            )
        ]
        if self.cluster.is_chief:  # one writer; the graph is left out, it is large and nobody reads it
            callbacks.append(tf.keras.callbacks.TensorBoard(str(self.logs), write_graph=False))
        return callbacks

    def metric_report(self, initial_epoch: int, steps: int) -> list[MetricReport]:
        """The callback that reports a trial's metrics, on its chief only."""
        if self.trial is None or not self.cluster.is_chief:
            return []
        names, asked = self.settings.reported_metrics, self.trial.asked_metric
        file = MetricFile(
            self.trial.metric_file, trial_id=self.trial.trial_id, after_step=initial_epoch * steps
        )
        is_missed = asked is not None and asked not in names
        repair = (
            f"; its study asks for {asked!r}: name the study's metric as one of these" if is_missed else ""
        )
        report(
            "trial_reports",
            f"trial {self.trial.trial_id} reports {', '.join(names)} to {self.trial.metric_file}{repair}",
            severity="WARNING" if is_missed else "INFO",
            replica=self.cluster.replica,
            trial_id=self.trial.trial_id,
            metrics=list(names),
            asked_metric=asked,
            metric_file=str(self.trial.metric_file),
        )
        return [MetricReport(file, names=names, steps_per_epoch=steps)]

    def report_start(self, initial_epoch: int, step: int, steps: int, global_batch_size: int) -> None:
        strategy, replicas = name_of(self.strategy), self.strategy.num_replicas_in_sync
        because = f" ({self.weights.because})" if self.weights.because else ""
        begins = "begins"
        if initial_epoch or step:
            begins = f"continues after epoch {initial_epoch}" + (f" and {step} steps" if step else "")
        report(
            "train_started",
            f"{self.cluster.replica} {begins}: {self.settings.epochs} epochs of {steps} steps, {strategy} over "
            f"{replicas}, weights {self.weights.label}{because}",
            replica=self.cluster.replica,
            strategy=strategy,
            replicas_in_sync=replicas,
            global_batch_size=global_batch_size,
            epochs=self.settings.epochs,
            steps_per_epoch=steps,
            weights=self.weights.label,
            dataset=f"{self.dataset.name}:{self.dataset.version}",
            initial_epoch=initial_epoch,
            initial_step=step,
        )


def create_training_variables(model: Any) -> None:
    """Create what the first training step would create: optimizer slots and metric variables.

    A tf.function that creates variables is traced twice, and the first trace is thrown away; with
    large models that is seconds. Must be called in the strategy's scope.
    """
    optimizer = model.optimizer
    if isinstance(optimizer, tf.keras.optimizers.legacy.Optimizer):
        optimizer._create_all_weights(model.trainable_variables)  # noqa: SLF001 - the only way in Keras 2, now frozen
    else:
        optimizer.build(model.trainable_variables)
    predictions, labels = tf.zeros([1, *model.output_shape[1:]]), tf.zeros([1], tf.int64)
    model.compiled_loss.build(predictions)
    model.compiled_metrics.build(predictions, labels)


def weights_sha256(model: Any) -> str:
    """A hash of all trainable weights: equal on replicas that kept in step."""
    digest = hashlib.sha256()
    for variable in model.trainable_variables:
        digest.update(variable.numpy().tobytes())
    return digest.hexdigest()
