"""The kernel's hints, without the rescans that would hide it if they were missing."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.waiting import wait_until
from trainstack.storage.drops.watching import Watch


class Notes:
    """Records the hints; watches the folders that they name, as a refresh does."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.hints: list[str] = []

    def hint(self, bucket: str, name: str) -> None:
        if name.endswith("/"):
            self.watch.add(bucket, name)
        self.hints.append(name)


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    (tmp_path / "bucket").mkdir()
    notes = Notes(Watch(tmp_path))
    notes.watch.add("bucket", "")
    notes.watch.start(notes.hint, lambda: None)
    yield notes
    notes.watch.stop()


def test_a_closed_a_moved_and_a_removed_file_are_each_reported(notes: Notes, tmp_path: Path) -> None:
    path = tmp_path / "bucket" / "a"
    with path.open("w") as writer:
        wait_until(lambda: notes.hints == ["a"])
        writer.write("x")
    wait_until(lambda: notes.hints == ["a"] * 2)
    path.rename(tmp_path / "bucket" / "b")
    wait_until(lambda: "b" in notes.hints)
    (tmp_path / "bucket" / "b").unlink()
    wait_until(lambda: notes.hints[-1] == "b" and len(notes.hints) >= 5)


def test_a_new_folder_is_watched_by_its_last_name_until_it_is_removed(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "bucket" / "old").mkdir()
    wait_until(lambda: notes.hints == ["old/"])
    (tmp_path / "bucket" / "old").rename(tmp_path / "bucket" / "new")
    wait_until(lambda: "new/" in notes.hints)
    (tmp_path / "bucket" / "new" / "a").write_text("x")
    wait_until(lambda: "new/a" in notes.hints)
    assert "old/a" not in notes.hints
    before = notes.hints.count("new/")
    shutil.rmtree(tmp_path / "bucket" / "new")
    wait_until(lambda: notes.hints.count("new/") > before)


def test_watching_a_folder_that_is_not_there_or_is_a_file_by_now_is_harmless(
    notes: Notes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bucket" / "file").write_text("x")
    for bucket, folder in (("bucket", "file/"), ("bucket", "missing/"), ("missing", "")):
        notes.watch.add(bucket, folder)
    assert caplog.messages == []
