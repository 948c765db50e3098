"""The newest of the chief's checkpoints, as somebody sees it who only reads."""

from dataclasses import dataclass
from pathlib import Path

import tensorflow as tf

from trainer.checkpoints import CHIEFS_FOLDER, EPOCH_VARIABLE


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """`epoch` epochs are finished, and `step` steps of the next one."""

    path: str
    epoch: int
    step: int


def latest(checkpoints: Path) -> Checkpoint | None:
    """The newest checkpoint, or None: there is none, or it was removed while it was looked at."""
    path = tf.train.latest_checkpoint(str(checkpoints / CHIEFS_FOLDER))
    if path is None:
        return None
    try:
        epoch = int(tf.train.load_checkpoint(path).get_tensor(EPOCH_VARIABLE)) + 1
    except (tf.errors.OpError, ValueError):
        return None
    return Checkpoint(path=path, epoch=epoch, step=0)
