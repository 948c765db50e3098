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


def test_bytes_of_no_object_are_removed_at_the_start(tmp_path: Path) -> None:
    orphans = [tmp_path / folder / "orphan" for folder in ("aside", "uploads")]
    for orphan in orphans:
        orphan.parent.mkdir()
        orphan.write_text("x")
    with serve(tmp_path):
        assert not any(orphan.exists() for orphan in orphans)


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
