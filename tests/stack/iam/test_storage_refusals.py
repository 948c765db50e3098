"""Refusals of Cloud Storage for missing permissions, and their sentences."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from trainstack.http import in_thread
from trainstack.iam import Grants
from trainstack.iam.service import Grant
from trainstack.loopback import GATEWAY_ADDRESS

from .conftest import (
    ARRIVALS,
    LEDGER,
    MINE,
    MODELS,
    PROJECT,
    STRANGER,
    TICK,
    TRAINER,
    Served,
    denied,
    email,
    running,
)


def test_storage_names_the_account_the_permission_and_the_resource(served: Served) -> None:
    sentence = "{} does not have {} access to the Google Cloud Storage {}. Permission '{}' denied on resource (or it may not exist)."
    reading = served.read(LEDGER, "runs/a.json", TRAINER)
    permission = "storage.objects.get"
    assert denied(reading) == sentence.format(email(TRAINER), permission, "object", permission)
    (error,) = reading.json()["error"]["errors"]
    assert (error["domain"], error["reason"], error["message"]) == ("global", "forbidden", denied(reading))
    listing = served.call("GET", "storage", f"/storage/v1/b/{LEDGER}/o", TRAINER)
    permission = "storage.objects.list"
    assert denied(listing) == sentence.format(email(TRAINER), permission, "bucket", permission)
    created = served.call(
        "POST", "storage", f"/storage/v1/b?project={PROJECT}", TRAINER, json={"name": "b-1"}
    )
    assert "storage.buckets.create access to the Google Cloud project." in denied(created)


def test_replacing_an_object_needs_the_permission_to_delete_it(served: Served) -> None:
    assert served.upload(LEDGER, "arrivals/1", ARRIVALS).status_code == 200
    assert "storage.objects.delete" in denied(served.upload(LEDGER, "arrivals/1", ARRIVALS))
    path = f"/upload/storage/v1/b/{LEDGER}/o?uploadType=resumable&name=arrivals/1"
    session = served.call("POST", "storage", path, ARRIVALS, json={}).headers["location"]
    assert "storage.objects.delete" in denied(served.http.put(session, content=b"y"))
    guarded = served.upload(LEDGER, "arrivals/1", ARRIVALS, ifGenerationMatch="0")
    assert guarded.status_code == 412  # nothing would be replaced


def test_a_trainer_may_read_the_metadata_of_the_bucket_that_it_writes(served: Served) -> None:
    """As TensorFlow does before it creates the first folder of a new model."""
    assert served.call("GET", "storage", f"/storage/v1/b/{MODELS}", TRAINER).status_code == 200
    assert "storage.buckets.get" in denied(served.call("GET", "storage", f"/storage/v1/b/{LEDGER}", TRAINER))


def test_a_missing_object_looks_forbidden_to_an_account_that_may_not_list(
    served: Served, tmp_path: Path
) -> None:
    assert served.read(LEDGER, "runs/none", TICK).status_code == 404
    grant = Grant(
        member=f"serviceAccount:{email('reader')}",
        role="roles/reader",
        resource=f"projects/_/buckets/{LEDGER}",
    )
    roles = {"roles/reader": frozenset({"storage.objects.get", "storage.objects.delete"})}
    grants = Grants(project=PROJECT, project_number="1", grants=[grant], roles=roles, buckets=[LEDGER])
    with in_thread(lambda: running(tmp_path, grants)) as other:
        made = f"/storage/v1/b?project={PROJECT}"
        other.call("POST", "storage", made, json={"name": LEDGER}).raise_for_status()
        other.upload(LEDGER, "there").raise_for_status()
        assert other.read(LEDGER, "there", "reader").status_code == 200
        deleted = other.call("DELETE", "storage", f"/storage/v1/b/{LEDGER}/o/none", "reader")
        for answer in (other.read(LEDGER, "none", "reader"), deleted):
            assert "does not have storage.objects.list access" in denied(answer)


def test_a_bucket_that_does_not_exist_is_404_for_everyone(served: Served) -> None:
    assert served.read("no-such-bucket", "a", STRANGER).status_code == 404
    assert served.upload("no-such-bucket", "a", STRANGER).status_code == 404
    copied = f"/storage/v1/b/{MODELS}/o/team-a%2Fmodel/copyTo/b/no-such-bucket/o/a"
    assert served.call("POST", "storage", copied, TRAINER).status_code == 404


def test_each_request_of_a_batch_needs_its_own_permission(served: Served) -> None:
    paths = [f"/storage/v1/b/{MODELS}/o/team-a%2Fmodel", f"/storage/v1/b/{LEDGER}/o/runs%2Fa.json"]
    parts = "".join(f"--b\n\n\nGET {path} HTTP/1.1\n\n\n" for path in paths)
    options = {"content": f"{parts}--b--", "headers": {"content-type": "multipart/mixed; boundary=b"}}
    answer = served.call("POST", "storage", "/batch/storage/v1", TRAINER, **options)
    assert "HTTP/1.1 200" in answer.text
    assert "does not have storage.objects.get access" in answer.text.partition("HTTP/1.1 403")[2]


def test_every_account_may_use_a_bucket_that_the_local_user_made(served: Served) -> None:
    assert served.upload(MINE, "data.csv", TRAINER).status_code == 200
    assert served.read(MINE, "data.csv", TICK).status_code == 200
    assert served.call("GET", "storage", f"/storage/v1/b/{MINE}", TRAINER).status_code == 200
    assert "storage.buckets.delete" in denied(
        served.call("DELETE", "storage", f"/storage/v1/b/{MINE}", TRAINER)
    )
    bindings = served.call("GET", "storage", f"/storage/v1/b/{MINE}/iam").json()["bindings"]
    assert {member for each in bindings for member in each["members"]} == {f"projectEditor:{PROJECT}"}


@pytest.fixture
def mine(served: Served) -> Iterator[str]:
    """The path of a bucket that the local user made."""
    path = "/storage/v1/b/one-more-bucket"
    made = f"/storage/v1/b?project={PROJECT}"
    served.call("POST", "storage", made, json={"name": "one-more-bucket"}).raise_for_status()
    yield path
    served.call("DELETE", "storage", path).raise_for_status()


def test_a_buckets_policy_decides_who_may_use_it(served: Served, mine: str) -> None:
    policy = served.call("GET", "storage", f"{mine}/iam").json()
    reader = {"role": "roles/storage.objectViewer", "members": [f"serviceAccount:{email(TICK)}"]}
    added = {**policy, "bindings": [*policy["bindings"], reader]}
    added = served.call("PUT", "storage", f"{mine}/iam", json=added).json()
    assert (
        served.call("GET", "storage", f"{mine}/o", TRAINER).status_code == 200
    )  # still as the project's editors
    served.call("PUT", "storage", f"{mine}/iam", json={**added, "bindings": [reader]}).raise_for_status()
    assert served.call("GET", "storage", f"{mine}/o", TICK).status_code == 200
    assert "storage.objects.list" in denied(served.call("GET", "storage", f"{mine}/o", TRAINER))
    assert "storage.buckets.setIamPolicy" in denied(
        served.call("PUT", "storage", f"{mine}/iam", TICK, json={"bindings": []})
    )


def test_an_account_names_who_pays_for_a_bucket_whose_requesters_pay(served: Served, mine: str) -> None:
    pays = {"billing": {"requesterPays": True}}
    served.call("PATCH", "storage", mine, json=pays).raise_for_status()
    assert served.call("GET", "storage", f"{mine}/o").status_code == 200
    refused = served.call("GET", "storage", f"{mine}/o", TRAINER)
    assert (refused.status_code, "no user project provided" in refused.text) == (400, True)
    named = served.call("GET", "storage", f"{mine}/o?userProject={PROJECT}", TRAINER)
    assert "serviceusage.services.use" in denied(named)


@pytest.fixture
def team() -> Grants:
    """One account with its folder of a bucket."""
    member, bucket = f"serviceAccount:{email('tm-team-a')}", f"projects/_/buckets/{MODELS}"
    return Grants(
        project=PROJECT,
        project_number="123456789012",
        grants=[Grant(member=member, role="roles/user", resource=bucket, folder="team-a/")],
        roles={"roles/user": frozenset({"storage.objects.get", "storage.objects.list"})},
        buckets=[MODELS],
    )


@pytest.mark.parametrize(
    ("object_name", "allowed"),
    [("team-a/model", True), ("team-a/", True), ("team-ab/model", False), ("team-b/model", False), ("", False), (None, False)],
)  # fmt: skip
def test_a_grant_on_a_managed_folder_reaches_its_objects_alone(
    team: Grants, object_name: str | None, allowed: bool
) -> None:
    member, bucket = f"serviceAccount:{email('tm-team-a')}", f"projects/_/buckets/{MODELS}"
    for permission in ("storage.objects.get", "storage.objects.list"):
        assert team.allows(member, permission, bucket, object_name) is allowed
    assert not team.allows(member, "storage.objects.delete", bucket, object_name)
    assert "bindings" not in team.policy(bucket)


def test_what_a_list_or_a_policy_makes_public_is_read_without_a_token(served: Served) -> None:
    """Through the gateway, where a request without a token is anonymous; an account reads what it uploaded."""
    path = "/storage/v1/b/public-bucket"
    served.call("POST", "storage", f"/storage/v1/b?project={PROJECT}", json={"name": "public-bucket"})
    for name in ("a", "b"):
        assert served.upload("public-bucket", name, STRANGER).status_code == 200
    listed = {"bindings": [{"role": "roles/storage.objectCreator", "members": ["allAuthenticatedUsers"]}]}
    assert served.call("PUT", "storage", f"{path}/iam", json=listed).status_code == 200
    assert served.read("public-bucket", "a", STRANGER).status_code == 200
    assert "storage.objects.get" in denied(served.read("public-bucket", "a", TRAINER))
    acl = {"entity": "allUsers", "role": "READER"}
    mine = served.upload(MINE, "by-another").json()["name"]
    changed = served.call("PATCH", "storage", f"/storage/v1/b/{MINE}/o/{mine}", TRAINER, json={"acl": [acl]})
    assert "storage.objects.getIamPolicy" in denied(changed)
    assert served.call("POST", "storage", f"{path}/o/a/acl", STRANGER, json=acl).status_code == 200
    with httpx.Client(transport=httpx.HTTPTransport(local_address=GATEWAY_ADDRESS)) as public:
        assert public.get(f"{served.urls['storage']}/public-bucket/a").content == b"x"
        refused = public.get(f"{served.urls['storage']}{path}/o/b")
        assert (refused.status_code, refused.json()["error"]["message"][:16]) == (401, "Anonymous caller")
        assert public.get(f"{served.urls['storage']}{path}/o").status_code == 401
        listed["bindings"].append({"role": "roles/storage.objectViewer", "members": ["allUsers"]})
        served.call("PUT", "storage", f"{path}/iam", json=listed).raise_for_status()
        assert len(public.get(f"{served.urls['storage']}{path}/o").json()["items"]) == 2
        prevented = {"iamConfiguration": {"publicAccessPrevention": "enforced"}}
        served.call("PATCH", "storage", path, json=prevented).raise_for_status()
        for name in ("a", "b"):
            assert public.get(f"{served.urls['storage']}{path}/o/{name}").status_code == 401
