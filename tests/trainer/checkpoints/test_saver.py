"""Saving: to the replica's own disk at once, to the bucket in the background."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.narrowing import present
from tests.trainer.survival import hold_upload
from trainer.checkpoints.files import CHIEFS_FOLDER, Checkpoint, latest
from trainer.checkpoints.upload import Uploads
from trainer.faults import Unusable
from trainer.replicas.cluster import ClusterSpec, ReplicaRole

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


class Unasked:
    """A preemption in which no SIGTERM arrives."""

    @contextmanager
    def saving(self, _: int) -> Iterator[None]:
        yield


def saver_of(root: Path, uploads: Uploads, cluster: ClusterSpec | None = None) -> Any:
    import tensorflow as tf  # not at every worker's collection

    from trainer.checkpoints.saver import Saver

    model = tf.Module()
    model.weights = tf.Variable(tf.random.uniform([1000]))
    (root / "scratch").mkdir()
    return Saver(
        model=model,
        checkpoints=root / "checkpoints",
        cluster=cluster or ClusterSpec(),
        scratch=root / "scratch",
        uploads=uploads,
        global_batch_size=8,
        trained_on={"--image_size": "32x32"},
        io_device=None,
        wait_for_steps=lambda: None,
    )


def write_empty(path: str) -> None:
    """A checkpoint of a model without weights."""
    import tensorflow as tf  # as above

    tf.train.Checkpoint(model=tf.Module()).write(path)


def save(saver: Any, epoch: int) -> None:
    saver.save(Unasked(), done=epoch, epoch=epoch, step=0)


def test_training_continues_during_an_upload_and_the_next_save_waits_for_it(tmp_path: Path) -> None:
    pipe, scratch = hold_upload(tmp_path, 1), tmp_path / "scratch"
    with Uploads() as uploads, ThreadPoolExecutor(1) as pool:
        saver = saver_of(tmp_path, uploads)
        save(saver, 1)
        assert uploads.idle_s == 0
        assert latest(tmp_path / "checkpoints") is None, "a process killed now loses this checkpoint only"
        second = pool.submit(save, saver, 2)
        while len({path.stem for path in scratch.glob("*.index")}) < 2:
            assert not second.done()
        assert sorted(path.name for path in pipe.parent.iterdir()) == [pipe.name]
        content = pipe.read_bytes()
        second.result()
        uploads.finish()
    pipe.unlink()
    pipe.write_bytes(content)
    assert sorted(path.name for path in pipe.parent.glob("*.json")) == ["ckpt-1.json", "ckpt-2.json"]
    assert present(latest(tmp_path / "checkpoints")).epoch == 2
    assert list(scratch.iterdir()) == []


def test_the_metrics_of_an_epoch_are_recorded_once_its_checkpoint_is_in_the_bucket(tmp_path: Path) -> None:
    pipe = hold_upload(tmp_path, 1)
    with Uploads() as uploads, ThreadPoolExecutor(1) as pool:
        saver = saver_of(tmp_path, uploads)
        save(saver, 1)
        noting = pool.submit(saver.note_evaluated, {"loss": 0.5})
        content = pipe.read_bytes()
        noting.result()
    pipe.unlink()
    pipe.write_bytes(content)
    assert present(latest(tmp_path / "checkpoints")).metrics == {"loss": 0.5}


def test_an_epoch_whose_checkpoint_is_refused_leaves_the_one_before_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Uploads() as uploads:
        saver = saver_of(tmp_path, uploads)
        save(saver, 1)
        saver.note_evaluated({"loss": 1.0})
        (tmp_path / "checkpoints" / CHIEFS_FOLDER / "ckpt-2.index").mkdir()
        save(saver, 2)
        saver.note_evaluated({"loss": 0.5})
    assert '"event": "checkpoint_failed"' in capsys.readouterr().out
    found = present(latest(tmp_path / "checkpoints"))
    assert (found.epoch, found.metrics) == (1, {"loss": 1.0})


def test_a_worker_keeps_no_copy(tmp_path: Path) -> None:
    with Uploads() as uploads:
        save(saver_of(tmp_path, uploads, ClusterSpec(role=ReplicaRole.WORKER)), 1)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not (tmp_path / "checkpoints").exists()


def test_a_checkpoint_of_another_run_or_of_files_that_cannot_be_read_is_refused_with_the_repair(
    tmp_path: Path,
) -> None:
    with Uploads() as uploads:
        saver = saver_of(tmp_path, uploads)
        found = Checkpoint(path=str(tmp_path / "ckpt-1"), epoch=1, step=0)
        with pytest.raises(Unusable, match="was trained with --image_size=16x16, and this run has"):
            saver.restore(replace(found, trained_on={"--image_size": "16x16"}))
        write_empty(found.path)
        with pytest.raises(Unusable, match=r"ckpt-1 belongs to a different model"):
            saver.restore(found)
        for name in ("ckpt-1.index", "ckpt-1.data-00000-of-00001"):
            (tmp_path / name).write_bytes(b"not of TensorFlow" * 99)
        with pytest.raises(
            Unusable, match=r"TensorFlow cannot read the checkpoint .*ckpt-1 \(.*Remove it, so that"
        ):
            saver.restore(found)
