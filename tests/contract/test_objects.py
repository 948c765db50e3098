"""One suite for every object store: in memory, and Cloud Storage's client against the emulator."""

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.contract.proxy import Proxy, ProxyFault
from tests.contract.world import World
from tests.narrowing import instance_of
from trainmaster.orchestrator.adapters.gcs import GcsObjects
from trainmaster.orchestrator.core.completion.locations import ModelLocation
from trainmaster.orchestrator.core.errors import (
    AccessDenied,
    GenerationMoved,
    ObjectGone,
    ObjectTooLarge,
    ServiceFailed,
)
from trainmaster.orchestrator.core.sizes import MIB
from trainmaster.orchestrator.ports.objects import Listed, Objects
from trainmaster.orchestrator.stores.inbox import Models
from trainmaster.orchestrator.stores.ledger import Ledger

GIB = 1024 * MIB

NOW = "2026-03-01T12:00:00.000Z"


@pytest.mark.parametrize("content", [b"", b"12", b"1234"])
def test_an_object_of_at_most_the_limit_is_read_with_its_generation(
    objects: Objects, bucket: str, content: bytes
) -> None:
    generation = objects.write(bucket, "a/b c?.json", content, if_generation=None)
    stored = objects.read(bucket, "a/b c?.json", max_bytes=4)
    assert (stored.content, stored.generation) == (content, generation)


def test_an_absent_object_and_an_overwritten_generation_are_gone(objects: Objects, bucket: str) -> None:
    first = objects.write(bucket, "name", b"1", if_generation=None)
    second = objects.write(bucket, "name", b"2", if_generation=None)
    assert second > first
    for name, generation in (("nothing", None), ("name", first)):
        with pytest.raises(ObjectGone):
            objects.read(bucket, name, generation, max_bytes=MIB)
    assert objects.read(bucket, "name", second, max_bytes=MIB).content == b"2"


def test_a_write_that_expects_nothing_or_an_old_generation_changes_nothing(
    objects: Objects, bucket: str
) -> None:
    first = objects.write(bucket, "name", b"1", if_generation=0)
    objects.write(bucket, "name", b"2", if_generation=first)
    for expected in (0, first):
        with pytest.raises(GenerationMoved):
            objects.write(bucket, "name", b"3", if_generation=expected)
    assert objects.read(bucket, "name", max_bytes=MIB).content == b"2"


def test_an_object_beyond_the_limit_is_not_read_and_is_named(objects: Objects, bucket: str) -> None:
    generation = objects.write(bucket, "name", b"12345", if_generation=None)
    for wanted in (None, generation):
        with pytest.raises(ObjectTooLarge, match=f"gs://{bucket}/name has more than 4 bytes"):
            objects.read(bucket, "name", wanted, max_bytes=4)


def test_of_many_creators_at_once_one_succeeds(objects: Objects, bucket: str) -> None:
    def create(number: int) -> bool:
        try:
            objects.write(bucket, "name", str(number).encode(), if_generation=0)
        except GenerationMoved:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(16))) == 1


def test_a_deleted_object_is_gone_and_may_be_deleted_again(objects: Objects, bucket: str) -> None:
    objects.write(bucket, "name", b"1", if_generation=0)
    objects.delete(bucket, "name")
    objects.delete(bucket, "name")
    with pytest.raises(ObjectGone):
        objects.read(bucket, "name", max_bytes=MIB)
    objects.write(bucket, "name", b"2", if_generation=0)


def test_a_copy_has_the_bytes_of_that_generation_and_replaces_nothing(objects: Objects, bucket: str) -> None:
    generation = objects.write(bucket, "a b/m.pt", b"weights", if_generation=None)
    copied = instance_of(Listed, objects.copy((bucket, "a b/m.pt", generation), bucket, "copies/m.pt"))
    assert copied == objects.describe(bucket, "copies/m.pt")
    source = objects.describe(bucket, "a b/m.pt")
    assert (copied.size_bytes, copied.crc32c, copied.md5) == (7, source.crc32c, source.md5)
    assert objects.read(bucket, "copies/m.pt", max_bytes=7).content == b"weights"
    with pytest.raises(GenerationMoved):
        objects.copy((bucket, "a b/m.pt", generation), bucket, "copies/m.pt")


def test_a_generation_that_was_replaced_or_deleted_cannot_be_copied(objects: Objects, bucket: str) -> None:
    generation = objects.write(bucket, "m.pt", b"weights", if_generation=None)
    objects.write(bucket, "m.pt", b"hostile", if_generation=None)
    for source in ((bucket, "m.pt", generation), (bucket, "missing", 1)):
        with pytest.raises(ObjectGone):
            objects.copy(source, bucket, "copy")
    assert list(objects.listing(bucket, "copy")) == []


@contextmanager
def answered_by(
    handler: type[BaseHTTPRequestHandler], monkeypatch: pytest.MonkeyPatch
) -> Iterator[GcsObjects]:
    """The adapter, before a server whose answers the handler writes."""
    monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        objects = GcsObjects("my-project")
        try:
            yield objects
        finally:
            objects._client.close()
            server.shutdown()
            thread.join()


class LongRewrites(BaseHTTPRequestHandler):
    """Answers as Cloud Storage does about a large object in another location: the first call is not the last."""

    queries: ClassVar[list[dict[str, list[str]]]] = []

    def do_POST(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.queries.append(query)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer: dict[str, object] = {"totalBytesRewritten": "1", "objectSize": "2", "done": False}
        resource = {"name": "m.pt", "generation": "9", "size": "2", "crc32c": "AAAAAA==", "timeCreated": NOW}
        done = "rewriteToken" in query
        answer |= {"done": True, "resource": resource} if done else {"rewriteToken": "to-be-continued"}
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def test_a_long_copy_is_continued_with_the_services_token(monkeypatch: pytest.MonkeyPatch) -> None:
    LongRewrites.queries.clear()
    with answered_by(LongRewrites, monkeypatch) as objects:
        first = objects.copy(("models", "m.pt", 7), "champions", "m.pt")
        assert first == "to-be-continued"
        second = objects.copy(("models", "m.pt", 7), "champions", "m.pt", token=first)
    assert isinstance(second, Listed)
    assert (second.generation, second.size_bytes) == (9, 2)
    for query in LongRewrites.queries:
        assert (query["sourceGeneration"], query["ifGenerationMatch"]) == (["7"], ["0"])
    assert [query.get("rewriteToken") for query in LongRewrites.queries] == [None, ["to-be-continued"]]


def test_a_copy_to_a_missing_bucket_is_a_service_failure(
    gcs: GcsObjects, new_bucket: Callable[[], str]
) -> None:
    bucket = new_bucket()
    generation = gcs.write(bucket, "m.pt", b"weights", if_generation=None)
    with pytest.raises(ServiceFailed, match=r"copy to gs://never-made/m\.pt"):
        gcs.copy((bucket, "m.pt", generation), "never-made", "m.pt")


def test_a_listing_has_the_prefix_in_order_with_sizes(objects: Objects, bucket: str) -> None:
    names = ("active/b", "active/a", "runs/a.json")
    generation = {name: objects.write(bucket, name, b"123", if_generation=None) for name in names}
    listed = list(objects.listing(bucket, "active/"))
    assert [(each.name, each.size_bytes) for each in listed] == [("active/a", 3), ("active/b", 3)]
    assert [each.generation for each in listed] == [generation[each.name] for each in listed]
    assert all(each.created_at.tzinfo is not None for each in listed)
    assert [each.name for each in objects.listing(bucket, "active/", "active/a")] == ["active/b"]


def test_an_object_is_described_as_a_listing_shows_it(objects: Objects, bucket: str) -> None:
    old = objects.write(bucket, "a b/c.json", b"123", if_generation=0, metadata={"state": "x"})
    (listed,) = objects.listing(bucket, "a b/")
    assert objects.describe(bucket, "a b/c.json", old) == objects.describe(bucket, "a b/c.json") == listed
    new = objects.write(bucket, "a b/c.json", b"1234", if_generation=old)
    assert objects.describe(bucket, "a b/c.json").generation == new
    for name, generation in (("a b/c.json", old), ("missing", None)):
        with pytest.raises(ObjectGone):
            objects.describe(bucket, name, generation)


def test_the_ledger_behaves_alike_over_every_store(world: World, objects: Objects, bucket: str) -> None:
    incoming = world.drop_and_launch()
    record = world.record(incoming.run_id)
    ledger = Ledger(objects, bucket)
    assert ledger.find(record.run_id) is None
    held = ledger.create(record)
    found = ledger.find(record.run_id)
    assert found == held
    ledger.mark_active(record.run_id)
    ledger.mark_active(record.run_id)
    assert [marker.run_id for marker in ledger.active()[0]] == [record.run_id]
    ledger.unmark(record.run_id)
    assert list(ledger.active()[0]) == []


def test_a_write_whose_answer_was_lost_still_counts_as_ours(
    world: World, gcs: GcsObjects, new_bucket: Callable[[], str], storage_proxy: Proxy
) -> None:
    """The client repeats it, and is then refused by its own first write."""
    incoming = world.drop_and_launch()
    record = world.record(incoming.run_id)
    ledger = Ledger(gcs, new_bucket())
    lost = ProxyFault(on="POST /upload/", lose_answer=True)
    storage_proxy.faults.append(lost)
    held = ledger.create(record)
    assert storage_proxy.injected == [lost]
    assert ledger.find(record.run_id) == held


def test_the_client_retries_transient_errors(
    gcs: GcsObjects, new_bucket: Callable[[], str], storage_proxy: Proxy
) -> None:
    bucket = new_bucket()
    storage_proxy.faults.append(ProxyFault(on="POST /upload/", status=503))
    gcs.write(bucket, "name", b"1", if_generation=0)
    assert len(storage_proxy.injected) == 1
    assert gcs.read(bucket, "name", max_bytes=MIB).content == b"1"


@pytest.mark.parametrize("status", [400, 403])
def test_a_refusal_is_a_failure_of_the_service_that_names_the_object(
    gcs: GcsObjects, new_bucket: Callable[[], str], storage_proxy: Proxy, status: int
) -> None:
    bucket = new_bucket()
    storage_proxy.faults.append(ProxyFault(on="GET /download/", status=status, message="not yours"))
    with pytest.raises(ServiceFailed, match=f"read gs://{bucket}/name") as failure:
        gcs.read(bucket, "name", max_bytes=MIB)
    assert failure.value.retryable
    assert len(storage_proxy.injected) == 1


def test_a_missing_bucket_is_not_taken_for_a_missing_object(gcs: GcsObjects) -> None:
    with pytest.raises(ServiceFailed, match="write gs://never-made/name"):
        gcs.write("never-made", "name", b"1", if_generation=0)
    with pytest.raises(ObjectGone):
        list(gcs.listing("never-made", "active/"))
    (looked,) = Models(gcs).look([ModelLocation(uri="gs://never-made/model/")])
    assert looked.files == ()


def test_a_place_that_the_request_names_and_the_account_may_not_read_says_which_grant_is_missing(
    gcs: GcsObjects, new_bucket: Callable[[], str], storage_proxy: Proxy
) -> None:
    bucket = new_bucket()
    for is_named in (True, False):
        storage_proxy.faults.append(
            ProxyFault(on=f"GET /storage/v1/b/{bucket}/o", status=403, message="not yours")
        )
        place = ModelLocation(uri=f"gs://{bucket}/model/", is_named=is_named)
        if is_named:
            (looked,) = Models(gcs).look([place])
            assert "not yours" in looked.denied
            assert f"grant roles/storage.objectViewer on gs://{bucket}" in looked.denied
        else:
            with pytest.raises(AccessDenied):
                Models(gcs).look([place])
    assert len(storage_proxy.injected) == 2


def test_a_refused_connection_is_a_failure_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    monkeypatch.setattr("trainmaster.orchestrator.adapters.gcs.RETRY_S", 0.2)
    with pytest.raises(ServiceFailed):
        GcsObjects("p").read("bucket", "name", max_bytes=MIB)


def test_a_compressed_object_is_read_as_it_is_stored(gcs: GcsObjects, new_bucket: Callable[[], str]) -> None:
    """A small compressed object must not expand to any size in a function's memory."""
    bucket, content = new_bucket(), gzip.compress(b"x" * 10_000_000)
    blob = gcs._client.bucket(bucket).blob("bomb.yaml")
    blob.content_encoding = "gzip"
    blob.upload_from_string(content)
    assert gcs.read(bucket, "bomb.yaml", max_bytes=MIB).content == content


class _Huge(BaseHTTPRequestHandler):
    """Serves any object as one of 1 GiB, and counts what it could send."""

    protocol_version = "HTTP/1.1"
    sent: ClassVar[list[int]] = []

    def do_GET(self) -> None:  # the base class looks for this name
        self.send_response(200)
        self.send_header("Content-Length", str(GIB))
        self.send_header("X-Goog-Generation", "7")
        self.end_headers()
        with suppress(ConnectionError):
            for _ in range(GIB // MIB):
                self.wfile.write(bytes(MIB))
                self.sent.append(MIB)
        self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        """Do not log."""


def test_the_read_of_an_object_of_a_gigabyte_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond it only what the sockets' buffers hold is transferred: a function has 512 MiB."""
    _Huge.sent.clear()
    with answered_by(_Huge, monkeypatch) as objects, pytest.raises(ObjectTooLarge):
        objects.read("bucket", "templates/huge.yaml", max_bytes=MIB)
    assert sum(_Huge.sent) < GIB // 16


def test_a_listing_has_the_custom_metadata(objects: Objects, bucket: str) -> None:
    objects.write(bucket, "a/1", b"", if_generation=None, metadata={"quota_class": "x", "odd": "ä, b"})
    objects.write(bucket, "a/2", b"", if_generation=None)
    found = list(objects.listing(bucket, "a/"))
    assert [dict(each.metadata) for each in found] == [{"quota_class": "x", "odd": "ä, b"}, {}]


def test_only_the_generation_that_was_meant_is_deleted(objects: Objects, bucket: str) -> None:
    first = objects.write(bucket, "name", b"1", if_generation=0)
    second = objects.write(bucket, "name", b"2", if_generation=first)
    with pytest.raises(GenerationMoved):
        objects.delete(bucket, "name", if_generation=first)
    assert objects.read(bucket, "name", max_bytes=MIB).content == b"2"
    objects.delete(bucket, "name", if_generation=second)
    objects.delete(bucket, "name", if_generation=second)
    with pytest.raises(ObjectGone):
        objects.read(bucket, "name", max_bytes=MIB)
