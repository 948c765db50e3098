from collections.abc import Callable

import httpx
import pytest
from google.api_core import exceptions
from google.cloud import storage

Put = Callable[..., httpx.Response]


@pytest.fixture
def put(http: httpx.Client, bucket: storage.Bucket) -> Put:
    def upload(name: str, content: bytes = b"x", **query: object) -> httpx.Response:
        return http.post(
            f"/upload/storage/v1/b/{bucket.name}/o",
            params={"uploadType": "media", "name": name, **{key: str(value) for key, value in query.items()}},
            content=content,
        )

    return upload


def test_generation_zero_means_no_live_object(put: Put, bucket: storage.Bucket) -> None:
    assert put("a", b"first", ifGenerationMatch=0).status_code == 200
    refused = put("a", b"second", ifGenerationMatch=0)
    assert refused.status_code == 412
    assert refused.json()["error"]["errors"][0]["reason"] == "conditionNotMet"
    assert bucket.blob("a").download_as_bytes() == b"first"


def test_a_write_conditional_on_the_metageneration(put: Put) -> None:
    assert put("a", ifMetagenerationMatch=1).status_code == 412
    put("a")
    assert put("a", ifMetagenerationMatch=2).status_code == 412
    assert put("a", ifMetagenerationMatch=1).status_code == 200


def test_reads_are_conditional_too(put: Put, http: httpx.Client, bucket: storage.Bucket) -> None:
    generation = int(put("a").json()["generation"])
    for path in (f"/storage/v1/b/{bucket.name}/o/a", f"/download/storage/v1/b/{bucket.name}/o/a"):

        def code(path: str = path, **query: int) -> int:
            return http.get(path, params=query).status_code

        assert code(ifGenerationMatch=generation) == 200
        assert code(ifGenerationMatch=generation + 1) == 412
        assert code(ifGenerationNotMatch=generation) == 304
        assert code(ifGenerationNotMatch=generation + 1) == 200
        assert code(ifMetagenerationMatch=2) == 412
        assert code(ifMetagenerationNotMatch=1) == 304
        assert code(generation=generation) == 200
        assert code(generation=generation + 1) == 404


def test_a_read_is_conditional_on_the_etag(bucket: storage.Bucket) -> None:
    blob = bucket.blob("a")
    blob.upload_from_string("x")
    other = bucket.blob("a")
    with pytest.raises(exceptions.PreconditionFailed):
        other.reload(if_etag_match="kittens")
    with pytest.raises(exceptions.NotModified):
        other.download_as_bytes(if_etag_not_match=["kittens", blob.etag])
    assert other.download_as_bytes(if_etag_match=blob.etag) == b"x"
    assert other.etag == blob.etag


def test_deletes_and_patches_are_conditional(bucket: storage.Bucket) -> None:
    blob = bucket.blob("a")
    blob.upload_from_string("x")
    blob.metadata = {"k": "v"}
    with pytest.raises(exceptions.PreconditionFailed):
        blob.patch(if_metageneration_match=2)
    blob.patch(if_metageneration_match=1)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("a").delete(if_generation_match=blob.generation + 1)
    bucket.blob("a").delete(if_generation_match=blob.generation)
    with pytest.raises(exceptions.NotFound):
        bucket.blob("a").delete(if_generation_match=blob.generation)


@pytest.mark.parametrize("value", ["one", "-1", "", "1" * 30])
def test_a_condition_other_than_a_number_is_refused(put: Put, value: str) -> None:
    answer = put("a", ifGenerationMatch=value)
    assert answer.status_code == 400
    assert "ifGenerationMatch" in answer.json()["error"]["message"]
