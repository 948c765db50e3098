import sqlite3
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import httpx
import psutil
import pytest

from tests.stack.services import alone
from tests.stack.waiting import wait_until
from trainstack.storage import serve

from .conftest import client_of


@pytest.mark.slow
def test_a_kill_loses_no_acknowledged_object_and_no_notification(tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}
    with alone("storage", tmp_path) as (running, url):
        with client_of(url) as client:
            bucket = client.create_bucket("bucket")
            bucket.notification(
                topic_name="uploads",
                topic_project="project-1",
                payload_format="JSON_API_V1",
                event_types=["OBJECT_FINALIZE"],
            ).create()
        threads = [threading.Thread(target=_write, args=(url, writer, acknowledged)) for writer in range(4)]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(acknowledged) >= 200)
        running.kill()
        for thread in threads:
            thread.join()

    told: set[tuple[str, str]] = set()

    def publish(_topic: str, messages: Sequence[tuple[bytes, Mapping[str, str]]]) -> None:
        told.update((attributes["objectId"], attributes["objectGeneration"]) for _, attributes in messages)

    with serve(tmp_path, publish=publish) as url, client_of(url) as client:
        found = {blob.name: blob for blob in client.list_blobs("bucket")}
        for name, generation in acknowledged.items():
            assert found[name].generation == generation
            assert found[name].metadata == {"writer": name.partition("-")[0]}
            assert found[name].size == len(name)
        wanted = {(name, str(blob.generation)) for name, blob in found.items()}
        wait_until(lambda: told >= wanted)
    assert not list((tmp_path / "uploads").iterdir())


def _write(url: str, writer: int, acknowledged: dict[str, int]) -> None:
    """Create objects until the emulator is gone."""
    with httpx.Client(base_url=url, timeout=60) as http:
        for number in range(100_000):
            name = f"{writer}-{'n' * (number % 7)}{number}"
            body = (
                f'--b\r\n\r\n{{"name": "{name}", "metadata": {{"writer": "{writer}"}}}}\r\n'
                f"--b\r\n\r\n{name}\r\n--b--\r\n"
            )
            try:
                answer = http.post(
                    "/upload/storage/v1/b/bucket/o?uploadType=multipart&ifGenerationMatch=0",
                    content=body,
                    headers={"content-type": "multipart/related; boundary=b"},
                )
            except httpx.TransportError:
                return
            acknowledged[name] = int(answer.json()["generation"])


@pytest.mark.parametrize("name", ["a/b", "kept//aside"])
def test_a_start_finishes_an_upload_killed_between_record_and_placement(tmp_path: Path, name: str) -> None:
    with serve(tmp_path) as url, client_of(url) as client:
        blob = client.create_bucket("bucket").blob(name)
        blob.metadata = {"k": "v"}
        blob.upload_from_string("content", content_type="text/x")
    with closing(sqlite3.connect(tmp_path / "objects.db")) as db:
        ((token, aside),) = db.execute("SELECT token, aside FROM objects")
    placed = tmp_path / "aside" / aside if aside else tmp_path / "buckets" / "bucket" / name
    placed.rename(tmp_path / "uploads" / token)
    (tmp_path / "uploads" / "left-by-a-cut-off-upload").write_text("half")

    with serve(tmp_path) as url, client_of(url) as client:
        found = client.bucket("bucket").get_blob(name)
        assert (found.generation, found.metadata, found.content_type) == (
            blob.generation,
            {"k": "v"},
            "text/x",
        )
        assert found.download_as_bytes() == b"content"
    assert placed.exists()
    assert not list((tmp_path / "uploads").iterdir())


def test_bytes_kept_aside_for_no_object_are_removed_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside" / "orphan").write_text("x")
    with serve(tmp_path):
        assert not (tmp_path / "aside" / "orphan").exists()


def test_generations_grow_across_restarts_even_if_the_clock_is_behind(tmp_path: Path) -> None:
    with serve(tmp_path) as url, client_of(url) as client:
        client.create_bucket("bucket").blob("a").upload_from_string("x")
    ahead = 4_000_000_000_000_000
    with closing(sqlite3.connect(tmp_path / "objects.db")) as db, db:
        db.execute("UPDATE generations SET last = ?", (ahead,))
    with serve(tmp_path) as url, client_of(url) as client:
        blob = client.bucket("bucket").blob("a")
        blob.upload_from_string("y")
        assert blob.generation == ahead + 1


def test_memory_stays_flat_while_a_large_object_comes_and_goes(tmp_path: Path) -> None:
    megabyte, count = b"\0" * (1 << 20), 64
    with alone("storage", tmp_path) as (running, url), httpx.Client(base_url=url, timeout=60) as http:
        http.post("/storage/v1/b?project=p", json={"name": "bucket"})
        before = psutil.Process(running.pid).memory_info().rss
        peaks = []
        answer = http.post(
            "/upload/storage/v1/b/bucket/o?uploadType=media&name=big",
            content=(megabyte for _ in range(count)),
        )
        assert answer.json()["size"] == str(count << 20)
        peaks.append(psutil.Process(running.pid).memory_info().rss)
        with http.stream("GET", "/download/storage/v1/b/bucket/o/big?alt=media") as download:
            assert sum(len(chunk) for chunk in download.iter_bytes()) == count << 20
        peaks.append(psutil.Process(running.pid).memory_info().rss)
    assert max(peaks) - before < 16 << 20


def test_the_process_ends_cleanly_when_asked(tmp_path: Path) -> None:
    with alone("storage", tmp_path) as (running, url):
        assert httpx.get(f"{url}/storage/v1/b?project=p", timeout=60).status_code == 200
        running.terminate()
        assert running.wait(timeout=60) == 0
