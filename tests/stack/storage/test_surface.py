"""The table of what Cloud Storage honours."""

import httpx
from google.cloud import storage

from tests.judges.surfaces import gaps
from trainstack.storage.api.call import SURFACE
from trainstack.storage.api.routes import ROUTES

OWN = {"batch", "objects.cancelUpload"}
"""Methods that no discovery document has."""


def test_the_table_has_every_parameter_and_field_of_the_routes() -> None:
    names = {route.name for route in ROUTES}
    assert names <= SURFACE.methods.keys()
    methods = {name: name for name in names - OWN}
    assert gaps(SURFACE, "storage.v1", methods=methods, own={"upload_id", "tensorstore"}) == []


def test_what_is_not_honoured_is_named_in_one_answer(http: httpx.Client, bucket: storage.Bucket) -> None:
    path = f"/storage/v1/b/{bucket.name}/o"
    answer = http.get(f"{path}?filter=contexts.a%3Ab&colour=red")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == (
        "The parameter filter is not imitated by the local stack; the parameter colour is unknown:"
        " leave out what this names."
    )
    answer = http.patch(f"{path}/a", json={"retention": {"mode": "Locked"}, "contexts": {"a": "b"}})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(
        "Object.retention is not imitated by the local stack; Object.contexts"
    )
    assert http.get(f"{path}?filter=").status_code == 200


def test_a_field_below_a_list_or_another_resource_is_checked(
    http: httpx.Client, bucket: storage.Bucket
) -> None:
    path = f"/storage/v1/b/{bucket.name}/o/to/compose"
    answer = http.post(path, json={"sourceObjects": [{"name": "a"}], "destination": {"contexts": "k"}})
    assert "Object.contexts is not imitated" in answer.json()["error"]["message"]
