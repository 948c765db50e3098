import gzip

import httpx
import pytest
from google.api_core import exceptions
from google.cloud import storage


def test_an_upload_comes_back_with_its_type_metadata_and_hashes(bucket: storage.Bucket) -> None:
    blob = bucket.blob("configs/a.yaml")
    blob.metadata = {"k": "v"}
    blob.cache_control = "no-store"
    blob.upload_from_string("hello: 1", content_type="application/yaml")

    found = bucket.get_blob("configs/a.yaml")
    assert found is not None
    assert found.download_as_bytes() == b"hello: 1"
    assert (found.content_type, found.metadata, found.cache_control) == (
        "application/yaml",
        {"k": "v"},
        "no-store",
    )
    # The values the service gave for these bytes, as in the recorded exchange of the official client.
    assert (found.crc32c, found.md5_hash, found.size) == ("y9guVQ==", "Q3WcofjN9KlxPZRlbb3w8A==", 8)
    assert found.generation == blob.generation
    assert found.metageneration == 1


def test_a_media_link_is_absolute_and_percent_encoded(
    bucket: storage.Bucket, url: str, http: httpx.Client
) -> None:
    blob = bucket.blob("a dir/ü%2F?#.txt")
    blob.upload_from_string("x")
    link = blob.media_link
    assert link.startswith(f"{url}/download/storage/v1/b/{bucket.name}/o/a%20dir%2F%C3%BC%252F%3F%23.txt?")
    assert http.get(link).content == b"x"


def test_patching_merges_metadata_and_counts_metagenerations(bucket: storage.Bucket) -> None:
    blob = bucket.blob("a")
    blob.metadata = {"keep": "1", "drop": "2"}
    blob.upload_from_string("x", content_type="text/plain")
    generation = blob.generation

    blob.metadata = {"drop": None, "new": "3"}
    blob.content_type = "text/html"
    blob.patch()
    found = bucket.get_blob("a")
    assert found.metadata == {"keep": "1", "new": "3"}
    assert (found.generation, found.metageneration, found.content_type) == (generation, 2, "text/html")
    assert found.download_as_bytes() == b"x"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("bytes=0-4", (206, b"01234", "bytes 0-4/10")),
        ("bytes=7-", (206, b"789", "bytes 7-9/10")),
        ("bytes=-3", (206, b"789", "bytes 7-9/10")),
        ("bytes=-30", (206, b"0123456789", "bytes 0-9/10")),
        ("bytes=5-500", (206, b"56789", "bytes 5-9/10")),
        ("bytes=5-4", (200, b"0123456789", None)),
        ("lines=1-2", (200, b"0123456789", None)),
    ],
)
def test_a_range_of_the_bytes(
    bucket: storage.Bucket, http: httpx.Client, header: str, expected: tuple[int, bytes, str | None]
) -> None:
    bucket.blob("digits").upload_from_string("0123456789")
    answer = http.get(f"/storage/v1/b/{bucket.name}/o/digits?alt=media", headers={"range": header})
    assert (answer.status_code, answer.content, answer.headers.get("content-range")) == expected
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize(
    ("accepted", "cache_control", "is_packed"),
    [("gzip", "", True), ("identity", "", False), ("identity", "no-transform", True)],
)
def test_a_gzip_object_is_decompressed_for_clients_that_do_not_accept_gzip(
    bucket: storage.Bucket, http: httpx.Client, accepted: str, cache_control: str, is_packed: bool
) -> None:
    text = b"plain text" * 100_000
    blob = bucket.blob("a.txt")
    blob.content_encoding, blob.cache_control = "gzip", cache_control
    blob.upload_from_string(gzip.compress(text), content_type="text/plain")
    path = f"/storage/v1/b/{bucket.name}/o/a.txt?alt=media"
    headers = {"accept-encoding": accepted, **({} if is_packed else {"range": "bytes=5-9"})}
    answer = http.get(path, headers=headers)
    assert (answer.status_code, answer.content) == (200, text)
    assert answer.headers.get("content-encoding") == ("gzip" if is_packed else None)
    assert ("content-length" in answer.headers) == is_packed
    assert answer.headers["x-goog-stored-content-encoding"] == "gzip"


def test_bytes_that_are_no_gzip_come_as_they_are(bucket: storage.Bucket, http: httpx.Client) -> None:
    path = f"/upload/storage/v1/b/{bucket.name}/o?uploadType=media&name=a&contentEncoding=gzip"
    assert http.post(path, content=b"text").json()["contentEncoding"] == "gzip"
    with http.stream(
        "GET", f"/storage/v1/b/{bucket.name}/o/a?alt=media", headers={"accept-encoding": ""}
    ) as answer:
        assert b"".join(answer.iter_raw()) == b"text"


def test_an_update_replaces_what_a_patch_merges(bucket: storage.Bucket) -> None:
    blob = bucket.blob("a")
    blob.metadata, blob.cache_control = {"k": "v"}, "no-store"
    blob.upload_from_string("x", content_type="text/plain")
    blob = storage.Blob("a", bucket)
    blob.metadata = {"new": "1"}
    blob.update()
    found = bucket.get_blob("a")
    assert (found.metadata, found.cache_control, found.content_type) == ({"new": "1"}, None, None)
    assert (found.metageneration, found.size) == (2, 1)


@pytest.mark.parametrize(
    ("mask", "answer"),
    [
        ("items(name,metadata/k)", {"items": [{"name": "a", "metadata": {"k": "v"}}]}),
        ("items/name,kind", {"kind": "storage#objects", "items": [{"name": "a"}]}),
        ("items/metadata(k, x)", {"items": [{"metadata": {"k": "v"}}]}),
        ("*/name", {"kind": "storage#objects", "items": [{"name": "a"}]}),
        ("nothing", {}),
    ],
)
def test_an_answer_has_the_selected_fields_alone(
    bucket: storage.Bucket, http: httpx.Client, mask: str, answer: dict[str, object]
) -> None:
    blob = bucket.blob("a")
    blob.metadata = {"k": "v", "l": "w"}
    blob.upload_from_string("x")
    assert http.get(f"/storage/v1/b/{bucket.name}/o", params={"fields": mask}).json() == answer


@pytest.mark.parametrize(
    "mask", [",", "a(", "a)", "a(b", "a//b", "a,", "/a", "a b", "(" * 5000, "a/" * 5000, "a" * 2001]
)
def test_a_bad_selection_of_fields_is_refused(bucket: storage.Bucket, http: httpx.Client, mask: str) -> None:
    answer = http.get(f"/storage/v1/b/{bucket.name}/o", params={"fields": mask})
    assert answer.status_code == 400
    assert "Invalid field selection" in answer.json()["error"]["message"]


def test_a_copy_keeps_the_metadata_and_gets_its_own_generation(
    bucket: storage.Bucket, client: storage.Client
) -> None:
    blob = bucket.blob("a")
    blob.metadata = {"k": "v"}
    blob.upload_from_string("x", content_type="text/plain")
    other = client.create_bucket(f"{bucket.name}-other")
    copy = bucket.copy_blob(blob, other, "b/c")
    assert (copy.metadata, copy.content_type, copy.download_as_bytes()) == ({"k": "v"}, "text/plain", b"x")
    assert copy.generation != blob.generation


def test_a_rewrite_is_done_at_once_and_a_rename_removes_the_source(bucket: storage.Bucket) -> None:
    source = bucket.blob("a")
    source.upload_from_string("x" * 1000)
    token, rewritten, total = bucket.blob("b").rewrite(source)
    assert (token, rewritten, total) == (None, 1000, 1000)
    bucket.rename_blob(source, "c")
    assert sorted(blob.name for blob in bucket.list_blobs()) == ["b", "c"]


def test_a_copy_is_refused_when_its_source_has_moved_on(bucket: storage.Bucket) -> None:
    source = bucket.blob("a")
    source.upload_from_string("x")
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.copy_blob(source, bucket, "b", if_source_generation_match=source.generation + 1)
    assert not bucket.blob("b").exists()


def test_composing_concatenates_without_an_md5(bucket: storage.Bucket) -> None:
    parts = [bucket.blob(name) for name in ("p1", "p2", "p3")]
    for number, part in enumerate(parts):
        part.upload_from_string(str(number) * 3)
    whole = bucket.blob("whole")
    whole.content_type = "text/plain"
    whole.compose(parts, if_generation_match=0)
    bucket.blob("untyped").compose(parts)
    assert bucket.get_blob("untyped").content_type is None
    found = bucket.get_blob("whole")
    assert found.download_as_bytes() == b"000111222"
    assert (found.component_count, found.md5_hash, found.content_type) == (3, None, "text/plain")


def test_a_range_outside_of_the_object_is_refused_with_its_size(
    http: httpx.Client, bucket: storage.Bucket
) -> None:
    for name, size in (("empty", 0), ("digits", 10)):
        bucket.blob(name).upload_from_string("x" * size)
        for path in (f"/storage/v1/b/{bucket.name}/o/{name}?alt=media", f"/{bucket.name}/{name}"):
            answer = http.get(path, headers={"range": f"bytes={size}-99"})
            assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{size}")
    with bucket.blob("empty", chunk_size=1 << 18).open("rb") as content:
        assert content.read() == b""


def test_a_body_that_is_null_is_one_without_fields(http: httpx.Client, bucket: storage.Bucket) -> None:
    """As Google's Go clients send it, and so rclone."""
    bucket.blob("a").upload_from_string(b"x")
    path = f"/storage/v1/b/{bucket.name}/o/a/rewriteTo/b/{bucket.name}/o/b"
    assert http.post(path, content=b"null\n").status_code == 200


@pytest.mark.parametrize("key", ["contentType", "cacheControl", "contentEncoding", "contentLanguage"])
def test_a_property_that_no_header_can_carry_is_refused_and_every_other_one_is_read(
    bucket: storage.Bucket, http: httpx.Client, key: str
) -> None:
    path, upload = f"/b/{bucket.name}/o", f"/upload/storage/v1/b/{bucket.name}/o?uploadType=resumable&name=a"
    for bad in ("a\r\nx: y", "\0", "x" * 2000):
        answer = http.post(upload, json={key: bad})
        assert (answer.status_code, f"Invalid value for {key}" in answer.text) == (400, True)
    bucket.blob("a").upload_from_string("x")
    assert http.patch(f"/storage/v1{path}/a", json={key: bad}).status_code == 400
    for odd in (" lead ", "☃"):
        http.patch(f"/storage/v1{path}/a", json={key: odd}).raise_for_status()
        assert http.get(f"/download/storage/v1{path}/a", params={"alt": "media"}).read() == b"x"


def test_custom_metadata_has_a_limit(bucket: storage.Bucket) -> None:
    blob = bucket.blob("a")
    blob.metadata = {"k": "v" * 9000}
    with pytest.raises(exceptions.BadRequest, match="more than 8192 bytes"):
        blob.upload_from_string("x")
