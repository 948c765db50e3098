"""The epochs of one run: steps, checkpoint, evaluation, from wherever an earlier attempt stopped.

Keras' `fit` is not used: it cannot start after an epoch's last step with only the evaluation left, and a
callback cannot stop all replicas at the same step. The functions called here are those that `fit` calls.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.checkpoints import Cadence, Position
from trainer.preemption import Preemption
from trainer.reporting import EVALUATED, numbers
from trainer.saver import Saver


@dataclass(frozen=True, kw_only=True)
class Batches:
    """The distributed data sets from the starting position; `evaluation_steps` is 0 without an `evaluation`."""

    training: Any
    evaluation: Any | None
    evaluation_steps: int


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What training needs besides the starting position."""

    model: Any  # tf.keras.Model
    batches: Batches
    epochs: int
    steps_per_epoch: int
    callbacks: Any  # tf.keras.callbacks.CallbackList
    saver: Saver
    preemption: Preemption
    cadence: Cadence
    is_chief: bool

    def run(self, place: Position, metrics: Mapping[str, float]) -> dict[str, float]:
        """The last epoch's metrics; `metrics` are those of the epoch before `place`.

        Raises:
            tf.errors.OpError: another replica is gone.
        """
        with self.model.distribute_strategy.scope():
            if place.epoch >= self.epochs:
                return dict(metrics) or self._evaluated()
            return self._epochs_from(place)

    def _epochs_from(self, place: Position) -> dict[str, float]:
        model, reached = self.model, dict[str, float]()
        step_function, batches = model.make_train_function(), iter(self.batches.training)
        self.callbacks.on_train_begin()
        for epoch in range(place.epoch, self.epochs):
            first = place.step if epoch == place.epoch else 0
            if not first:
                model.reset_metrics()
            self.callbacks.on_epoch_begin(epoch)
            for step in range(first, self.steps_per_epoch):
                self.callbacks.on_train_batch_begin(step)
                logs = step_function(batches)
                self.callbacks.on_train_batch_end(step, logs)
                self._save_when_due(epoch, step + 1)
            reached = numbers(model.get_metrics_result())
            reached |= self._evaluated()
            self.saver.finish_upload()  # what is reported is never trained again
            self.callbacks.on_epoch_end(epoch, dict(reached))
            self.saver.note_evaluated(reached)
        self.callbacks.on_train_end(dict(reached))
        return reached

    def _evaluated(self) -> dict[str, float]:
        if self.batches.evaluation is None:
            return {}
        found = self.model.evaluate(
            self.batches.evaluation,
            steps=self.batches.evaluation_steps,
            callbacks=self.callbacks,
            verbose=0,
            return_dict=True,
        )
        return {EVALUATED + name: value for name, value in numbers(found).items()}

    def _save_when_due(self, epoch: int, step: int) -> None:
        done = epoch * self.steps_per_epoch + step
        if step == self.steps_per_epoch:
            self.saver.save(self.preemption, done=done, epoch=epoch + 1, step=0)
            return
        is_late = self.is_chief and self.saver.age_s >= self.cadence.every_s
        if self.preemption.is_agreed(done, propose=is_late) or self.cadence.is_due(done):
            self.saver.save(self.preemption, done=done, epoch=epoch, step=step)
