"""What keeps objects from being changed or read: holds, retention and customers' keys; and what they inherit."""

import httpx
import pytest
from google.api_core import exceptions
from google.cloud import storage

from .conftest import Named

KEY, OTHER = b"k" * 32, b"o" * 32


@pytest.mark.parametrize("versions", [False, True])
@pytest.mark.parametrize(
    ("hold", "sentence"),
    [
        ("temporary_hold", "under active Temporary hold"),
        ("event_based_hold", "under active Event-Based hold"),
    ],
)
def test_a_held_object_stays_as_it_is(named: Named, versions: bool, hold: str, sentence: str) -> None:
    bucket = named(versioning={"enabled": versions})
    blob = bucket.blob("a")
    blob.upload_from_string("1")
    setattr(blob, hold, True)
    blob.patch()
    for change in (
        blob.delete,
        lambda: bucket.blob("a").upload_from_string("2"),
        lambda: bucket.blob("a").compose([blob]),
        lambda: bucket.move_blob(blob, "b"),
    ):
        with pytest.raises(exceptions.Forbidden, match=sentence):
            change()
    copy = bucket.copy_blob(blob, bucket, "b")
    assert not getattr(copy, hold)
    copy.delete()
    setattr(blob, hold, False)
    blob.patch()
    assert getattr(bucket.get_blob("a"), hold) is False
    blob.delete()


def test_retention_begins_again_when_an_event_based_hold_ends(named: Named) -> None:
    bucket = named(defaultEventBasedHold=True, retentionPolicy={"retentionPeriod": "3600"})
    blob = bucket.blob("a")
    blob.upload_from_string("1")
    assert blob.event_based_hold
    assert blob.retention_expiration_time is None
    blob.event_based_hold = False
    blob.patch()
    found = bucket.get_blob("a")
    assert (found.retention_expiration_time - found.updated).total_seconds() == 3600
    assert [listed.retention_expiration_time for listed in bucket.list_blobs()] == [
        found.retention_expiration_time
    ]
    with pytest.raises(exceptions.PreconditionFailed):  # before the refusal
        blob.delete(if_generation_match=1)
    for change in (blob.delete, lambda: blob.upload_from_string("2"), lambda: bucket.move_blob(blob, "b")):
        with pytest.raises(exceptions.Forbidden, match="is subject to bucket's retention policy"):
            change()
    assert found.download_as_bytes() == b"1"


def test_a_retained_object_may_become_noncurrent_but_not_vanish(named: Named) -> None:
    bucket = named(versioning={"enabled": True}, retentionPolicy={"retentionPeriod": "3600"})
    blob = bucket.blob("a")
    blob.upload_from_string("1")
    bucket.blob("a").delete()
    with pytest.raises(exceptions.Forbidden):
        bucket.blob("a", generation=blob.generation).delete()


def test_an_object_has_the_default_storage_class_of_its_bucket(named: Named, bucket: storage.Bucket) -> None:
    cold = named(storageClass="NEARLINE")
    blob = bucket.blob("a")
    blob.upload_from_string("1")
    assert (blob.storage_class, bucket.copy_blob(blob, cold, "b").storage_class) == ("STANDARD", "NEARLINE")
    blob = cold.blob("c")
    blob.storage_class = "COLDLINE"
    blob.upload_from_string("1")
    assert cold.get_blob("c").storage_class == "COLDLINE"


def test_an_object_is_read_only_with_the_customers_key(bucket: storage.Bucket) -> None:
    keyed = bucket.blob("a", encryption_key=KEY)
    keyed.upload_from_string("1")
    assert keyed.download_as_bytes() == b"1"
    for key, sentence in ((None, "is encrypted by a customer-supplied"), (OTHER, "key is incorrect")):
        with pytest.raises(exceptions.BadRequest, match=sentence):
            bucket.blob("a", encryption_key=key).download_as_bytes()
    without = bucket.get_blob("a")
    assert (without.crc32c, without.md5_hash) == (None, None)
    assert without._properties["customerEncryption"]["encryptionAlgorithm"] == "AES256"
    keyed.reload()
    assert keyed.crc32c
    with pytest.raises(exceptions.BadRequest, match="is encrypted by"):
        bucket.blob("b").compose([without])
    with pytest.raises(exceptions.BadRequest, match="is encrypted by"):
        bucket.copy_blob(without, bucket, "b")


def test_a_rewrite_rotates_the_customers_key(bucket: storage.Bucket) -> None:
    keyed = bucket.blob("a", encryption_key=KEY)
    keyed.upload_from_string("1")
    rotated = bucket.blob("a", encryption_key=OTHER)
    rotated.rewrite(keyed)
    assert rotated.download_as_bytes() == b"1"
    with pytest.raises(exceptions.BadRequest, match="key is incorrect"):
        bucket.blob("a", encryption_key=KEY).download_as_bytes()
    bucket.blob("a").rewrite(rotated)
    assert bucket.blob("a").download_as_bytes() == b"1"
    with pytest.raises(exceptions.BadRequest, match="is not encrypted by"):
        bucket.blob("a", encryption_key=KEY).download_as_bytes()


def test_a_key_without_its_hash_is_refused(http: httpx.Client, bucket: storage.Bucket) -> None:
    path = f"/upload/storage/v1/b/{bucket.name}/o?uploadType=media&name=a"
    answer = http.post(path, content=b"1", headers={"x-goog-encryption-algorithm": "AES256"})
    assert answer.status_code == 400
    assert "Missing a SHA256 hash" in answer.json()["error"]["message"]


def test_a_key_of_cloud_kms_is_the_requests_or_the_buckets_default(named: Named) -> None:
    keys = "projects/p/locations/us/keyRings/r/cryptoKeys/"
    bucket = named(encryption={"defaultKmsKeyName": f"{keys}default"})
    for name, key in (("default", None), ("own", f"{keys}own")):
        bucket.blob(name, kms_key_name=key).upload_from_string("x")
        assert bucket.get_blob(name).kms_key_name == f"{keys}{name}/cryptoKeyVersions/1"
        assert bucket.blob(name).download_as_bytes() == b"x"
    bucket.blob("c", encryption_key=KEY).upload_from_string("x")
    assert bucket.get_blob("c").kms_key_name is None
    with pytest.raises(exceptions.BadRequest, match="in the bucket's location"):
        bucket.blob("d", kms_key_name=f"{keys}own".replace("/us/", "/europe/")).upload_from_string("x")


def test_a_kind_of_encryption_that_the_bucket_restricts_is_refused_to_new_objects(named: Named) -> None:
    restricted = {"restrictionMode": "FullyRestricted"}
    bucket = named(encryption={"googleManagedEncryptionEnforcementConfig": restricted})
    with pytest.raises(exceptions.PreconditionFailed, match="googleManagedEncryptionEnforcementConfig"):
        bucket.blob("a").upload_from_string("x")
    bucket.blob("a", encryption_key=KEY).upload_from_string("x")


def test_autoclass_decides_about_storage_classes_and_keeps_its_times(named: Named) -> None:
    bucket = named(autoclass={"enabled": True})
    blob = bucket.blob("a")
    blob.storage_class = "COLDLINE"
    blob.upload_from_string("x")
    assert bucket.get_blob("a").storage_class == "STANDARD"
    bucket.reload()
    since = bucket.autoclass_toggle_time
    bucket.autoclass_terminal_storage_class = "ARCHIVE"
    bucket.patch()
    assert (bucket.autoclass_toggle_time, bucket.autoclass_terminal_storage_class) == (since, "ARCHIVE")
