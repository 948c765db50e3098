"""Access control lists, of the official client and of bare requests."""

import httpx
import pytest
from google.api_core import exceptions
from google.cloud import storage

from .conftest import Named

UNIFORM = {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}}
PREVENTED = {"iamConfiguration": {"publicAccessPrevention": "enforced"}}


def entities(acl: storage.acl.ACL) -> dict[str, str]:
    acl.reload()
    return {entry["entity"].rstrip("0123456789"): entry["role"] for entry in acl}


TEAMS = {"project-owners-": "OWNER", "project-editors-": "OWNER", "project-viewers-": "READER"}


def test_lists_are_kept_with_their_owner_and_given_to_new_objects(bucket: storage.Bucket) -> None:
    old, new = bucket.blob("old"), bucket.blob("new")
    old.upload_from_string("x")
    assert entities(bucket.acl) == entities(bucket.default_object_acl) == entities(old.acl) == TEAMS
    bucket.default_object_acl.save_predefined("publicRead")
    new.upload_from_string("x")
    assert entities(new.acl) == {"allUsers": "READER", "project-owners-": "OWNER"}
    assert entities(old.acl) == TEAMS
    old.acl.user("a@b.c").grant_read()
    old.acl.save(if_metageneration_match=1)
    assert entities(bucket.move_blob(old, "moved").acl) == {**TEAMS, "user-a@b.c": "READER"}
    assert entities(bucket.copy_blob(bucket.blob("moved"), bucket, "copied").acl) == entities(new.acl)
    bucket.acl.clear()
    assert entities(bucket.acl) == {"project-owners-": "OWNER"}


def test_a_buckets_list_is_the_legacy_part_of_its_policy(bucket: storage.Bucket) -> None:
    bucket.acl.reload()
    bucket.acl.group("g@b.c").grant_owner()
    bucket.acl.user("s@p.iam.gserviceaccount.com").grant_write()
    bucket.acl.save()
    policy = bucket.get_iam_policy()
    assert "group:g@b.c" in policy["roles/storage.legacyBucketOwner"]
    assert policy["roles/storage.legacyBucketWriter"] == {"serviceAccount:s@p.iam.gserviceaccount.com"}
    policy["roles/storage.legacyBucketWriter"] = {"allAuthenticatedUsers", "domain:b.c"}
    bucket.set_iam_policy(policy)
    assert entities(bucket.acl).items() >= {"allAuthenticatedUsers": "WRITER", "domain-b.c": "WRITER"}.items()


def test_entries_are_resources_of_their_own(http: httpx.Client, bucket: storage.Bucket) -> None:
    bucket.blob("d/a").upload_from_string("x")
    for path in ("/acl", "/defaultObjectAcl", "/o/d%2Fa/acl"):
        acl = f"/storage/v1/b/{bucket.name}{path}"
        made = http.post(acl, json={"entity": "user-a@b.c", "role": "READER"}).json()
        assert (made["email"], made["role"]) == ("a@b.c", "READER")
        assert http.patch(f"{acl}/user-a@b.c", json={"role": "OWNER"}).json()["role"] == "OWNER"
        assert http.get(f"{acl}/user-a@b.c").json() == {**made, "role": "OWNER"}
        assert http.delete(f"{acl}/user-a@b.c").status_code == 204
        assert http.delete(f"{acl}/user-a@b.c").status_code == 404
        assert http.post(acl, json={"entity": "me", "role": "READER"}).status_code == 400
    resource = http.get(f"/storage/v1/b/{bucket.name}/o/d%2Fa?projection=full").json()
    assert resource["metageneration"] == "4"
    assert resource["owner"]["entity"].startswith("project-owners-")


def test_only_the_full_projection_has_lists(http: httpx.Client, bucket: storage.Bucket) -> None:
    upload = f"/upload/storage/v1/b/{bucket.name}/o?uploadType=media&predefinedAcl=private&name="
    assert "acl" not in http.post(f"{upload}a").json()
    assert len(http.post(f"{upload}b&projection=full").json()["acl"]) == 1
    listed = http.get(f"/storage/v1/b/{bucket.name}/o?projection=full").json()["items"]
    assert [len(item["acl"]) for item in listed] == [1, 1]
    assert http.post(f"{upload}c".replace("private", "publicReadWrite")).status_code == 400
    buckets = http.get(f"/storage/v1/b?project=project-1&projection=full&prefix={bucket.name}").json()
    assert [len(each["defaultObjectAcl"]) for each in buckets["items"]] == [3]


@pytest.mark.parametrize(
    ("settings", "fault", "words"),
    [
        (UNIFORM, exceptions.BadRequest, "when uniform bucket-level access is enabled"),
        (PREVENTED, exceptions.PreconditionFailed, "public access prevention is enforced"),
    ],
)
def test_lists_that_a_bucket_cannot_have_are_refused(
    named: Named, settings: dict[str, object], fault: type[Exception], words: str
) -> None:
    bucket = named(**settings)
    bucket.blob("a").upload_from_string("x")
    with pytest.raises(fault, match=words):
        bucket.blob("b").upload_from_string("x", predefined_acl="publicRead")
    for acl in (bucket.blob("a").acl, bucket.acl, bucket.default_object_acl):
        with pytest.raises(fault, match=words):
            acl.save_predefined("publicRead")
