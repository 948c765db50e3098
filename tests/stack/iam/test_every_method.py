"""Every method of every service has its permissions in the table, and is closed to an account without grants."""

from typing import Any
from urllib.parse import urlencode

import grpc
import pytest

from tests.judges.surfaces import calls
from tests.stack.services import filled_rule, path_of
from trainstack.logging.entry import SURFACE as LOGGING
from trainstack.pubsub import wire
from trainstack.pubsub.api.methods import METHODS
from trainstack.storage.api.call import SURFACE
from trainstack.storage.api.routes import ROUTES, XML_ROUTES
from trainstack.vertex.resources.methods import methods

from .conftest import JOBS, LEDGER, PROJECT, REGION, STRANGER, UNAUTHORIZED, Served, call_pubsub, denied

NO_ACCOUNT_REFUSED = {
    "managedFolders.testIamPermissions",
    "buckets.testIamPermissions",  # answers which permissions the caller has
    "objects.insert PUT upload_id",  # the session's URI is the authorization, and there is no such session
    "objects.insert POST upload_id",
    "objects.insert PUT uploadId",
    "objects.insert POST uploadId",
    "objects.cancelUpload",
}
ALL_ROUTES = [
    route for route in (*ROUTES, *XML_ROUTES) if route.name != "batch"
]  # its requests are refused, one by one


@pytest.mark.parametrize("number", range(len(ALL_ROUTES)))
def test_every_route_of_storage_is_closed_to_an_account_without_a_grant(served: Served, number: int) -> None:
    route = ALL_ROUTES[number]
    filled = {
        "bucket": LEDGER,
        "object": "runs%2Fa.json",
        "entity": "allUsers",
        "to_bucket": LEDGER,
        "to_object": "b",
        "notification": "1",
        "folder": "team-a%2F",
        "project": PROJECT,
    }
    path = path_of(route).format(**filled)
    sources = {"sourceObjects": [{"name": "runs/a.json"}]} if route.name == "objects.compose" else {}
    options: dict[str, Any] = {"json": sources} if route.verb == "POST" else {}
    known = {"name": "new", route.marker: "none", "project": PROJECT}
    query = {name: value for name, value in known.items() if name in SURFACE.methods[route.name].kinds}
    query["uploadType"] = "resumable"
    if route in XML_ROUTES:
        query = {route.marker: "none"} if route.marker else {}
        query |= {"partNumber": "1"} if query and route.verb == "PUT" else {}
        options = {"headers": {"x-goog-resumable": "start"}}
    asked = f"{path}?{urlencode(query)}"
    answer = served.call(route.verb, "storage", asked, STRANGER, **options)
    if {route.name, f"{route.name} {route.verb} {route.marker}".strip()} & NO_ACCOUNT_REFUSED:
        assert answer.status_code in (200, 404), answer.text
    else:
        assert answer.status_code == 403, (route.name, answer.text)


def test_every_method_of_pubsub_is_closed_to_an_account_without_a_grant(served: Served) -> None:
    names = [name for methods in METHODS.values() for name in methods]
    for name in set(names) - {"TestIamPermissions"}:
        request = wire.types_of(name)[0]()
        with pytest.raises(grpc.RpcError) as refused:
            call_pubsub(served, name, request.SerializeToString(), STRANGER)
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED, name
        assert refused.value.details() == UNAUTHORIZED


VERTEX_AND_LOGGING = [
    *(("vertex", method.verb, filled_rule(method.path, PROJECT)) for _, method in methods()),
    ("vertex", "GET", f"/v1beta1/{JOBS}"),
    ("vertex", "POST", f"/emulator/v1/{JOBS}/1:preempt"),
    ("vertex", "PUT", "/emulator/v1/quota"),
    *(
        ("logging", *call)
        for name, call in calls(LOGGING, "logging.v2", names=PROJECT).items()
        if not name.startswith("entries")  # their projects are in their bodies: test_other_refusals.py
    ),
    ("logging", "GET", "/_stats"),
    ("iam", "GET", f"/v1/projects/{PROJECT}"),
    ("iam", "POST", "/emulator/v1/taken-grants"),
    *((service, "POST", "/emulator/v1/injections") for service in ("storage", "vertex", "logging")),
]


@pytest.mark.parametrize(("service", "verb", "path"), VERTEX_AND_LOGGING)
def test_every_route_of_the_others_is_closed_to_an_account_without_a_grant(
    served: Served, service: str, verb: str, path: str
) -> None:
    answer = served.call(verb, service, path, STRANGER, **({"json": {}} if verb != "GET" else {}))
    assert denied(answer)
    assert answer.json()["error"]["status"] == "PERMISSION_DENIED"


def test_a_method_that_is_not_served_is_no_matter_of_grants(served: Served) -> None:
    path = f"/v1/projects/{PROJECT}/locations/{REGION}/datasets"
    answers = [served.call("GET", "vertex", path, account) for account in ("", STRANGER)]
    assert [answer.json()["error"]["status"] for answer in answers] == ["UNIMPLEMENTED"] * 2


def test_a_refusal_names_the_permission_of_the_method_on_a_nested_resource(served: Served) -> None:
    place = f"/v1/projects/{PROJECT}/locations/{REGION}"
    for verb, path, permission in (
        ("POST", "/models:upload", "models.upload"),
        ("PATCH", "/metadataStores/default/contexts/c", "contexts.update"),
        ("GET", "/models/m@1:listVersions", "models.list"),
        ("GET", "/models/m/operations/1", "models.get"),
        ("POST", "/endpoints/e:deployModel", "endpoints.deploy"),
        ("GET", "/endpoints/e/operations", "operations.list"),
        ("POST", "/tensorboards/1/experiments/e/runs", "tensorboardRuns.create"),
    ):
        answer = served.call(
            verb, "vertex", place + path, STRANGER, **({"json": {}} if verb != "GET" else {})
        )
        assert f"'aiplatform.{permission}'" in denied(answer)
