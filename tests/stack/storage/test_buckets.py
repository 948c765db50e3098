import httpx
import pytest
from google.api_core import exceptions
from google.cloud import storage


def test_a_bucket_is_created_once_found_listed_and_deleted(client: storage.Client) -> None:
    bucket = client.create_bucket("some-bucket")
    with pytest.raises(exceptions.Conflict):
        client.create_bucket("some-bucket")
    assert client.get_bucket("some-bucket").name == "some-bucket"
    assert bucket.test_iam_permissions(["storage.objects.get"]) == ["storage.objects.get"]
    assert "some-bucket" in [bucket.name for bucket in client.list_buckets(prefix="some")]
    client.get_bucket("some-bucket").delete()
    assert not client.bucket("some-bucket").exists()


def test_a_bucket_with_objects_cannot_be_deleted(bucket: storage.Bucket) -> None:
    bucket.blob("a/b").upload_from_string("x")
    with pytest.raises(exceptions.Conflict, match="not empty"):
        bucket.delete()
    bucket.blob("a/b").delete()
    bucket.delete()


def test_a_setting_that_is_not_imitated_is_refused(client: storage.Client) -> None:
    bucket = client.bucket("requester-pays")
    bucket.requester_pays = True
    with pytest.raises(exceptions.BadRequest, match="billing is not imitated"):
        bucket.create(retry=None)


@pytest.mark.parametrize("name", ["ab", "Upper", "-dash", "a..b", "192.168.1.1", "goog-x", "x" * 64, "a/b"])
def test_a_bad_bucket_name_is_refused(http: httpx.Client, name: str) -> None:
    answer = http.post("/storage/v1/b?project=p", json={"name": name})
    assert answer.status_code == 400
    assert "Invalid bucket name" in answer.json()["error"]["message"]


def test_objects_of_a_missing_bucket_are_not_found(client: storage.Client) -> None:
    with pytest.raises(exceptions.NotFound, match="bucket does not exist"):
        client.bucket("missing-bucket").blob("a").upload_from_string("x")
    with pytest.raises(exceptions.NotFound):
        list(client.list_blobs("missing-bucket"))
