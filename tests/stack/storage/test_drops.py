"""Files written into a bucket's folder by anything but the API."""

import os
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import storage

from trainstack.storage import serve

from .conftest import client_of


def names(bucket: storage.Bucket, prefix: str = "") -> list[str]:
    return [blob.name for blob in bucket.list_blobs(prefix=prefix)]


def test_a_listing_sees_files_in_folders_made_a_moment_ago(bucket: storage.Bucket, folder: Path) -> None:
    for number in range(20):
        below = folder / f"run-{number}" / "model" / "variables"
        below.mkdir(parents=True)
        (below / "data").write_text("x")
        assert names(bucket, f"run-{number}/") == [f"run-{number}/model/variables/data"]
    assert len(names(bucket)) == 20


def test_a_rewritten_file_is_a_new_generation(bucket: storage.Bucket, folder: Path) -> None:
    blob = bucket.blob("a")
    blob.upload_from_string("first")
    (folder / "a").write_text("other")
    assert [found.generation > blob.generation for found in bucket.list_blobs()] == [True]
    assert bucket.blob("a").download_as_bytes() == b"other"
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("a").upload_from_string("lost update", if_generation_match=blob.generation)


def test_a_renamed_folder_moves_its_objects_there_and_back(bucket: storage.Bucket, folder: Path) -> None:
    bucket.blob("old/deep/a").upload_from_string("x")
    (folder / "old").rename(folder / "new")
    assert names(bucket) == ["new/deep/a"]
    (folder / "new").rename(folder / "old")
    assert names(bucket) == ["old/deep/a"]


def test_a_file_counts_when_its_writer_closes_it(bucket: storage.Bucket, folder: Path) -> None:
    with (folder / "a").open("wb") as writer:
        writer.write(b"half")
        writer.flush()
        assert not bucket.blob("a").exists()
        assert names(bucket) == []
    assert bucket.blob("a").download_as_bytes() == b"half"


def test_an_object_whose_file_is_being_rewritten_cannot_be_read_just_then(
    bucket: storage.Bucket, folder: Path
) -> None:
    blob = bucket.blob("a")
    blob.upload_from_string("old")
    with (folder / "a").open("wb") as writer:
        writer.write(b"newer")
        writer.flush()
        assert bucket.get_blob("a").generation == blob.generation
        with pytest.raises(exceptions.ServiceUnavailable, match="being written"):
            bucket.blob("a").download_as_bytes(retry=None)
    assert bucket.blob("a").download_as_bytes() == b"newer"


def test_a_file_moved_in_from_elsewhere_is_an_object(
    bucket: storage.Bucket, folder: Path, directory: Path
) -> None:
    elsewhere = directory / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.json").write_text("{}")
    elsewhere.rename(folder / "in")
    assert names(bucket) == ["in/a.json"]
    assert bucket.get_blob("in/a.json").content_type == "application/json"


def test_an_object_of_the_api_is_an_ordinary_file(bucket: storage.Bucket, folder: Path) -> None:
    bucket.blob("a/b.txt").upload_from_string("x")
    assert (folder / "a" / "b.txt").read_text() == "x"
    assert not (folder / "a" / "b.txt").stat().st_mode & 0o111


def test_a_pipe_and_files_with_invalid_names_are_left_alone(bucket: storage.Bucket, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "with\nnewline").write_text("x")
    Path(os.fsdecode(os.fsencode(folder) + b"/not-utf8-\xff")).write_text("x")
    assert names(bucket) == []
    with pytest.raises(exceptions.Conflict):
        bucket.delete()


def test_changes_made_while_the_emulator_was_down_are_seen_at_its_start(tmp_path: Path) -> None:
    with serve(tmp_path) as url, client_of(url) as client:
        bucket = client.create_bucket("bucket")
        for name in ("stays", "goes", "changes"):
            bucket.blob(name).upload_from_string(name)
        kept = bucket.blob("stays")
        kept.reload()
    folder = tmp_path / "buckets" / "bucket"
    (folder / "goes").unlink()
    (folder / "changes").write_text("changed")
    (folder / "comes").write_text("new")
    with serve(tmp_path) as url, client_of(url) as client:
        found = {blob.name: blob for blob in client.list_blobs("bucket")}
        assert sorted(found) == ["changes", "comes", "stays"]
        assert found["stays"].generation == kept.generation
        assert found["changes"].download_as_bytes() == b"changed"
