"""The XML API as object_store, python-storage's transfer_manager and signed URLs call it."""

import random
import re
from pathlib import Path

import httpx
import pytest
from google.cloud import storage
from google.cloud.storage import transfer_manager

from trainstack.storage.api.xml import MIN_PART_BYTES


def values(answer: httpx.Response, element: str) -> list[str]:
    return re.findall(f"<{element}>([^<]*)</{element}>", answer.text)


def encoded(bucket: storage.Bucket) -> str:
    """As object_store writes a bucket: https://github.com/apache/arrow-rs-object-store, src/gcp/client.rs."""
    return f"/{bucket.name}".replace("-", "%2D")


def begin(http: httpx.Client, path: str, **headers: str) -> str:
    answer = http.post(f"{path}?uploads=", headers=headers)
    assert answer.status_code == 200
    return f"{path}?uploadId={values(answer, 'UploadId')[0]}"


def completion(*parts: tuple[int, str]) -> str:
    listed = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>" for number, etag in parts
    )
    return f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>"


def test_an_object_is_put_read_and_deleted(http: httpx.Client, bucket: storage.Bucket) -> None:
    path = f"{encoded(bucket)}/d%2Fé%20x"
    headers = {"content-type": "a/b", "x-goog-meta-k": "v", "cache-control": "no-store"}
    put = http.put(path, content=b"12345", headers=headers)
    stored = bucket.get_blob("d/é x")
    assert (stored.content_type, stored.metadata, stored.cache_control) == ("a/b", {"k": "v"}, "no-store")
    assert put.headers["x-goog-generation"] == str(stored.generation)
    head = http.head(path)
    assert (head.headers["content-length"], head.headers["etag"]) == ("5", put.headers["etag"])
    assert http.get(path, headers={"range": "bytes=1-2"}).content == b"23"
    assert http.delete(path).status_code == 204
    assert values(http.get(path), "Code") == ["NoSuchKey"]


def test_a_put_keeps_its_condition_and_its_checksum(http: httpx.Client, bucket: storage.Bucket) -> None:
    path = f"/{bucket.name}/a"
    md5_of_x = {"content-md5": "ndTkYSaMgDT1yFZOFVxnpg=="}
    assert values(http.put(path, content=b"y", headers=md5_of_x), "Code") == ["BadDigest"]
    assert http.put(path, content=b"x", headers=md5_of_x).status_code == 200
    answer = http.put(path, content=b"y", headers={"x-goog-if-generation-match": "0"})
    assert (answer.status_code, values(answer, "Code")) == (412, ["PreconditionFailed"])
    assert http.get(path).content == b"x"


@pytest.mark.parametrize("version", ["2", ""])
def test_a_listing_continues_page_by_page(http: httpx.Client, bucket: storage.Bucket, version: str) -> None:
    for name in ("a", "b<&", "d/1", "d/2", "e"):
        bucket.blob(name).upload_from_string(name)
    query = {"delimiter": "/", "max-keys": "2"} | ({"list-type": "2"} if version else {})
    names: list[str] = []
    while True:
        page = http.get(f"/{bucket.name}", params=query)
        names += values(page, "Key") + values(page, "Prefix")[1:]
        if values(page, "IsTruncated") == ["false"]:
            break
        following, parameter = (
            ("NextContinuationToken", "continuation-token") if version else ("NextMarker", "marker")
        )
        query[parameter] = values(page, following)[0].replace("&lt;", "<").replace("&amp;", "&")
    assert names == ["a", "b&lt;&amp;", "e", "d/"]  # "d/" was on the page of "e"
    after = http.get(f"/{bucket.name}", params={"list-type": "2", "prefix": "d/", "start-after": "d/1"})
    assert (values(after, "Key"), values(after, "Size")) == (["d/2"], ["3"])


def test_pythons_transfer_manager_uploads_in_parts(bucket: storage.Bucket, tmp_path: Path) -> None:
    content = random.Random(1).randbytes(2 * MIN_PART_BYTES + 7)
    (tmp_path / "m.bin").write_bytes(content)
    blob = bucket.blob("m.bin")
    blob.metadata, blob.content_language = {"k": "v"}, "de"
    transfer_manager.upload_chunks_concurrently(
        str(tmp_path / "m.bin"), blob, chunk_size=MIN_PART_BYTES, worker_type=transfer_manager.THREAD
    )
    stored = bucket.get_blob("m.bin")
    assert (stored.metadata, stored.content_language, stored.md5_hash) == ({"k": "v"}, "de", None)
    assert stored.download_as_bytes() == content


def test_parts_are_joined_once_in_their_order(
    http: httpx.Client, bucket: storage.Bucket, directory: Path
) -> None:
    upload = begin(http, f"/{bucket.name}/a")
    first = b"1" * MIN_PART_BYTES
    etags = {
        number: http.put(f"{upload}&partNumber={number}", content=content).headers["etag"]
        for number, content in ((7, b"old"), (2, first), (7, b"end"))
    }
    wrong = {
        "InvalidPartOrder": completion((7, etags[7]), (2, etags[2])),
        "InvalidPart": completion((2, etags[2]), (7, etags[2])),
        "MalformedCompleteMultipartUploadRequest": completion(),
    }
    for code, body in wrong.items():
        assert values(http.post(upload, content=body), "Code") == [code]
    assert not bucket.blob("a").exists()
    body = completion((2, etags[2].replace('"', "&quot;")), (7, etags[7]))
    done, again = http.post(upload, content=body), http.post(upload, content=body)
    assert done.status_code == again.status_code == 200
    assert done.headers["x-goog-generation"] == again.headers["x-goog-generation"]
    assert bucket.blob("a").download_as_bytes() == first + b"end"
    assert not list((directory / "uploads").iterdir())


def test_small_and_damaged_parts_and_unknown_uploads_are_refused(
    http: httpx.Client, bucket: storage.Bucket
) -> None:
    upload = begin(http, f"/{bucket.name}/a")
    etags = [http.put(f"{upload}&partNumber={number}", content=b"x").headers["etag"] for number in (1, 2)]
    small = http.post(upload, content=completion((1, etags[0]), (2, etags[1])))
    assert values(small, "Code") == ["EntityTooSmall"]
    damaged = http.put(f"{upload}&partNumber=3", content=b"x", headers={"x-goog-hash": "crc32c=AAAAAA=="})
    assert values(damaged, "Code") == ["BadDigest"]
    assert values(http.put(f"{upload}&partNumber=10001", content=b"x"), "Code") == ["InvalidArgument"]
    assert values(http.put(f"{upload.replace('/a?', '/b?')}&partNumber=1"), "Code") == ["InvalidArgument"]
    assert http.delete(upload).status_code == 204
    assert values(http.put(f"{upload}&partNumber=1", content=b"x"), "Code") == ["NoSuchUpload"]


@pytest.mark.parametrize(
    ("verb", "path", "headers"),
    [
        ("GET", "/", {}),
        ("PUT", "/a-new-bucket", {}),
        ("GET", "/{}?acl", {}),
        ("GET", "/{}/a?tagging", {}),
        ("GET", "/{}/a?uploadId=1", {}),
        ("PUT", "/{}/a", {"x-goog-copy-source": "/b/c"}),
        ("PUT", "/{}/a", {"x-goog-acl": "public-read"}),
        ("PUT", "/{}/a", {"x-goog-content-length-range": "0,1"}),
        ("POST", "/{}/a", {}),
    ],
)
def test_the_rest_of_the_api_is_refused_at_once(
    http: httpx.Client, bucket: storage.Bucket, verb: str, path: str, headers: dict[str, str]
) -> None:
    answer = http.request(verb, path.format(bucket.name), headers=headers)
    assert answer.status_code == 400
    assert "is not imitated by the local stack" in values(answer, "Message")[0]
    assert list(bucket.list_blobs()) == []
