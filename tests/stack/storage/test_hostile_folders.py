"""Folders of a bucket that cost a job nothing and would cost the stack much."""

import asyncio
import base64
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.stack.waiting import in_time, wait_until
from trainstack.http import serving
from trainstack.storage import Storage
from trainstack.storage.drops.scanner import DropScanner
from trainstack.storage.drops.threads import THREADS_EACH, BucketThreads
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.folder import Folder
from trainstack.storage.objects.preconditions import Insertion, Preconditions
from trainstack.storage.objects.records import BucketRecord
from trainstack.storage.objects.staging import HOLES_HASHED_MAX_BYTES, Digest, Staged, digest_of
from trainstack.storage.store import ObjectStore

PIECES = st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 20_000)), max_size=4)


@pytest.fixture
def bucket_store(tmp_path: Path) -> Iterator[ObjectStore]:
    """A store with an empty `bucket`."""
    store = ObjectStore(tmp_path)
    store.catalog.put_bucket(BucketRecord(name="bucket", project="p", created_us=1, fields={}))
    (store.buckets_path / "bucket").mkdir()
    yield store
    store.close()


def digest_of_file(path: Path) -> Digest:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found = digest_of(descriptor, lambda: True)
    finally:
        os.close(descriptor)
    assert found is not None
    return found


@given(pieces=PIECES)
def test_the_digest_of_a_file_with_holes_is_that_of_its_bytes(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[tuple[bytes, int]]
) -> None:
    path = tmp_path_factory.mktemp("sparse") / "file"
    with path.open("wb") as file:
        for data, hole in pieces:
            file.write(data)
            file.truncate(file.seek(hole, os.SEEK_CUR))
    content = path.read_bytes()
    found = digest_of_file(path)
    assert found.size == len(content)
    assert base64.b64decode(found.md5) == hashlib.md5(content, usedforsecurity=False).digest()
    assert int.from_bytes(base64.b64decode(found.crc32c), "big") == google_crc32c.value(content)


def test_terabytes_of_holes_are_not_read_and_have_no_md5(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.truncate(4 * 1024**4)
        file.seek(1024**4)
        file.write(b"x")
    found = digest_of_file(tmp_path / "file")
    assert (found.size, found.md5) == (4 * 1024**4, "")
    assert found.size > HOLES_HASHED_MAX_BYTES


def test_a_digest_ends_when_it_is_no_longer_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with (tmp_path / "file").open("rb") as file:
        assert digest_of(file.fileno(), lambda: False) is None


def make_deep(folder: Path, depth: int) -> None:
    """Folders in each other, deeper than any object can be."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def test_folders_deeper_than_any_objects_name_are_not_entered(bucket_store: ObjectStore) -> None:
    store = bucket_store
    scanner, entered = DropScanner(store), list[str]()
    scanner.before_listing = lambda _, folder: entered.append(folder)
    make_deep(store.buckets_path / "bucket", 700)
    (store.buckets_path / "bucket" / "d" / "a").touch()
    scanner.refresh("bucket")
    assert max(map(len, entered)) <= 1023
    assert len(entered) == 512
    assert store.find("bucket", "d/a") is not None


def test_more_folders_or_entries_than_are_listed_are_refused_with_the_limit(
    bucket_store: ObjectStore,
) -> None:
    store = bucket_store
    for number in range(5):
        (store.buckets_path / "bucket" / f"d{number}").mkdir()
    with pytest.raises(RefusedError, match=r"more than 5 folders below ''\. Name a longer prefix") as refused:
        DropScanner(store, folders_max=5).refresh("bucket")
    assert refused.value.code == 400
    DropScanner(store, folders_max=6).refresh("bucket")
    with pytest.raises(RefusedError, match="more than 4 entries"):
        Folder(store.buckets_path / "bucket").list("", entries_max=4)


@in_time
async def test_listings_of_one_bucket_delay_no_other_and_equal_ones_share_a_scan(tmp_path: Path) -> None:
    """One bucket's scans do not end before the others have answered."""
    storage, may_go_on, entered = Storage(dir=tmp_path), threading.Event(), list[str]()

    def enter(bucket: str, _: str) -> None:
        entered.append(bucket)
        if bucket == "slow":
            assert may_go_on.wait(60)

    async with serving(storage) as url, httpx.AsyncClient(base_url=url, timeout=60) as client:
        for bucket in ("slow", "quick"):
            await client.post("/storage/v1/b?project=p", json={"name": bucket})
            (tmp_path / "buckets" / bucket).mkdir(exist_ok=True)
        storage.scanner.before_listing = enter
        slow = [asyncio.create_task(client.get("/storage/v1/b/slow/o")) for _ in range(20)]
        (tmp_path / "buckets" / "quick" / "a").touch()
        answer = await client.get("/storage/v1/b/quick/o")
        assert [each["name"] for each in answer.json()["items"]] == ["a"]
        assert not any(task.done() for task in slow)
        may_go_on.set()
        assert {(await task).status_code for task in slow} == {200}
    assert entered.count("slow") <= THREADS_EACH + 2


class Recorder(DropScanner):
    """Notes its calls, and begins when it may."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store)
        self.may_begin, self.asked = threading.Event(), list[str]()
        self.has_all = threading.Event()

    def look(self, bucket: str, name: str, *, reread: bool = False) -> bool:
        assert self.may_begin.wait(60)
        self.asked.append(name)
        return super().look(bucket, name, reread=reread)

    def refresh(self, bucket: str, prefix: str = "") -> None:
        super().refresh(bucket, prefix)
        self.has_all.set()


def test_hints_beyond_the_limit_become_one_scan_that_sees_files_rewritten_in_place(
    bucket_store: ObjectStore,
) -> None:
    scanner, folder = Recorder(bucket_store), bucket_store.buckets_path / "bucket"
    hints_max = 3
    files = range((THREADS_EACH + 1) * hints_max + 1)  # each thread may take as many hints as are kept
    for number in files:
        (folder / f"{number}").write_text("first")
    scanner.may_begin.set()
    eventually_settled(scanner)
    scanner.may_begin.clear()
    scanner.has_all.clear()
    threads = BucketThreads(scanner, hints_max=hints_max)
    for number in files:
        with (folder / f"{number}").open("r+") as file:
            file.write("other")
        threads.hint("bucket", f"{number}")
    scanner.may_begin.set()
    assert scanner.has_all.wait(60)
    threads.close()
    known = bucket_store.catalog.plain_in_folder("bucket", "")
    assert known == {f"{number}": Folder(folder).fingerprint(f"{number}") for number in files}


def test_only_what_another_process_does_to_a_file_needs_a_look(bucket_store: ObjectStore) -> None:
    insertion = Insertion(bucket="bucket", name="a", content_type="", fields={}, conditions=Preconditions())
    with Staged(bucket_store.uploads_path) as staged:
        staged.write(b"own")
        bucket_store.put(staged, insertion)
    assert bucket_store.is_own_change("bucket", "a")
    (bucket_store.buckets_path / "bucket" / "a").write_bytes(b"another")
    assert not bucket_store.is_own_change("bucket", "a")
    assert not bucket_store.is_own_change("bucket", "b")


def eventually_settled(scanner: DropScanner) -> None:
    """Refresh until the folder counts as unchanged: its files are older than a tick of the clock."""

    def is_settled() -> bool:
        listed = list[str]()
        scanner.before_listing = lambda _, folder: listed.append(folder)
        scanner.look_again("bucket")
        scanner.refresh("bucket")
        return not listed

    wait_until(is_settled)
