import httpx
import pytest
from google.cloud import storage

BOUNDARY = "===============7330845974216740156=="
# As gcsfs 2026.10.1 writes it (gcsfs/core.py, `_rm_files`): lines end in LF alone, and the last head has no blank line.
PART = (
    f"\n--{BOUNDARY}\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n"
    "Content-ID: <b29c5de2+{number}>\n\n{request} HTTP/1.1\nContent-Type: application/json\n"
    "accept: application/json\ncontent-length: 0\n"
)


def send(http: httpx.Client, *requests: str, closing: str = "--") -> httpx.Response:
    parts = [PART.format(number=number, request=request) for number, request in enumerate(requests)]
    headers = {"content-type": f'multipart/mixed; boundary="{BOUNDARY}"'}
    body = f"{''.join(parts)}\n--{BOUNDARY}{closing}"
    return http.post("/batch/storage/v1", content=body, headers=headers)


def test_pythons_client_changes_and_deletes_in_a_batch(
    client: storage.Client, bucket: storage.Bucket
) -> None:
    kept, gone = bucket.blob("kept"), bucket.blob("gone")
    for blob in (kept, gone):
        blob.upload_from_string("x")
    with client.batch():
        kept.metadata = {"naïve": "é"}
        kept.patch()
        gone.delete()
    assert [(blob.name, blob.metadata) for blob in bucket.list_blobs()] == [("kept", {"naïve": "é"})]


def test_a_failure_inside_a_batch_does_not_keep_the_rest(
    client: storage.Client, bucket: storage.Bucket
) -> None:
    bucket.blob("a").upload_from_string("x")
    with client.batch(raise_exception=False) as batch:
        bucket.blob("missing").delete()
        bucket.blob("a").delete()
    assert [answer.status_code for answer in batch._responses] == [404, 204]
    assert not bucket.blob("a").exists()


def test_gcsfs_reads_the_status_of_each_deletion(http: httpx.Client, bucket: storage.Bucket) -> None:
    bucket.blob("a/b").upload_from_string("x")
    path = f"/storage/v1/b/{bucket.name}/o"
    answer = send(http, f"DELETE {path}/a%2Fb", f"DELETE {path}/a%2Fb?userProject=p")
    boundary = answer.headers["content-type"].split("=", 1)[1]
    first, second = answer.text.split(boundary)[1:-1]
    assert "HTTP/1.1 204 No Content" in first
    assert "Content-ID: <response-b29c5de2+0>" in first
    assert "HTTP/1.1 404 Not Found" in second


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /storage/v1/b/b/o/a?alt=media",
        "POST /upload/storage/v1/b/b/o",
        "POST /batch/storage/v1",
        "nonsense",
    ],
)
def test_what_may_not_be_in_a_batch_is_refused_alone(http: httpx.Client, request_line: str) -> None:
    answer = send(http, request_line, "GET /storage/v1/b?project=p")
    assert [line for line in answer.text.splitlines() if line.startswith("HTTP/")] == [
        "HTTP/1.1 400 Bad Request",
        "HTTP/1.1 200 OK",
    ]


def test_a_batch_is_limited_and_must_be_whole(http: httpx.Client) -> None:
    many = ["GET /storage/v1/b?project=p"] * 101
    assert send(http, *many[1:]).status_code == 200
    assert send(http, *many).status_code == 400
    assert send(http, *many[:2], closing="").status_code == 400
    headers = {"content-type": "multipart/mixed; boundary=b"}
    large = http.post("/batch/storage/v1", content=b"x" * 10_000_001, headers=headers)
    assert "exceeds 10000000 bytes" in large.json()["error"]["message"]
