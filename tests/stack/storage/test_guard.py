import httpx
import pytest
from google.cloud import storage


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1", "[::1]:80"])
def test_every_loopback_name_is_accepted(http: httpx.Client, host: str) -> None:
    assert http.get("/storage/v1/b?project=p", headers={"host": host}).status_code == 200


def test_a_page_of_another_port_may_read(http: httpx.Client, bucket: storage.Bucket) -> None:
    headers = {"origin": "http://localhost:3000", "sec-fetch-site": "same-site"}
    assert http.get(f"/storage/v1/b/{bucket.name}/o", headers=headers).status_code == 200


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_page_of_the_service_itself_may_post(http: httpx.Client, bucket: storage.Bucket, site: str) -> None:
    own = str(http.base_url).rstrip("/")
    path = f"/upload/storage/v1/b/{bucket.name}/o?uploadType=media&name=a"
    assert http.post(path, content=b"x", headers={"origin": own, "sec-fetch-site": site}).status_code == 200


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"\xff", b"[" * 100_000, b'"x"', b'{"name": 1}', b"x" * (5 << 20)]
)
def test_a_body_other_than_a_json_object_is_refused(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/storage/v1/b?project=p", content=body)
    assert answer.status_code == 400
