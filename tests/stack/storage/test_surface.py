"""The table of what Cloud Storage honours."""

import httpx
import pytest
from google.cloud import storage

from tests.judges.discovery import api
from trainstack.storage.api.call import SURFACE
from trainstack.storage.api.routes import ROUTES

DOCUMENT = api("storage.v1").document
SERVED = sorted({route.name for route in ROUTES} & DOCUMENT["methods"].keys())
OWN = {"batch", "objects.cancelUpload"}
"""Methods that no discovery document has."""


def properties(schema: dict[str, object], above: str = "") -> set[str]:
    """The paths of all fields of a resource that are not resources themselves."""
    found: set[str] = set()
    for name, inner in schema.get("properties", {}).items():  # type: ignore[attr-defined]
        path = f"{above}{name}"
        nested = properties(inner.get("items", inner), f"{path}.")
        found |= nested or {path}
    return found


def test_every_route_is_in_the_table() -> None:
    assert {route.name for route in ROUTES} <= SURFACE.methods.keys()
    assert {route.name for route in ROUTES} - set(SERVED) <= OWN


@pytest.mark.parametrize("method", SERVED)
def test_every_parameter_of_a_served_method_is_in_the_table(method: str) -> None:
    described = DOCUMENT["methods"][method]
    asked = {name for name, each in described["parameters"].items() if each["location"] == "query"}
    assert asked == SURFACE.methods[method].kinds.keys() - {"upload_id"}
    assert DOCUMENT["query"].keys() == SURFACE.parameters.kinds.keys() - {"tensorstore"}
    if resource := described.get("request"):
        names = SURFACE.bodies[resource]
        assert [path for path in properties(DOCUMENT["schemas"][resource]) if not names.kind_of(path)] == []


@pytest.mark.parametrize("resource", SURFACE.bodies)
def test_the_table_names_no_field_that_the_service_does_not_have(resource: str) -> None:
    paths = properties(DOCUMENT["schemas"][resource])
    known = {path.rsplit(".", cut)[0] for path in paths for cut in range(path.count(".") + 1)}
    assert SURFACE.bodies[resource].kinds.keys() <= known


def test_what_is_not_honoured_is_named_in_one_answer(http: httpx.Client, bucket: storage.Bucket) -> None:
    path = f"/storage/v1/b/{bucket.name}/o"
    answer = http.get(f"{path}?filter=contexts.a%3Ab&colour=red")
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == (
        "The parameter filter is not imitated by the local stack; the parameter colour is unknown:"
        " leave out what this names."
    )
    answer = http.patch(
        f"{path}/a", json={"acl": [{"entity": "allUsers"}], "kmsKeyName": "k", "contexts": None}
    )
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(
        "Object.acl is not imitated by the local stack; Object.kmsKeyName"
    )
    assert http.get(f"{path}?filter=").status_code == 200


def test_a_field_below_a_list_or_another_resource_is_checked(
    http: httpx.Client, bucket: storage.Bucket
) -> None:
    path = f"/storage/v1/b/{bucket.name}/o/to/compose"
    answer = http.post(path, json={"sourceObjects": [{"name": "a"}], "destination": {"kmsKeyName": "k"}})
    assert "Object.kmsKeyName is not imitated" in answer.json()["error"]["message"]
