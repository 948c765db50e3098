from pathlib import Path

import httpx
import pytest
from google.api_core import exceptions
from google.cloud import storage

AWKWARD = [
    "../../escape",
    "a/../../b",
    "a/./b",
    "/leading",
    "trailing/",
    "double//slash",
    "//",
    "tab\there",
    "\x01\x7f",
    "long/" + "x" * 300,
    "ü" * 512,
    "n\u0303", "ñ",
    "%2e%2e%2f",
    "a?b#c&d=e",
    "copyTo/b/c/o/d",
    "-rf *",
]  # fmt: skip


@pytest.mark.parametrize("name", AWKWARD)
def test_an_awkward_name_works_through_the_api_and_never_leaves_the_bucket(
    bucket: storage.Bucket, folder: Path, directory: Path, name: str
) -> None:
    before = {path for path in directory.rglob("*") if not path.is_relative_to(folder)}
    blob = bucket.blob(name)
    blob.upload_from_string(name)
    outside = {path for path in directory.rglob("*") if not path.is_relative_to(folder)} - before
    assert {path.parent.name for path in outside} <= {"aside"}
    assert not (directory.parent / "escape").exists()
    assert bucket.blob(name).download_as_text() == name
    blob.metadata = {"k": "v"}
    blob.patch()
    assert [found.name for found in bucket.list_blobs()] == [name]
    bucket.blob(name).delete()
    assert list(bucket.list_blobs()) == []


@pytest.mark.parametrize(
    "name", ["x" * 1025, "ü" * 513, "a\nb", "a\rb", ".well-known/acme-challenge/x", ".", ".."]
)
def test_an_invalid_object_name_is_refused(http: httpx.Client, bucket: storage.Bucket, name: str) -> None:
    answer = http.post(
        f"/upload/storage/v1/b/{bucket.name}/o", params={"uploadType": "media", "name": name}, content=b"x"
    )
    assert answer.status_code == 400
    assert "Invalid object name" in answer.json()["error"]["message"]


@pytest.mark.parametrize("order", [["a", "a/b", "a/b/c"], ["a/b/c", "a/b", "a"]])
def test_a_name_can_be_an_object_and_the_folder_of_others(bucket: storage.Bucket, order: list[str]) -> None:
    for name in order:
        bucket.blob(name).upload_from_string(name)
    for name in order:
        bucket.blob(name).upload_from_string(name * 2)
        assert bucket.blob(name).download_as_text() == name * 2
    assert [blob.name for blob in bucket.list_blobs()] == ["a", "a/b", "a/b/c"]
    for name in order:
        bucket.blob(name).delete()
    assert list(bucket.list_blobs()) == []


def test_a_link_out_of_the_bucket_is_never_followed(
    bucket: storage.Bucket, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path)
    (folder / "file").symlink_to(tmp_path / "secret")
    assert list(bucket.list_blobs()) == []
    for name in ("link/secret", "file"):
        with pytest.raises(exceptions.NotFound):
            bucket.blob(name).download_as_bytes()
    bucket.blob("link/new").upload_from_string("x")
    bucket.blob("link/secret").upload_from_string("overwritten")
    assert bucket.blob("link/new").download_as_bytes() == b"x"
    assert bucket.blob("link/secret").download_as_bytes() == b"overwritten"
    bucket.blob("link/secret").delete()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"secret": "secret"}
