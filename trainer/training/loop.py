"""The epochs of one run: steps, checkpoint, evaluation, from wherever an earlier attempt stopped.

Keras' `fit` is not used: it cannot start after an epoch's last step with only the evaluation left, and a
callback cannot stop all replicas at the same step.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainer.checkpoints.files import Checkpoint, TrainingPosition
from trainer.checkpoints.saver import Saver
from trainer.devices.strategy import all_replicas_agree
from trainer.events import report_event
from trainer.faults import Diverged
from trainer.replicas.preemption import Preemption
from trainer.training.callbacks import KeptState, finished_epochs_at_best
from trainer.training.keras_models import optimizer_digest, variables_digest
from trainer.training.metric_file import EVALUATED
from trainer.training.model import fitting
from trainer.training.reporting import Progress
from trainer.training.steps import Steps

_open: list[Any] = []
"""The last run's batches. Closing those of two replicas takes 14 s without any work (TensorFlow 2.21), and a run ends soon."""


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

    Attributes:
        to_study: reports the metrics after a number of epochs.
        best: what says which epoch is exported; None for the last one.
        checkpoint_of: of a number of finished epochs, the checkpoint that their evaluation saw, the same for all replicas.
        reads_each: callbacks of some replica get the metrics after every step.
        watches: callbacks or the optimizer may change weights and learning rate after an epoch, which is saved then.
    """

    steps: Steps
    batches: Batches
    steps_per_epoch: int
    callbacks: Any  # tf.keras.callbacks.CallbackList
    kept: KeptState
    saver: Saver
    preemption: Preemption
    progress: Progress
    to_study: Callable[[dict[str, float], int], None]
    best: Any | None
    checkpoint_of: Callable[[int], Checkpoint | None]
    reads_each: bool
    watches: bool

    def run(self, place: TrainingPosition, continued: Checkpoint | None) -> dict[str, float]:
        """The metrics of the model as it is then: trained, with the weights that are to be exported.

        `continued` is the checkpoint that was restored.

        Raises:
            Diverged: the loss, or a weight where a checkpoint is due, is not finite. It is not saved.
            tf.errors.OpError: another replica is gone.
        """
        model = self.steps.model
        with model.distribute_strategy.scope():
            model.stop_training = False
            self._call_again(continued, self.callbacks.on_train_begin)
            if lost := self.kept.begin():
                report_event(
                    "callbacks_forgotten",
                    f"what callbacks knew in {', '.join(lost)} is lost: a checkpoint keeps numbers, texts, lists and "
                    f"dictionaries of them, small arrays and variables",
                    severity="WARNING",
                    attributes=lost,
                )
            if place.epoch < self.steps.settings.epochs:
                return self._end_training(*self._epochs_from(place, continued))
            metrics = dict(continued.metrics or {}) if continued else {}
            if not metrics:
                return self._end_training(self._evaluation_metrics(self.callbacks), self._weights())
            is_evaluated = continued is not None and continued.of_epoch > 0
            return self._end_training(metrics, self._weights() if is_evaluated else "")

    def _call_again(self, continued: Checkpoint | None, hook: Callable[..., object], *arguments: int) -> None:
        """Call a hook that the run had passed when its checkpoint was written, and put back what it changes."""
        before = self._weights(), self._numbers()
        hook(*arguments)
        is_kept = not self.watches or before == (self._weights(), self._numbers())
        if continued is not None and not self._agree(is_kept):
            self.saver.restore(continued)

    def _epochs_from(
        self, place: TrainingPosition, continued: Checkpoint | None
    ) -> tuple[dict[str, float], str]:
        """The last epoch's metrics, and the digest of the weights that they belong to."""
        model, reached, weights = self.steps.model, dict[str, float](), ""
        batches = iter(self.batches.training)
        _open[:] = [batches]
        for epoch in range(place.epoch, self.steps.settings.epochs):
            first = place.step if epoch == place.epoch else 0
            if first:
                self._call_again(continued, self.callbacks.on_epoch_begin, epoch)
                self.kept.restore()
            else:
                model.reset_metrics()
                self.callbacks.on_epoch_begin(epoch)
            self._train_epoch(epoch, first, batches)
            is_saved = model.stop_training
            reached, _ = self.steps.read_metrics()
            weights, numbers = self._weights(), self._numbers()
            is_last = epoch + 1 == self.steps.settings.epochs or model.stop_training
            if is_last or (epoch + 1) % self.steps.settings.validation_freq == 0:
                reached |= self._evaluation_metrics(self.callbacks)
            self.saver.uploads.finish()  # what is reported is never trained again
            self.progress.report_epoch(reached)
            self.to_study(reached, epoch + 1)
            self.callbacks.on_epoch_end(epoch, dict(reached))
            is_kept = (weights, numbers) == (self._weights(), self._numbers())
            if (model.stop_training and not is_saved) or (self.watches and not self._agree(is_kept)):
                self._save_checkpoint(epoch, self.steps_per_epoch, metrics=reached)
            self.saver.note_evaluated(reached, self.kept.changed_state())
            if model.stop_training:
                break
        return reached, weights

    def _end_training(self, metrics: dict[str, float], weights: str) -> dict[str, float]:
        """The metrics after what follows the epochs; `weights` is the digest of those that `metrics` belong to."""
        model = self.steps.model
        # An optimizer's averages become the weights, as in `fit`.
        getattr(model.optimizer, "finalize_variable_values", list)(model.trainable_variables)
        self.callbacks.on_train_end(dict(metrics))
        if self.best is not None:
            epoch = finished_epochs_at_best(self.best)
            best = self.checkpoint_of(epoch) if epoch else None
            if best is not None and best.metrics is not None:
                self.saver.restore(best)
                report_event(
                    "best_epoch",
                    f"the weights of epoch {epoch} are exported, the best by {self.best.monitor}",
                    epoch=epoch,
                )
                return dict(best.metrics)
            report_event(
                "best_epoch_missing",
                f"no checkpoint of the best epoch by {self.best.monitor} is there: the last epoch's weights are exported",
                severity="WARNING",
            )
        if self.watches and not self._agree(weights == self._weights()):
            metrics |= self._evaluation_metrics(type(self.callbacks)())  # theirs have ended
        return metrics

    def _agree(self, claim: bool) -> bool:
        return all_replicas_agree(self.steps.model.distribute_strategy, claim)

    def _weights(self) -> str:
        """A digest of the weights; empty where nothing but steps changes them."""
        return variables_digest(self.steps.model.weights) if self.watches else ""

    def _numbers(self) -> str:
        """A digest of the optimizer's single numbers: the learning rate, the count of steps."""
        return optimizer_digest(self.steps.model.optimizer) if self.watches else ""

    def _train_epoch(self, epoch: int, first: int, batches: Any) -> None:
        """The steps of an epoch from step `first`, and the checkpoints among and after them."""
        step = first
        self.progress.begin(epoch + 1, step)
        while step < self.steps_per_epoch:
            before, at_once = step, self.steps.settings.steps_per_execution
            step = min(step - step % at_once + at_once, self.steps_per_epoch)
            self.callbacks.on_train_batch_begin(before)
            logs: dict[str, float] = {}
            with fitting(self.batches.spec):
                self.steps.train(batches, step - before)
                if self.reads_each or self.progress.is_due(step):
                    logs = self._finite_metrics(epoch, step)
                    self.progress.report_step(step, logs)
            self.callbacks.on_train_batch_end(step - 1, logs)
            self._save_when_due(epoch, before, step)
            if self.steps.model.stop_training:
                break

    def _finite_metrics(self, epoch: int, step: int) -> dict[str, float]:
        """The metrics of the epoch so far. Raises Diverged if its mean loss is not finite."""
        metrics, mean_step_s = self.steps.read_metrics(self.progress.step_s)
        self.progress.note_reading(step, mean_step_s)
        if not math.isfinite(loss := metrics.get("loss", 0.0)):
            raise Diverged(f"the loss is {loss} after step {step} of epoch {epoch + 1}")
        return metrics

    def _evaluation_metrics(self, callbacks: Any) -> dict[str, float]:
        if self.batches.evaluation is None:
            return {}
        with fitting(self.batches.spec):
            metrics = self.steps.evaluate(
                self.batches.evaluation,
                self.batches.evaluation_steps,
                callbacks,
                reads_each=self.reads_each,
            )
        return {EVALUATED + name: value for name, value in metrics.items()}

    def _save_when_due(self, epoch: int, before: int, step: int) -> None:
        """Save at an epoch's end, where steps since `before` reached a checkpoint's place, or where replicas agreed."""
        if step == self.steps_per_epoch or self.steps.model.stop_training:
            self._require_finite(epoch, step)
            self._save_checkpoint(epoch, self.steps_per_epoch, of_epoch=epoch + 1)
            return
        done = epoch * self.steps_per_epoch + step
        is_late = (
            self.saver.cluster.is_chief
            and self.saver.uploads.idle_s >= self.steps.settings.checkpoint_every_s
        )
        is_agreed = self.preemption.is_agreed(done, propose=is_late)
        every = self.steps.settings.checkpoint_steps
        if is_agreed or (every and done // every > (done - step + before) // every):
            self._require_finite(epoch, step)
            self._save_checkpoint(epoch, step)

    def _require_finite(self, epoch: int, step: int) -> None:
        """Raises Diverged if the state after this step must not be saved."""
        self.steps.finish()
        self._finite_metrics(epoch, step)
        if not self.steps.has_finite_weights():
            raise Diverged(f"a weight is not finite after step {step} of epoch {epoch + 1}")

    def _save_checkpoint(self, epoch: int, step: int, **evaluated: Any) -> None:
        """Save after `step` steps of an epoch; once training was stopped, as the end of the last epoch."""
        done = epoch * self.steps_per_epoch + step
        if step == self.steps_per_epoch:
            epoch, step = self.steps.settings.epochs if self.steps.model.stop_training else epoch + 1, 0
        self.saver.save(
            self.preemption,
            done=done,
            epoch=epoch,
            step=step,
            callbacks=self.kept.changed_state(),
            **evaluated,
        )
