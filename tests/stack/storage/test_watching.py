"""The kernel's hints, without the rescans that would hide it if they were missing."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.waiting import wait_until
from trainstack.storage.drops.watching import Watch


class Notes:
    """Records the paths it receives; watches the folders it is asked to refresh, as `DropScanner` does."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.looked: list[str] = []
        self.refreshed: list[str] = []
        self.everything = 0

    def look(self, bucket: str, name: str) -> bool:
        self.looked.append(f"{bucket}/{name}")
        return True

    def refresh(self, bucket: str, prefix: str = "") -> None:
        self.watch.add(bucket, prefix)
        self.refreshed.append(f"{bucket}/{prefix}")

    def refresh_all(self) -> None:
        self.everything += 1


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Notes]:
    (tmp_path / "bucket").mkdir()
    watch = Watch(tmp_path)
    notes = Notes(watch)
    watch.add("bucket", "")
    watch.start(notes)
    yield notes
    watch.stop()


def test_a_closed_a_moved_and_a_removed_file_are_each_reported(notes: Notes, tmp_path: Path) -> None:
    path = tmp_path / "bucket" / "a"
    with path.open("w") as writer:
        wait_until(lambda: notes.looked == ["bucket/a"])
        writer.write("x")
    wait_until(lambda: notes.looked == ["bucket/a"] * 2)
    path.rename(tmp_path / "bucket" / "b")
    wait_until(lambda: "bucket/b" in notes.looked)
    (tmp_path / "bucket" / "b").unlink()
    wait_until(lambda: notes.looked[-1] == "bucket/b" and len(notes.looked) >= 5)


def test_a_new_folder_is_reported_and_watched_from_then_on(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "bucket" / "d").mkdir()
    wait_until(lambda: notes.refreshed == ["bucket/d/"])
    (tmp_path / "bucket" / "d" / "a").write_text("x")
    wait_until(lambda: "bucket/d/a" in notes.looked)


def test_a_renamed_folder_is_known_by_its_new_name(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "bucket" / "old").mkdir()
    wait_until(lambda: notes.refreshed == ["bucket/old/"])
    (tmp_path / "bucket" / "old").rename(tmp_path / "bucket" / "new")
    wait_until(lambda: "bucket/new/" in notes.refreshed)
    (tmp_path / "bucket" / "new" / "a").write_text("x")
    wait_until(lambda: "bucket/new/a" in notes.looked)
    assert "bucket/old/a" not in notes.looked


def test_a_removed_watched_folder_is_reported(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "bucket" / "d").mkdir()
    wait_until(lambda: notes.refreshed == ["bucket/d/"])
    shutil.rmtree(tmp_path / "bucket" / "d")
    wait_until(lambda: len(notes.refreshed) >= 2)
    assert set(notes.refreshed) == {"bucket/d/"}


def test_watching_a_folder_that_is_not_there_or_is_a_file_by_now_is_harmless(
    notes: Notes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bucket" / "file").write_text("x")
    notes.watch.add("bucket", "file/")
    notes.watch.add("bucket", "missing/")
    notes.watch.add("missing", "")
    assert caplog.messages == []
