import base64
import hashlib
import io
import random
import re
from pathlib import Path

import httpx
import pytest
from google.cloud import storage
from hypothesis import given
from hypothesis import strategies as st

from trainstack.storage import serve
from trainstack.storage.api.multipart import RelatedParser
from trainstack.storage.objects.errors import RefusedError

PIECE = 256 * 1024
RELATED = "Multipart/Related; Boundary=b; x=y"

# As gcloud 528 sent it: lines end in LF alone, the boundary is in single quotes.
GCLOUD_TYPE = "multipart/related; boundary='===============8309951124003146529=='"
GCLOUD_BODY = b"""--===============8309951124003146529==
Content-Type: application/json
MIME-Version: 1.0

{"contentType": "application/octet-stream", "name": "incoming/up.yaml"}
--===============8309951124003146529==
Content-Type: application/octet-stream
MIME-Version: 1.0
Content-Transfer-Encoding: binary

x: 1

--===============8309951124003146529==--
"""


def insert(http: httpx.Client, bucket: storage.Bucket, kind: str, **request: object) -> httpx.Response:
    return http.post(f"/upload/storage/v1/b/{bucket.name}/o?uploadType={kind}", **request)  # type: ignore[arg-type]  # passed on


def test_the_multipart_body_of_gcloud_is_understood(http: httpx.Client, bucket: storage.Bucket) -> None:
    answer = insert(http, bucket, "multipart", content=GCLOUD_BODY, headers={"content-type": GCLOUD_TYPE})
    resource = answer.json()
    # gcloud deletes the object when the MD5 differs; this is the recorded one of these five bytes.
    assert (resource["name"], resource["size"], resource["md5Hash"]) == (
        "incoming/up.yaml",
        "5",
        "eKO7ewxapk9JEFjqgZnkyQ==",
    )
    assert bucket.blob("incoming/up.yaml").download_as_bytes() == b"x: 1\n"


@given(
    media=st.binary(max_size=200)
    | st.lists(st.sampled_from([b"\r", b"\n", b"--", b"--b", b"-"])).map(b"".join),
    newline=st.sampled_from([b"\r\n", b"\n"]),
    cuts=st.lists(st.integers(1, 30), max_size=40),
)
def test_any_media_survives_any_cutting_of_the_body(media: bytes, newline: bytes, cuts: list[int]) -> None:
    if newline + b"--boundary" in media:
        return
    lines = [
        b"--boundary",
        b"content-type: application/json",
        b"",
        b"{}",
        b"--boundary",
        b"content-type: text/x",
        b"",
        media,
    ]
    body = newline.join([*lines, b"--boundary--", b""])
    parser = RelatedParser(b"boundary")
    found = b""
    for cut in [*cuts, len(body)]:
        piece, body = body[:cut], body[cut:]
        found += b"".join(parser.feed(piece))
    parser.finish()
    assert (found, parser.metadata, parser.media_type) == (media, b"{}", "text/x")


def related(metadata: bytes, ending: bytes = b"--b--") -> bytes:
    return b"--b\r\n\r\n" + metadata + b"\r\n--b\r\n\r\nx\r\n" + ending


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("text/plain", b"", "expected multipart/related with a boundary"),
        (RELATED, b"no boundary here", "does not begin with the boundary"),
        (RELATED, related(b"{}", ending=b""), "ends before the closing boundary"),
        (RELATED, related(b"{]"), "is not valid JSON"),
        (RELATED, related(b"[]"), "must be an object"),
        (RELATED, related(b"{}"), "Required parameter: name"),
        (RELATED, related(b'{"name":7}'), "Invalid value for name: 7"),
    ],
)
def test_a_broken_multipart_body_is_refused_with_the_reason(
    http: httpx.Client, bucket: storage.Bucket, content_type: str, body: bytes, message: str
) -> None:
    answer = insert(http, bucket, "multipart", content=body, headers={"content-type": content_type})
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]
    assert list(bucket.list_blobs()) == []


def test_a_parser_gives_up_on_endless_metadata() -> None:
    parser = RelatedParser(b"b")
    with pytest.raises(RefusedError, match="no metadata part"):
        list(parser.feed(b"--b\r\n" + b"x" * (1 << 20)))


def test_bytes_that_changed_on_the_way_are_refused(http: httpx.Client, bucket: storage.Bucket) -> None:
    answer = insert(http, bucket, "media&name=a", content=b"x", headers={"x-goog-hash": "crc32c=AAAAAA=="})
    assert answer.status_code == 400
    assert "doesn't match" in answer.json()["error"]["message"]
    assert not bucket.blob("a").exists()


def test_a_large_file_goes_up_in_pieces_and_comes_back(bucket: storage.Bucket) -> None:
    content = random.Random(1).randbytes(3 * PIECE + 17)
    blob = bucket.blob("big", chunk_size=PIECE)
    blob.upload_from_file(io.BytesIO(content), content_type="x/y", if_generation_match=0)
    assert bucket.blob("big").download_as_bytes() == content
    assert bucket.get_blob("big").md5_hash == base64.b64encode(hashlib.md5(content).digest()).decode()


def begin(http: httpx.Client, bucket: storage.Bucket, name: str = "a", query: str = "") -> str:
    answer = insert(http, bucket, f"resumable{query}", json={"name": name, "metadata": {"k": "v"}})
    assert answer.status_code == 200
    return str(answer.headers["location"])


def send(
    http: httpx.Client, location: str, content: bytes, content_range: str, verb: str = "PUT"
) -> httpx.Response:
    return http.request(verb, location, content=content, headers={"content-range": content_range})


def test_a_resumable_upload_reports_its_progress_and_continues_from_there(
    http: httpx.Client, bucket: storage.Bucket
) -> None:
    location = begin(http, bucket)
    asked = send(http, location, b"", "bytes */10")
    assert (asked.status_code, "range" in asked.headers) == (308, False)
    half = send(http, location, b"01234", "bytes 0-4/10")
    assert (half.status_code, half.headers["range"]) == (308, "bytes=0-4")
    assert not bucket.blob("a").exists()
    assert send(http, location, b"", "bytes */*").headers["range"] == "bytes=0-4"
    # A piece sent again overlaps; one that was lost leaves a gap, and is not taken.
    assert send(http, location, b"2345", "bytes 2-5/*").headers["range"] == "bytes=0-5"
    assert send(http, location, b"9", "bytes 9-9/10").headers["range"] == "bytes=0-5"
    done = send(http, location, b"6789", "bytes 6-9/10")
    assert (done.status_code, done.json()["metadata"]) == (200, {"k": "v"})
    assert bucket.blob("a").download_as_bytes() == b"0123456789"
    again = send(http, location, b"", "bytes */10")
    assert (again.status_code, again.json()["generation"]) == (200, done.json()["generation"])


def test_a_session_is_continued_by_post_as_by_put(http: httpx.Client, bucket: storage.Bucket) -> None:
    location = begin(http, bucket)
    half = send(http, location, b"{}", "bytes 0-1/*", "POST")
    assert (half.status_code, half.headers["range"]) == (308, "bytes=0-1")
    done = send(http, location, b"no JSON", "bytes 2-8/9", "POST")
    assert (done.status_code, bucket.blob("a").download_as_bytes()) == (200, b"{}no JSON")
    assert http.post(location[:-1], content=b"").status_code == 404  # no new session


def test_googles_go_clients_get_no_308(http: httpx.Client, bucket: storage.Bucket) -> None:
    headers = {"content-range": "bytes 0-1/*", "x-guploader-no-308": "yes"}
    answer = http.post(begin(http, bucket), content=b"ab", headers=headers)
    assert (answer.status_code, answer.headers["x-http-status-code-override"]) == (200, "308")
    assert (answer.content, answer.headers["range"]) == (b"", "bytes=0-1")


@pytest.mark.parametrize("verb", ["PUT", "POST"])
def test_a_session_of_no_bytes_makes_an_empty_object(
    http: httpx.Client, bucket: storage.Bucket, verb: str
) -> None:
    done = send(http, begin(http, bucket), b"", "bytes */0", verb)
    assert (done.status_code, done.json()["size"]) == (200, "0")
    assert bucket.blob("a").download_as_bytes() == b""


def test_the_whole_can_follow_in_one_piece_without_a_range(
    http: httpx.Client, bucket: storage.Bucket
) -> None:
    assert http.put(begin(http, bucket), content=b"all of it").status_code == 200
    assert bucket.blob("a").download_as_bytes() == b"all of it"


def test_the_condition_holds_when_the_upload_ends(http: httpx.Client, bucket: storage.Bucket) -> None:
    location = begin(http, bucket, query="&ifGenerationMatch=0")
    bucket.blob("a").upload_from_string("someone was faster")
    assert send(http, location, b"late", "bytes 0-3/4").status_code == 412
    assert insert(http, bucket, "resumable&ifGenerationMatch=0", json={"name": "a"}).status_code == 412
    assert bucket.blob("a").download_as_bytes() == b"someone was faster"


def test_a_cancelled_upload_is_gone(http: httpx.Client, bucket: storage.Bucket, directory: Path) -> None:
    location = begin(http, bucket)
    send(http, location, b"0123", "bytes 0-3/10")
    assert http.delete(location).status_code == 499
    assert send(http, location, b"", "bytes */10").status_code == 404
    assert not (directory / "uploads" / location.rpartition("upload_id=")[2]).exists()


@pytest.mark.parametrize("content_range", ["bytes 0-", "0-3/4", "bytes a-b/c"])
def test_a_bad_content_range_is_refused(
    http: httpx.Client, bucket: storage.Bucket, content_range: str
) -> None:
    assert send(http, begin(http, bucket), b"0123", content_range).status_code == 400


def test_an_upload_ends_with_the_emulator(tmp_path: Path) -> None:
    with serve(tmp_path) as url, httpx.Client(base_url=url, timeout=60) as http:
        http.post("/storage/v1/b?project=p", json={"name": "bucket"})
        upload = "/upload/storage/v1/b/bucket/o?uploadType=resumable"
        location = http.post(upload, json={"name": "a"}).headers["location"]
        send(http, location, b"01234", "bytes 0-4/10")
    assert not list((tmp_path / "uploads").iterdir())
    with serve(tmp_path) as url, httpx.Client(timeout=60) as http:
        location = re.sub(r"^http://[^/]+", url, location)
        assert send(http, location, b"56789", "bytes 5-9/10").status_code == 404


def test_an_unknown_way_of_uploading_is_refused(http: httpx.Client, bucket: storage.Bucket) -> None:
    assert insert(http, bucket, "carrier-pigeon", content=b"x").status_code == 400
