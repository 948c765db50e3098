"""Where in its epochs a run goes on, and when it writes checkpoints."""

from dataclasses import dataclass

from trainer.checkpoints import Checkpoint


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a run begins or continues, counted from 0. `step` = steps per epoch: only the evaluation is left of it."""

    epoch: int = 0
    step: int = 0


def place_after(checkpoint: Checkpoint | None, *, steps_per_epoch: int, global_batch_size: int) -> Place:
    """Where the run goes on. With another number of replicas, behind the examples that were seen, not the steps."""
    if checkpoint is None:
        return Place()
    if checkpoint.step:
        step = checkpoint.step * checkpoint.global_batch_size // global_batch_size
        return Place(epoch=checkpoint.epoch, step=min(step, steps_per_epoch - 1))
    if checkpoint.metrics is None and checkpoint.epoch:
        return Place(epoch=checkpoint.epoch - 1, step=steps_per_epoch)
    return Place(epoch=checkpoint.epoch)


@dataclass(frozen=True, kw_only=True)
class Cadence:
    """When checkpoints are written within an epoch; at its end there is always one."""

    every_s: float
    every_steps: int | None

    def is_due(self, done: int) -> bool:
        """Whether every replica saves after `done` steps of the run by count."""
        return self.every_steps is not None and done % self.every_steps == 0
