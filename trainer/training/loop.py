"""The epochs of one run: steps, checkpoint, evaluation, from wherever an earlier attempt stopped.

Keras' `fit` is not used: it cannot start after an epoch's last step with only the evaluation left, and a
callback cannot stop all replicas at the same step.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.checkpoints.files import Kept, TrainingPosition
from trainer.checkpoints.saver import Saver
from trainer.replicas.preemption import Preemption
from trainer.training.metric_file import EVALUATED
from trainer.training.model import fitting
from trainer.training.reporting import plain_numbers
from trainer.training.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Batches:
    """The distributed data sets from the starting position; `evaluation_steps` is 0 without an `evaluation`.

    `spec` is the nest of tf.TensorSpec of one replica's batch.
    """

    training: Any
    evaluation: Any | None
    evaluation_steps: int
    spec: Any


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What training needs besides the starting position.

    At most the settings' `steps_per_execution` steps run between two calls of callbacks, checkpoints and preemptions.
    A callback that sets the model's `stop_training` ends the run after the steps that run, or after the epoch, as in
    `fit`; all replicas must set it at the same place. A restarted run does not continue the training then.
    """

    steps: Steps
    batches: Batches
    steps_per_epoch: int
    callbacks: Any  # tf.keras.callbacks.CallbackList
    kept: Kept
    saver: Saver
    preemption: Preemption

    def run(self, place: TrainingPosition, metrics: Mapping[str, float]) -> dict[str, float]:
        """The last epoch's metrics; `metrics` are those of the epoch before `place`.

        Raises:
            tf.errors.OpError: another replica is gone.
        """
        with self.steps.model.distribute_strategy.scope():
            if place.epoch >= self.steps.settings.epochs:
                return dict(metrics) or self._evaluation_metrics()
            return self._epochs_from(place)

    def _epochs_from(self, place: TrainingPosition) -> dict[str, float]:
        model, reached = self.steps.model, dict[str, float]()
        batches = iter(self.batches.training)
        model.stop_training = False
        self.callbacks.on_train_begin()
        self.kept.begin()
        for epoch in range(place.epoch, self.steps.settings.epochs):
            first = place.step if epoch == place.epoch else 0
            if not first:
                model.reset_metrics()
            self.callbacks.on_epoch_begin(epoch)
            self._train_epoch(epoch, first, batches)
            is_saved = model.stop_training
            reached = plain_numbers(model.get_metrics_result())
            reached |= self._evaluation_metrics()
            self.saver.uploads.finish()  # what is reported is never trained again
            self.callbacks.on_epoch_end(epoch, dict(reached))
            if model.stop_training and not is_saved:
                self._save_checkpoint(epoch, self.steps_per_epoch)
            self.saver.note_evaluated(reached, self.kept.changed_numbers())
            if model.stop_training:
                break
        self.callbacks.on_train_end(dict(reached))
        return reached

    def _train_epoch(self, epoch: int, first: int, batches: Any) -> None:
        """The steps of an epoch from step `first`, and the checkpoints among and after them."""
        step = first
        while step < self.steps_per_epoch:
            before, at_once = step, self.steps.settings.steps_per_execution
            step = min(step - step % at_once + at_once, self.steps_per_epoch)
            self.callbacks.on_train_batch_begin(before)
            with fitting(self.batches.spec):
                logs = self.steps.train(batches, step - before)
            self.callbacks.on_train_batch_end(step - 1, logs)
            self._save_when_due(epoch, before, step)
            if self.steps.model.stop_training:
                break

    def _evaluation_metrics(self) -> dict[str, float]:
        if self.batches.evaluation is None:
            return {}
        with fitting(self.batches.spec):
            metrics = self.steps.evaluate(
                self.batches.evaluation, self.batches.evaluation_steps, self.callbacks
            )
        return {EVALUATED + name: value for name, value in metrics.items()}

    def _save_when_due(self, epoch: int, before: int, step: int) -> None:
        """Save at an epoch's end, where steps since `before` reached a checkpoint's place, or where replicas agreed."""
        if step == self.steps_per_epoch or self.steps.model.stop_training:
            self._save_checkpoint(epoch, self.steps_per_epoch)
            return
        done = epoch * self.steps_per_epoch + step
        is_late = (
            self.saver.cluster.is_chief
            and self.saver.uploads.idle_s >= self.steps.settings.checkpoint_every_s
        )
        is_agreed = self.preemption.is_agreed(done, propose=is_late)
        every = self.steps.settings.checkpoint_steps
        if is_agreed or (every and done // every > (done - step + before) // every):
            self._save_checkpoint(epoch, step)

    def _save_checkpoint(self, epoch: int, step: int) -> None:
        """Save after `step` steps of an epoch; once training was stopped, as the end of the last epoch."""
        done = epoch * self.steps_per_epoch + step
        if step == self.steps_per_epoch:
            epoch, step = self.steps.settings.epochs if self.steps.model.stop_training else epoch + 1, 0
        self.saver.save(
            self.preemption, done=done, epoch=epoch, step=step, callbacks=self.kept.changed_numbers()
        )
