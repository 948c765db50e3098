"""Noncurrent and soft-deleted generations, and names that objects move to."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from google.api_core import exceptions
from google.cloud import storage

from tests.stack.storage import changes
from trainstack.storage import serve
from trainstack.storage.objects.catalog import Catalog
from trainstack.storage.objects.records import BucketRecord

from .conftest import Named, client_of

KEPT = {"versioning": {"enabled": True}}
SOFT = {"softDeletePolicy": {"retentionDurationSeconds": "604800"}}
NAMES = pytest.mark.parametrize("name", ["a/b", "kept//aside"])


@pytest.fixture
def made(named: Named, request: pytest.FixtureRequest) -> storage.Bucket:
    """A bucket with the fields that the test's parameter names."""
    return named(**request.param)


def put(bucket: storage.Bucket, name: str, content: str) -> int:
    blob = bucket.blob(name)
    blob.upload_from_string(content)
    return int(blob.generation)


def listed(bucket: storage.Bucket, **query: object) -> list[tuple[str, int]]:
    return [(blob.name, blob.generation) for blob in bucket.list_blobs(**query)]


@NAMES
@pytest.mark.parametrize("made", [KEPT], indirect=True)
def test_overwritten_and_deleted_generations_stay_where_versions_are_kept(
    made: storage.Bucket, name: str
) -> None:
    first, second = put(made, name, "1"), put(made, name, "22")
    made.blob(name).delete()
    assert listed(made) == []
    assert listed(made, versions=True) == [(name, first), (name, second)]
    assert [made.blob(name, generation=old).download_as_bytes() for old in (first, second)] == [b"1", b"22"]

    old = made.get_blob(name, generation=first)
    assert old.time_deleted is not None
    old.metadata = {"k": "v"}
    old.patch(if_metageneration_match=1)
    assert made.copy_blob(old, made, name, source_generation=first).download_as_bytes() == b"1"
    with pytest.raises(exceptions.PreconditionFailed):
        old.delete(if_generation_match=second)
    old.delete()
    assert made.get_blob(name, generation=first) is None
    with pytest.raises(exceptions.Conflict):
        made.blob(name).bucket.delete()


@pytest.mark.parametrize("made", [KEPT], indirect=True)
def test_pages_of_generations_follow_each_other(made: storage.Bucket) -> None:
    expected = sorted(
        (name, put(made, name, str(number))) for number in range(4) for name in ("a", "a/b", "c")
    )
    pages = made.list_blobs(versions=True, page_size=3).pages
    assert [(blob.name, blob.generation) for page in pages for blob in page] == expected
    found = made.list_blobs(versions=True, delimiter="/", prefix="a")
    assert [blob.name for blob in found] == ["a"] * 4
    assert found.prefixes == {"a/"}


@NAMES
@pytest.mark.parametrize("made", [SOFT], indirect=True)
def test_a_soft_deleted_object_is_listed_and_restored(
    made: storage.Bucket, name: str, http: httpx.Client
) -> None:
    generation = put(made, name, "1")
    made.blob(name).delete()
    assert listed(made) == listed(made, versions=True) == []
    assert listed(made, soft_deleted=True) == [(name, generation)]
    gone = made.get_blob(name, generation=generation, soft_deleted=True)
    assert (gone.hard_delete_time - gone.soft_delete_time).total_seconds() == 604800
    assert made.get_blob(name, generation=generation) is None
    path = f"/storage/v1/b/{made.name}/o/{name.replace('/', '%2F')}?generation={generation}"
    assert http.get(f"{path}&softDeleted=true&alt=media").status_code == 400
    assert http.delete(path).status_code == 404

    restored = made.restore_blob(name, generation=generation, if_generation_match=0)
    assert restored.generation > generation
    assert (restored.metageneration, restored.soft_delete_time) == (1, None)
    assert made.blob(name).download_as_bytes() == b"1"
    made.blob(name).delete()
    made.delete()


def test_a_soft_deleted_object_is_gone_at_its_end(tmp_path: Path) -> None:
    with serve(tmp_path) as url, httpx.Client(base_url=url) as http, client_of(url) as client:
        http.post("/storage/v1/b?project=p", json={"name": "bucket", **SOFT})
        generation = put(client.bucket("bucket"), "a", "1")
        client.bucket("bucket").blob("a").delete()
    with closing(Catalog(tmp_path / "objects.db")) as catalog:
        for now_us, count in ((1, 1), (2**61, 0)):
            found = catalog.scan_generations("bucket", start="", end="", limit=9, restorable_us=now_us)
            assert len(found) == count
    with closing(sqlite3.connect(tmp_path / "objects.db")) as db, db:
        db.execute("UPDATE old_generations SET hard_delete_us = 1")
    with serve(tmp_path) as url, client_of(url) as client, pytest.raises(exceptions.NotFound):
        client.bucket("bucket").restore_blob("a", generation=generation)
    assert not list((tmp_path / "aside").iterdir())


@NAMES
@pytest.mark.parametrize("made", [{}, KEPT], indirect=True)
def test_a_moved_object_keeps_its_metadata_under_its_new_name(made: storage.Bucket, name: str) -> None:
    source = made.blob(name)
    source.metadata = {"k": "v"}
    source.upload_from_string("1", content_type="text/x")
    replaced = put(made, "to", "2")
    with pytest.raises(exceptions.PreconditionFailed):
        made.move_blob(source, "to", if_generation_match=replaced + 1)
    with pytest.raises(exceptions.PreconditionFailed):
        made.move_blob(source, "to", if_source_generation_match=replaced)
    moved = made.move_blob(source, "to", if_generation_match=replaced)
    assert (moved.metadata, moved.content_type, moved.metageneration) == ({"k": "v"}, "text/x", 1)
    assert moved.generation > replaced
    assert made.blob("to").download_as_bytes() == b"1"
    old = [("to", replaced)] if made.get_blob("to", generation=replaced) else []
    assert listed(made, versions=True) == [*old, ("to", moved.generation)]


@NAMES
@pytest.mark.parametrize("change", ["put", "delete", "move"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_start_after_a_kill_has_every_generation(
    tmp_path: Path, name: str, change: str, moment: str
) -> None:
    """The process ends just before the change's commit, or just after it."""
    with changes.opened(tmp_path) as store:
        store.catalog.put_bucket(BucketRecord(name="bucket", project="p", created_us=1, fields=KEPT))
        changes.changes_of(store, name)["first"]()
    command = [sys.executable, "-m", changes.__name__, str(tmp_path), name, change, moment]
    assert subprocess.run(command, check=False, timeout=60).returncode == 9

    wanted = {
        ("after", "put"): [(name, b"old", False), (name, b"new", True)],
        ("after", "delete"): [(name, b"old", False)],
        ("after", "move"): [("to", b"old", True)],
    }
    with changes.opened(tmp_path) as store:
        found = store.catalog.scan_generations("bucket", start="", end="", limit=9, restorable_us=0)
        described = [(each.name, os.read(store.open(each), 9), each.is_live) for each in found]
        assert described == wanted.get((moment, change), [(name, b"old", True)])
        assert all(each.fields["metadata"] == {"k": "v"} for each in found)
    assert not list((tmp_path / "uploads").iterdir())
