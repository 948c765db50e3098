"""Checkpoints of variables that lie on parameter servers, between two steps and written by the chief."""

from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.cluster import Cluster
from trainer.parameter_server.progress import RemoteProgressReport
from trainer.preemption import Preemption
from trainer.saver import Saver

CHIEF_DEVICE = "/job:chief/replica:0/task:0/device:CPU:0"
"""Where files are read and written. Left to itself, TensorFlow would have each parameter server write what it holds
on its own machine."""


class CoordinatorSaver(Saver):
    """Saves when every step that was handed out is done, so that a checkpoint is of a known step."""

    def __init__(
        self,
        model: Any,
        *,
        checkpoints: Path,
        cluster: Cluster,
        scratch: Path,
        global_batch_size: int,
        coordinator: Any,
        progress: RemoteProgressReport,
    ) -> None:
        super().__init__(
            model,
            checkpoints=checkpoints,
            cluster=cluster,
            scratch=scratch,
            global_batch_size=global_batch_size,
        )
        self._state = ThroughChief(self._state)
        self._coordinator = coordinator
        self._progress = progress

    def save(self, preemption: Preemption, *, done: int, epoch: int, step: int) -> None:
        self._coordinator.join()
        self._progress.drain()
        super().save(preemption, done=done, epoch=epoch, step=step)


class ThroughChief:
    """A tf.train.Checkpoint whose files are read and written by the chief alone."""

    def __init__(self, state: Any) -> None:
        self._state = state
        self._options = tf.train.CheckpointOptions(experimental_io_device=CHIEF_DEVICE)

    def write(self, path: str) -> Any:
        return self._state.write(path, options=self._options)

    def read(self, path: str) -> Any:
        return self._state.read(path, options=self._options)


def copied(model: Any, local: Any, scratch: Path) -> Any:
    """`local`, a model of the same kind whose variables are the chief's own, with the values of `model`.

    A large variable lies in parts on several parameter servers, which an export cannot hold; read
    from a checkpoint it is one again.
    """
    path = ThroughChief(tf.train.Checkpoint(model=model)).write(str(scratch / "trained"))
    tf.train.Checkpoint(model=local).read(path).assert_existing_objects_matched()
    return local
