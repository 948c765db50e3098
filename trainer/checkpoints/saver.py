"""Checkpoints of a model in training: restored at the start by all replicas, saved by all together."""

import itertools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tensorflow as tf

from trainer.checkpoints import files
from trainer.checkpoints.files import Checkpoint, checkpoint_numbered, latest, publish_checkpoint
from trainer.checkpoints.upload import Uploads
from trainer.devices.strategy import read_alone
from trainer.events import report_event
from trainer.faults import Unusable, reason_of
from trainer.replicas.cluster import ClusterSpec
from trainer.replicas.ending import is_loss_of_peer
from trainer.replicas.peers import NoteBoard
from trainer.replicas.preemption import Preemption

APPEARS_WITHIN_S = 90.0  # Cloud Storage FUSE keeps what it knows of a folder for 60 s by default
POLL_S = 1.0


def agreed_checkpoint(
    checkpoints: Path, cluster: ClusterSpec, board: NoteBoard | None, *, of_epoch: int = 0
) -> Checkpoint | None:
    """The newest complete checkpoint that the chief sees, for every replica: to continue from, or `of_epoch` to export.

    `of_epoch` is `latest`'s. None if it was never written, or is damaged.

    Raises:
        Unusable: this replica does not see the chief's checkpoint: its directory is a different one.
    """
    name = "exports" if of_epoch else "continues"
    if board is None or cluster.is_chief:
        found = latest(checkpoints, of_epoch=of_epoch, damaged=_report_damaged)
        if board is not None:
            board.put(name, str(found.number if found else 0))
        return found
    # The chief reads the whole checkpoint first. Its loss ends this process from another thread.
    if not (number := int(board.read(name))):
        return None
    deadline = time.monotonic() + APPEARS_WITHIN_S
    while True:
        try:
            return checkpoint_numbered(checkpoints, number)
        except (OSError, ValueError) as error:
            if time.monotonic() > deadline:
                raise Unusable(
                    f"{cluster.replica} cannot read the chief's checkpoint {number} in {str(checkpoints)!r} ({error}): "
                    f"all replicas must share one directory. Set AIP_CHECKPOINT_DIR to a directory in a bucket."
                ) from error
            time.sleep(POLL_S)


def _report_damaged(path: str, why: str) -> None:
    report_event(
        "checkpoint_damaged",
        f"The checkpoint {path} is damaged and was ignored: {why}",
        severity="WARNING",
        path=path,
    )


@dataclass(kw_only=True)
class Saver:
    """Saves one model. Every replica has one, and all save at the same steps.

    Attributes:
        scratch: a local folder of this replica: TensorFlow renames files as it writes, which buckets cannot.
            It holds at most two checkpoints, one being written and one being uploaded.
        io_device: the device that reads and writes files; None leaves it to TensorFlow.
        wait_for_steps: returns when every started step is finished, so that the step of a checkpoint is known.
        metrics: saved with the model: an epoch that resumes in the middle ends with the averages of all its steps.
        best_epoch: the number of finished epochs at the best one so far, whose checkpoint is kept; 0 for none.
    """

    model: Any  # tf.keras.Model
    checkpoints: Path
    cluster: ClusterSpec
    scratch: Path
    uploads: Uploads
    global_batch_size: int
    trained_on: Mapping[str, str]
    io_device: str | None
    wait_for_steps: Callable[[], None]
    metrics: Sequence[Any] = ()
    best_epoch: Callable[[], int] = lambda: 0

    def __post_init__(self) -> None:
        self._state = tf.train.Checkpoint(model=self.model, metrics=list(self.metrics))
        self._options = tf.train.CheckpointOptions(experimental_io_device=self.io_device)
        self._prefixes = itertools.cycle(self.scratch / name for name in ("one", "other"))
        self._newest: Checkpoint | None = None
        self._evaluated: Checkpoint | None = None  # the newest whose weights are evaluated after it

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore weights, optimizer and metrics from `checkpoint`.

        Raises:
            Unusable: it belongs to a different model, was trained on something else, or TensorFlow cannot read it.
        """
        checkpoint.require(self.trained_on)
        try:
            self._state.read(checkpoint.path, self._options).assert_existing_objects_matched()
        except (AssertionError, ValueError, tf.errors.NotFoundError, tf.errors.InvalidArgumentError) as error:
            raise Unusable(
                f"The checkpoint {checkpoint.path} belongs to a different model than these flags describe "
                f"({reason_of(error)}). Use the flags that the run started with, or another AIP_CHECKPOINT_DIR."
            ) from error
        except tf.errors.OpError as error:
            if is_loss_of_peer(error):
                raise
            raise Unusable(
                f"TensorFlow cannot read the checkpoint {checkpoint.path} ({reason_of(error)}). Remove it, so that the run "
                f"continues from the one before, or use another AIP_CHECKPOINT_DIR."
            ) from error
        self._newest = checkpoint if self.cluster.is_chief else None
        self._evaluated = self._newest if checkpoint.of_epoch else None

    def save(
        self,
        preemption: Preemption,
        *,
        done: int,
        epoch: int,
        step: int,
        of_epoch: int = 0,
        metrics: Mapping[str, float] | None = None,
        callbacks: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Save the state after `done` steps, with that of the callbacks; all replicas must call this at the same step.

        The other arguments are Checkpoint's.

        Returns when the chief has what it needs of every replica; on the chief when it has written the files, too, and
        the previous upload has ended.
        If the bucket refuses the chief's files, the run loses this checkpoint and continues.
        """
        self.wait_for_steps()
        began = time.monotonic()
        written = Checkpoint(
            path=str(next(self._prefixes)),
            epoch=epoch,
            step=step,
            global_batch_size=self.global_batch_size,
            of_epoch=of_epoch,
            metrics=metrics,
            trained_on=self.trained_on,
            callbacks=tuple(callbacks),
        )
        kept = {self.best_epoch()}
        with preemption.saving(done), read_alone(self._state, tf.distribute.get_strategy()):
            if self.cluster.is_chief:
                self._state.write(written.path, self._options)
                self.uploads.start(partial(self._upload_checkpoint, written, kept, began))

    def note_evaluated(
        self, metrics: Mapping[str, float], callbacks: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """On the chief, record the metrics of the epoch that was saved last, and the state of callbacks that saw them."""
        self.uploads.finish()
        # The newest first: an older one with metrics must not become the place to continue from.
        older = self._evaluated if self._evaluated is not self._newest else None
        try:
            if self._newest is not None and not self._newest.step:
                files.record_metrics(self._newest, metrics, callbacks)
            if older is not None:
                files.record_metrics(older, metrics, older.callbacks, ends_again=True)
        except OSError as error:
            self._report_refused("The epoch's metrics could not be written to", error)

    def _upload_checkpoint(self, written: Checkpoint, kept_epochs: Collection[int], began: float) -> bool:
        """Whether the checkpoint is in the bucket."""
        self._newest = None  # so that no later epoch's metrics are recorded for an earlier one
        if written.metrics is None:
            self._evaluated = None
        try:
            self._newest = saved = publish_checkpoint(written, self.checkpoints)
            self._evaluated = saved if written.of_epoch else self._evaluated
        except (OSError, ValueError) as error:
            self._report_refused("The checkpoint could not be written to", error)
            return False
        finally:
            _remove_files(written)
        report_event(
            "checkpoint_saved",
            f"saved checkpoint {saved.number} after {saved.epoch} epochs and {saved.step} steps",
            path=saved.path,
            epoch=saved.epoch,
            step=saved.step,
            seconds=round(time.monotonic() - began, 2),
        )
        try:
            files.remove_older(self.checkpoints, kept_epochs)
        except OSError as error:
            self._report_refused("Older checkpoints could not be removed from", error)
        return True

    def _report_refused(self, what: str, error: Exception) -> None:
        report_event(
            "checkpoint_failed",
            f"{what} {self.checkpoints}: {error}",
            severity="WARNING",
        )


def _remove_files(written: Checkpoint) -> None:
    for path in Path(written.path).parent.glob(f"{Path(written.path).name}.*"):
        path.unlink(missing_ok=True)
