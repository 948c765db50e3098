"""Backups after every epoch, so that a restarted run continues instead of beginning anew."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from trainer.cluster import Cluster

CHIEFS_FOLDER = "chief"  # where BackupAndRestore keeps and looks for backups, below its directory
EPOCH_VARIABLE = "ckpt_saved_epoch/.ATTRIBUTES/VARIABLE_VALUE"


def next_epoch(checkpoints: Path) -> int:
    """The epoch, counted from 0, at which training goes on: 0 without a backup."""
    latest = tf.train.latest_checkpoint(str(checkpoints / CHIEFS_FOLDER))
    if latest is None:
        return 0
    return int(tf.train.load_checkpoint(latest).get_tensor(EPOCH_VARIABLE)) + 1


@contextmanager
def backup_directory(checkpoints: Path, cluster: Cluster) -> Iterator[Path]:
    """The directory to give to BackupAndRestore on this replica.

    All replicas write a backup, for reading variables is a joint act, but only the chief's is kept.
    BackupAndRestore would have the others write theirs below the shared directory too, for a
    moment, through the bucket. Here they write to a directory of their own, which is removed
    at the end, and in which the chief's backups appear under the name they are read by.
    """
    checkpoints.mkdir(parents=True, exist_ok=True)
    if cluster.is_chief:
        yield checkpoints
        return
    with tempfile.TemporaryDirectory(prefix=f"trainer-{cluster.replica}-backup-") as scratch:
        (Path(scratch) / CHIEFS_FOLDER).symlink_to(checkpoints / CHIEFS_FOLDER)
        yield Path(scratch)


def remove_backups(checkpoints: Path) -> None:
    """Remove what a restart would continue from: the run is done and exported."""
    shutil.rmtree(checkpoints / CHIEFS_FOLDER, ignore_errors=True)
