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


def test_settings_are_merged_replaced_and_counted(http: httpx.Client, bucket: storage.Bucket) -> None:
    path = f"/storage/v1/b/{bucket.name}"
    first = http.get(path).json()
    assert (first["metageneration"], first["etag"]) == ("1", "CAE=")
    given = {"labels": {"a": "1", "b": "2"}, "cors": [{"origin": ["*"], "method": ["GET"]}]}
    assert http.patch(path, json=given).json()["labels"] == given["labels"]
    merged = http.patch(path, json={"labels": {"b": None, "c": "3"}}).json()
    assert (merged["labels"], merged["cors"]) == ({"a": "1", "c": "3"}, given["cors"])
    assert merged["metageneration"] == "3"
    assert merged["updated"] > merged["timeCreated"]
    replaced = http.put(path, json={**merged, "labels": {"d": "4"}, "cors": None}).json()
    assert replaced["labels"] == {"d": "4"}
    assert "cors" not in replaced
    assert len({each["etag"] for each in (first, merged, replaced)}) == 3
    assert http.get(f"{path}?projection=full").json() == replaced


@pytest.mark.parametrize(
    ("verb", "query", "status"),
    [
        ("GET", "ifMetagenerationMatch=1", 200),
        ("GET", "ifMetagenerationMatch=2", 412),
        ("GET", "ifMetagenerationNotMatch=1", 304),
        ("PATCH", "ifMetagenerationMatch=2", 412),
        ("PUT", "ifMetagenerationNotMatch=1", 412),
        ("DELETE", "ifMetagenerationMatch=99", 412),
        ("DELETE", "ifMetagenerationMatch=1", 204),
    ],
)
def test_conditions_on_a_buckets_metageneration(
    http: httpx.Client, bucket: storage.Bucket, verb: str, query: str, status: int
) -> None:
    body: dict[str, str] | None = {} if verb in ("PATCH", "PUT") else None
    answer = http.request(verb, f"/storage/v1/b/{bucket.name}?{query}", json=body)
    assert answer.status_code == status


RULE = {"action": {"type": "SetStorageClass"}, "condition": {"age": 1}}


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"location": "mars"}, "location constraint is not valid: 'MARS'"),
        ({"location": "US", "customPlacementConfig": {"dataLocations": ["US-EAST1", "ME-WEST1"]}}, "US with"),
        ({"location": "EU", "rpo": "ASYNC_TURBO"}, "requires a dual-region"),
        ({"logging": {"logBucket": "no-such-bucket"}}, "target bucket for logging"),
        ({"storageClass": "FOO"}, "Bucket.storageClass: 'FOO'"),
        ({"labels": {"Upper": "x"}}, "Upper"),
        ({"lifecycle": {"rule": [{"action": {"type": "Delete"}, "condition": {}}]}}, "rule.0.condition"),
        ({"lifecycle": {"rule": [RULE]}}, "'storageClass' is a required property"),
        ({"retentionPolicy": {"retentionPeriod": "0"}}, "Bucket.retentionPolicy.retentionPeriod"),
        ({"softDeletePolicy": {"retentionDurationSeconds": 5}}, "softDeletePolicy"),
        ({"ipFilter": {"mode": "Enabled"}}, "Bucket.ipFilter.mode"),
        ({"iamConfiguration": {"publicAccessPrevention": "x"}}, "publicAccessPrevention"),
        ({"hierarchicalNamespace": {"enabled": True}}, "Bucket.hierarchicalNamespace is not imitated"),
        ({"autoclass": {"enabled": True, "terminalStorageClass": "COLDLINE"}}, "terminalStorageClass"),
        ({"encryption": {"defaultKmsKeyName": "k"}}, "defaultKmsKeyName"),
        ({"versioning": {"enabled": "yes"}}, "Bucket.versioning.enabled"),
    ],
)
def test_a_setting_that_the_service_or_the_stack_does_not_take_is_refused(
    http: httpx.Client, setting: dict[str, object], words: str
) -> None:
    answer = http.post("/storage/v1/b?project=p", json={"name": "never-made", **setting})
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("given", "location", "kind"),
    [
        ({}, "US", "multi-region"),
        ({"location": "europe-west4"}, "EUROPE-WEST4", "region"),
        ({"location": "nam4"}, "NAM4", "dual-region"),
        ({"customPlacementConfig": {"dataLocations": ["us-west1", "us-east1"]}}, "US", "dual-region"),
    ],
)
def test_a_bucket_is_where_it_was_asked_for(
    http: httpx.Client, given: dict[str, object], location: str, kind: str
) -> None:
    name = f"in-{kind}-{location}".lower()
    made = http.post("/storage/v1/b?project=p", json={"name": name, **given}).json()
    layout = http.get(f"/storage/v1/b/{name}/storageLayout").json()
    for found in (made, layout):
        assert (found["location"], found["locationType"]) == (location, kind)
    assert http.patch(f"/storage/v1/b/{name}", json={"location": "ASIA"}).status_code == 400
    http.delete(f"/storage/v1/b/{name}").raise_for_status()


def test_a_retention_policy_keeps_its_time_and_is_locked_for_good(bucket: storage.Bucket) -> None:
    bucket.retention_period = 10
    bucket.patch()
    since = bucket.retention_policy_effective_time
    assert since
    bucket.labels = {"a": "b"}
    bucket.patch()
    assert bucket.retention_policy_effective_time == since
    bucket.lock_retention_policy()
    for period in (9, None):
        bucket.retention_period = period
        with pytest.raises(exceptions.Forbidden, match="locked"):
            bucket.patch()
    bucket.reload()
    bucket.retention_period = 11
    bucket.patch()
    assert bucket.retention_policy_locked


def test_a_buckets_policy_is_kept_unless_another_has_changed_it(bucket: storage.Bucket) -> None:
    policy = bucket.get_iam_policy()
    policy.bindings.append({"role": "roles/storage.objectViewer", "members": {"serviceAccount:a@b.c"}})
    stored = bucket.set_iam_policy(policy)
    assert bucket.get_iam_policy().bindings == stored.bindings == policy.bindings
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.set_iam_policy(policy)
    for role, member, words in (
        ("roles/storage.admin", "everybody", "member of a policy: 'everybody'"),
        ("roles/nonsense", "user:a@b.c", "Role roles/nonsense"),
    ):
        stored.bindings = [{"role": role, "members": {member}}]
        with pytest.raises(exceptions.GoogleAPICallError, match=words):
            bucket.set_iam_policy(stored, retry=None)


@pytest.mark.parametrize("path", ["/o/a/acl", "/o/a/iam", "/o/a/iam/testPermissions", "/o/a/acl/allUsers"])
def test_access_to_single_objects_is_never_taken_for_a_name(
    http: httpx.Client, bucket: storage.Bucket, path: str
) -> None:
    kept = [path.removeprefix("/o/"), "raw/slashes/of/clients"]
    for name in kept:
        bucket.blob(name).upload_from_string("x")
    for verb in ("GET", "DELETE"):
        assert http.request(verb, f"/storage/v1/b/{bucket.name}{path}").status_code in {400, 404}
    assert all(bucket.blob(name).exists() for name in kept)
    assert http.get(f"/storage/v1/b/{bucket.name}/o/{kept[1]}").status_code == 200


def test_buckets_are_listed_in_pages(client: storage.Client) -> None:
    names = [client.create_bucket(f"paged-{number}").name for number in range(3)]
    pages = client.list_buckets(prefix="paged-", page_size=2).pages
    assert [[bucket.name for bucket in page] for page in pages] == [names[:2], names[2:]]


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


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b"\xff", b"[" * 100_000, b'"x"', b'{"name": 1}', b"x" * (5 << 20)]
)
def test_a_body_other_than_a_json_object_is_refused(http: httpx.Client, body: bytes) -> None:
    answer = http.post("/storage/v1/b?project=p", content=body)
    assert answer.status_code == 400
