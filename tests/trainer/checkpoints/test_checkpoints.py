"""The checkpoints of a run as files: which one counts, whatever a killed process left behind."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from trainer.checkpoints.files import (
    CHIEFS_FOLDER,
    Checkpoint,
    checkpoint_numbered,
    latest,
    publish_checkpoint,
    record_metrics,
    remove_backups,
    remove_older,
)
from trainer.faults import Unusable


def put(
    checkpoints: Path, scratch: Path, *, epoch: int, step: int = 0, content: bytes = b"weights"
) -> Checkpoint:
    """One checkpoint in the bucket, of two files as TensorFlow writes them."""
    scratch.mkdir(exist_ok=True)
    (scratch / "own.data-00000-of-00001").write_bytes(content * 1000)
    (scratch / "own.index").write_bytes(b"names")
    written = Checkpoint(
        path=str(scratch / "own"),
        epoch=epoch,
        step=step,
        global_batch_size=8,
        trained_on={"--image_size": "32x32"},
    )
    return publish_checkpoint(written, checkpoints)


def latest_and_damaged(checkpoints: Path) -> tuple[Checkpoint | None, list[tuple[str, str]]]:
    """The newest complete one, and path and reason of each that was skipped."""
    passed: list[tuple[str, str]] = []
    found = latest(checkpoints, damaged=lambda path, why: passed.append((path, why)))
    return found, passed


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"


@pytest.fixture
def two(checkpoints: Path, scratch: Path) -> Path:
    """The checkpoints of a run that has saved its first and its second epoch."""
    for epoch in (1, 2):
        put(checkpoints, scratch, epoch=epoch)
    return checkpoints


def epoch_of_latest(checkpoints: Path) -> int:
    return (latest(checkpoints) or pytest.fail("none left")).epoch


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


def folder_of(checkpoints: Path) -> Path:
    return checkpoints / CHIEFS_FOLDER


def test_without_a_checkpoint_there_is_none(checkpoints: Path) -> None:
    assert latest(checkpoints) is None
    folder_of(checkpoints).mkdir(parents=True)
    assert latest(checkpoints) is None


def test_the_newest_says_where_the_training_stood(checkpoints: Path, scratch: Path) -> None:
    put(checkpoints, scratch, epoch=1)
    put(checkpoints, scratch, epoch=1, step=5)
    found = latest(checkpoints)
    assert found == Checkpoint(
        path=str(folder_of(checkpoints) / "ckpt-2"),
        epoch=1,
        step=5,
        global_batch_size=8,
        metrics=None,
        trained_on={"--image_size": "32x32"},
    )
    assert found.number == 2
    assert (folder_of(checkpoints) / "checkpoint").read_text() == 'model_checkpoint_path: "ckpt-2"\n'


def test_metrics_are_added_to_a_checkpoint_that_stays_whole(checkpoints: Path, scratch: Path) -> None:
    record_metrics(put(checkpoints, scratch, epoch=3), {"loss": 0.5, "val_loss": 0.25})
    found = latest(checkpoints)
    assert found is not None
    assert found.metrics == {"loss": 0.5, "val_loss": 0.25}
    assert found.epoch == 3


@pytest.mark.parametrize("name", ["ckpt-2.json", "ckpt-2.index", "ckpt-2.data-00000-of-00001"])
@pytest.mark.parametrize("kept_bytes", [0, 3])
def test_a_half_written_checkpoint_gives_way_to_the_one_before(two: Path, name: str, kept_bytes: int) -> None:
    path = folder_of(two) / name
    path.write_bytes(path.read_bytes()[:kept_bytes])
    found, ((damaged, why),) = latest_and_damaged(two)
    assert damaged.endswith("ckpt-2")
    assert why
    assert found == checkpoint_numbered(two, 1)


def test_a_changed_byte_is_found_though_the_size_is_right(two: Path) -> None:
    assert epoch_of_latest(two) == 2
    path = folder_of(two) / "ckpt-2.data-00000-of-00001"
    content = bytearray(path.read_bytes())
    content[77] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="hash differs"):
        checkpoint_numbered(two, 2)
    assert epoch_of_latest(two) == 1


def test_a_run_on_something_else_is_refused_with_every_difference(checkpoints: Path, scratch: Path) -> None:
    found = replace(
        put(checkpoints, scratch, epoch=1), trained_on={"--dataset": "a", "--image_size": "32x32"}
    )
    found.require({"--dataset": "a", "--image_size": "32x32"})
    with pytest.raises(Unusable) as caught:
        found.require({"--dataset": "b", "--image_size": "64x64"})
    assert str(caught.value) == (
        f"The checkpoint {found.path} was trained with --dataset=a --image_size=32x32, and this run has --dataset=b "
        f"--image_size=64x64. Use the flags that the run started with, or another AIP_CHECKPOINT_DIR."
    )


def test_files_without_a_description_do_not_count(two: Path) -> None:
    (folder_of(two) / "ckpt-2.json").unlink()
    assert epoch_of_latest(two) == 1
    with pytest.raises(FileNotFoundError):
        checkpoint_numbered(two, 2)


def test_a_damaged_checkpoint_keeps_its_number(checkpoints: Path, scratch: Path) -> None:
    put(checkpoints, scratch, epoch=1)
    (folder_of(checkpoints) / "ckpt-1.json").write_text("{")
    assert put(checkpoints, scratch, epoch=1).number == 2


def described(**members: object) -> str:
    files = [{"name": "ckpt-2.index", "size": 5, "sha256": "0"}]
    counts = {"epoch": 2, "step": 0, "global_batch_size": 8}
    return json.dumps(
        {**counts, "metrics": None, "trained_on": {}, "callbacks": [], "files": files} | members
    )


@pytest.mark.parametrize(
    ("description", "why"),
    [
        ("[]", "not valid"),
        ("null", "not valid"),
        ("[" * 100_000, "not valid .RecursionError"),
        ("{}", "not valid .KeyError: 'epoch'"),
        (described().replace('"epoch": 2', '"epoch": 1e999'), "not valid .TypeError"),
        (described(step=-1), "'step': -1"),
        (described(metrics="good"), "not valid"),
        (described(metrics={"loss": "low"}), "not valid .ValueError: .* 'low'"),
        (described(files=[]), "and 0 files"),
        (described(files=[{"name": "ckpt-2.x/../../ckpt-1.index", "size": 5, "sha256": "0"}]), "Invalid name"),
        (described(files=["ckpt-2.index"]), "not valid .TypeError"),
        (described(callbacks=[1]), "not valid .TypeError"),
        (described(trained_on=7), "not valid .TypeError"),
        (described() + " " * (1 << 20), "at most 1048576 are allowed"),
    ],
)  # fmt: skip
def test_a_description_of_any_content_is_named_and_the_checkpoint_before_is_used(
    two: Path, description: str, why: str
) -> None:
    (folder_of(two) / "ckpt-2.json").write_text(description)
    found, ((_, shown),) = latest_and_damaged(two)
    assert re.search(why, shown), shown
    assert found == checkpoint_numbered(two, 1)


def test_two_are_kept_and_the_last_can_be_removed(checkpoints: Path, scratch: Path) -> None:
    for epoch in range(1, 5):
        put(checkpoints, scratch, epoch=epoch)
        remove_older(checkpoints)
    names = {path.name.partition(".")[0] for path in folder_of(checkpoints).iterdir()}
    assert names == {"ckpt-3", "ckpt-4", "checkpoint"}
    remove_backups(checkpoints)
    assert list(checkpoints.iterdir()) == []


def test_checkpoints_that_this_account_may_not_read_are_refused_and_not_trained_again(
    checkpoints: Path, scratch: Path
) -> None:
    put(checkpoints, scratch, epoch=1)
    folder = checkpoints / CHIEFS_FOLDER
    before, account = folder.stat().st_mode, os.geteuid()
    folder.chmod(0)
    try:
        if account == 0:  # may read everything
            os.seteuid(65534)
        with pytest.raises(Unusable, match=r"cannot be read .* Let the account of this job read them"):
            latest(checkpoints)
    finally:
        os.seteuid(account)
        folder.chmod(before)
