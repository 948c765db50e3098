"""Checkpoints in the run's bucket: which are complete, which is newest, how one is published, where a run continues.

    chief/ckpt-7.data-00000-of-00001   TensorFlow's two files, read with
    chief/ckpt-7.index                 tf.train.Checkpoint(model=model).restore("…/chief/ckpt-7")
    chief/ckpt-7.json                  the training's position, and size and hash of the two files: written after them
    chief/checkpoint                   what tf.train.latest_checkpoint reads: written last

A bucket mounted with Cloud Storage FUSE has no locks and no atomic rename, and a killed process may
leave a truncated file (https://cloud.google.com/storage/docs/cloud-storage-fuse/overview).
A file's name therefore proves nothing: a checkpoint is complete if its description can be parsed and matches the
files. Two are kept, so that there is always one to fall back to, and that of the best epoch, if the run exports that.
Nothing here needs TensorFlow.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from operator import index
from pathlib import Path
from typing import Any

from trainer.faults import Unusable
from trainer.storage import write_whole

CHIEFS_FOLDER = "chief"
STATE_FILE = "checkpoint"  # TensorFlow's name for it
KEPT = 2
COPIED_BYTES = 8 << 20
DESCRIPTION = re.compile(r"ckpt-(\d{1,9})\.json", re.ASCII)
DESCRIPTION_BYTES = 1 << 20
COUNTS = ("epoch", "step", "global_batch_size")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A checkpoint. `path` is what tf.train.Checkpoint.restore takes.

    Attributes:
        epoch: finished epochs.
        step: steps done within the next epoch.
        global_batch_size: examples per step; with `step` it gives the examples that were seen.
        metrics: of the last finished epoch, with its evaluation; None if the epoch is not evaluated yet.
        of_epoch: the epoch, counted from 1, whose evaluation is of these weights; 0 within an epoch, and where callbacks
            changed them afterwards.
        ends_again: callbacks changed variables after that evaluation, and a newer checkpoint has these: a run that
            continues from this one evaluates once more, and calls them.
        trained_on: the flags, by name, that must not change in a run.
        callbacks: what trainer.training.callbacks.KeptState keeps of them.
        files: name, size in bytes and SHA-256 of each of TensorFlow's files, as in the description.
    """

    path: str
    epoch: int
    step: int
    global_batch_size: int = 1
    metrics: Mapping[str, float] | None = None
    of_epoch: int = 0
    ends_again: bool = False
    trained_on: Mapping[str, str] = field(default_factory=dict)
    callbacks: tuple[Mapping[str, Any], ...] = ()
    files: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)

    @property
    def number(self) -> int:
        """Counts the run's checkpoints; the newest has the highest."""
        return int(self.path.rpartition("-")[2])

    def require(self, trained_on: Mapping[str, str]) -> None:
        """Check that it was trained on the same.

        Raises:
            Unusable: it was not. Weights may fit all the same, so that training would silently continue on something else.
        """
        differing = [name for name, value in self.trained_on.items() if trained_on.get(name, value) != value]
        if differing:
            before, now = (
                " ".join(f"{name}={values[name]}" for name in differing)
                for values in (self.trained_on, trained_on)
            )
            raise Unusable(
                f"The checkpoint {self.path} was trained with {before}, and this run has {now}. Use the flags that the "
                f"run started with, or another AIP_CHECKPOINT_DIR."
            )


@dataclass(frozen=True, kw_only=True)
class TrainingPosition:
    """Where a run starts or continues, counted from 0. `step` = steps per epoch: only the epoch's evaluation is left."""

    epoch: int = 0
    step: int = 0


def position_after(
    checkpoint: Checkpoint | None, *, steps_per_epoch: int, global_batch_size: int
) -> TrainingPosition:
    """Where the run continues: after the examples that were seen, which are other steps if the batch size changed.

    A batch of which some were seen is left out, so that no example of an epoch is trained on twice.
    """
    if checkpoint is None:
        return TrainingPosition()
    if checkpoint.step:
        step = -(-checkpoint.step * checkpoint.global_batch_size // global_batch_size)
        return TrainingPosition(epoch=checkpoint.epoch, step=min(step, steps_per_epoch))
    if (checkpoint.metrics is None or checkpoint.ends_again) and checkpoint.epoch:
        return TrainingPosition(epoch=checkpoint.epoch - 1, step=steps_per_epoch)
    return TrainingPosition(epoch=checkpoint.epoch)


def latest(
    checkpoints: Path, *, of_epoch: int = 0, damaged: Callable[[str, str], object] = lambda *_: None
) -> Checkpoint | None:
    """The newest complete checkpoint below AIP_CHECKPOINT_DIR, or None.

    `of_epoch`: the newest with the weights that the evaluation after so many epochs saw. `damaged` is called with the
    path of each newer one that cannot be used, and why. Safe to call while another process writes there. A file is
    hashed again only when it changes.

    Raises:
        Unusable: this account may not read it: a fresh start would repeat everything.
    """
    folder = checkpoints / CHIEFS_FOLDER
    try:
        numbers = _numbers_of_epochs(folder, {of_epoch}) if of_epoch else _used_numbers(folder)
        for number in sorted(numbers, reverse=True):
            try:
                return checkpoint_numbered(checkpoints, number)
            except PermissionError:
                raise
            except (OSError, ValueError) as error:
                damaged(str(folder / f"ckpt-{number}"), str(error))
    except PermissionError as error:
        raise Unusable(
            f"The checkpoints in {folder} cannot be read ({error}). Let the account of this job read them, or use another "
            f"AIP_CHECKPOINT_DIR."
        ) from error
    return None


def checkpoint_numbered(checkpoints: Path, number: int) -> Checkpoint:
    """The checkpoint of that number.

    Raises:
        OSError: it does not exist, or not yet: mounted buckets show other machines' files with a delay.
        ValueError: it is not complete.
    """
    checkpoint = _read_description(checkpoints / CHIEFS_FOLDER / f"ckpt-{number}")
    for entry in checkpoint.files:
        path = Path(checkpoint.path).with_name(entry["name"])
        status = path.stat()
        if status.st_size != entry["size"]:
            raise ValueError(f"{path.name} has {status.st_size} bytes, expected {entry['size']}")
        if _sha256_of(path, status.st_size, status.st_mtime_ns) != entry["sha256"]:
            raise ValueError(f"{path.name} has changed since it was written: its hash differs")
    return checkpoint


def publish_checkpoint(written: Checkpoint, checkpoints: Path) -> Checkpoint:
    """Copy the files that tf.train.Checkpoint.write left at the path of `written` into the bucket, as the newest.

    Only for the chief. A crash at any point leaves the previous checkpoint as the newest. Reads nothing back: through
    a mounted bucket that would be a download of everything just uploaded, in the seconds that a SIGTERM leaves.
    """
    folder = checkpoints / CHIEFS_FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    source, prefix = Path(written.path), folder / f"ckpt-{max(_used_numbers(folder), default=0) + 1}"
    files = tuple(
        _copy_file(path, prefix.with_name(prefix.name + path.name.removeprefix(source.name)))
        for path in sorted(source.parent.glob(f"{source.name}.*"))
    )
    if not files:
        raise FileNotFoundError(f"TensorFlow's files are gone: {source}.*")
    published = replace(written, path=str(prefix), files=files)
    _write_description(published)
    write_whole(folder / STATE_FILE, f'model_checkpoint_path: "{prefix.name}"\n')
    return published


def record_metrics(
    checkpoint: Checkpoint,
    metrics: Mapping[str, float],
    callbacks: Sequence[Mapping[str, Any]] = (),
    *,
    ends_again: bool = False,
) -> Checkpoint:
    """Record that the epoch of `checkpoint` is evaluated, so that a restart does not evaluate it again."""
    evaluated = replace(checkpoint, metrics=dict(metrics), callbacks=tuple(callbacks), ends_again=ends_again)
    _write_description(evaluated)
    return evaluated


def remove_older(checkpoints: Path, epochs: Collection[int] = ()) -> None:
    """Remove all but the newest KEPT and those of these epochs, each one's description before its other files."""
    folder = checkpoints / CHIEFS_FOLDER
    older = sorted(_used_numbers(folder))[:-KEPT]
    for number in set(older) - _numbers_of_epochs(folder, epochs):
        (folder / f"ckpt-{number}.json").unlink(missing_ok=True)
        for path in folder.glob(f"ckpt-{number}.*"):
            path.unlink(missing_ok=True)


def has_any(checkpoints: Path) -> bool:
    """Whether a checkpoint is left, complete or not."""
    return bool(_used_numbers(checkpoints / CHIEFS_FOLDER))


def remove_backups(checkpoints: Path) -> None:
    """Remove the checkpoints that a restart would continue from: the run is exported."""
    shutil.rmtree(checkpoints / CHIEFS_FOLDER, ignore_errors=True)


def _used_numbers(folder: Path) -> set[int]:
    """The numbers of all descriptions, damaged ones included, so that no number is used twice."""
    if not folder.is_dir():
        return set()
    return {int(match[1]) for path in folder.iterdir() if (match := DESCRIPTION.fullmatch(path.name))}


def _numbers_of_epochs(folder: Path, epochs: Collection[int]) -> set[int]:
    """The numbers of the checkpoints with the evaluated weights of these epochs; their files are not looked at."""
    found = set()
    for number in _used_numbers(folder) if epochs else ():
        with suppress(OSError, ValueError):
            if _read_description(folder / f"ckpt-{number}").of_epoch in epochs:
                found.add(number)
    return found


def _write_description(checkpoint: Checkpoint) -> None:
    document = {name: value for name, value in asdict(checkpoint).items() if name != "path"}
    write_whole(Path(f"{checkpoint.path}.json"), json.dumps(document) + "\n")


def _read_description(prefix: Path) -> Checkpoint:
    """What the description says; the files are not looked at.

    Raises:
        OSError: there is no description.
        ValueError: it is not one that `publish_checkpoint` writes.
    """
    path = prefix.with_name(f"{prefix.name}.json")
    if (size := path.stat().st_size) > DESCRIPTION_BYTES:
        raise ValueError(f"its description has {size} bytes, at most {DESCRIPTION_BYTES} are allowed")
    try:
        document = json.loads(path.read_bytes())
        counts, metrics = {name: index(document[name]) for name in COUNTS}, document["metrics"]
        entries = [{name: entry[name] for name in ("name", "size", "sha256")} for entry in document["files"]]
        checkpoint = Checkpoint(
            path=str(prefix),
            **counts,
            metrics=None if metrics is None else {name: float(metrics[name]) for name in metrics},
            of_epoch=index(document.get("of_epoch", 0)),  # checkpoints of release 0.1.0 have none
            ends_again=bool(document.get("ends_again")),
            trained_on=dict(document["trained_on"]),
            callbacks=tuple(map(dict, document["callbacks"])),
            files=tuple(entries),
        )
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"its description is not valid ({type(error).__name__}: {error})") from error
    if min(counts.values()) < 0 or not entries:
        raise ValueError(f"its description has {counts} and {len(entries)} files")
    return checkpoint


def _copy_file(source: Path, target: Path) -> dict[str, object]:
    """Copy in one sequential pass, as a mounted bucket requires; the name, size and hash of the copy."""
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as reading, target.open("wb") as writing:
        while chunk := reading.read(COPIED_BYTES):
            digest.update(chunk)
            size += writing.write(chunk)
    return {"name": target.name, "size": size, "sha256": digest.hexdigest()}


@lru_cache(maxsize=16)
def _sha256_of(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - size and time tell a changed file
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
