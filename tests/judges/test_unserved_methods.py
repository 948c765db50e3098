"""Every method of the services' discovery documents is served, or refused in the one form that no client repeats."""

import re
from collections.abc import Iterator, Mapping

import httpx
import pytest

from tests.judges.discovery import api, filled
from tests.stack.services import Services, deployed_grants, every_service
from trainstack.http import in_thread
from trainstack.iam.authorization import REQUIRED
from trainstack.pubsub.api.methods import services as pubsub_calls
from trainstack.storage.api.routes import ACCESS, ROUTES

SERVICES = {
    "aiplatform.v1": "vertex",
    "cloudresourcemanager.v1": "iam",
    "cloudresourcemanager.v3": "iam",
    "iam.v1": "iam",
    "iamcredentials.v1": "iam",
    "logging.v2": "logging",
    "pubsub.v1": "pubsub",
    "storage.v1": "storage",
}
ROUTES_OF: Mapping[str, Mapping[str, str]] = {name: api("routes").document[name] for name in SERVICES}
OF_IAM = re.compile(
    r"projects\.(serviceAccounts\.)?(get|getIamPolicy|testIamPermissions)|projects\.serviceAccounts\.(list|generateAccessToken)"
)
"""Some only for projects, such as those of `generateAccessToken`, only for a project `-`."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    folder = tmp_path_factory.mktemp("services")
    with in_thread(lambda: every_service(folder, deployed_grants("p1"))) as running:
        yield running


def is_served(name: str, method: str, verb: str, path: str) -> bool:
    """Whether the service's own table has the method. An answer of a served one is another test's matter.

    Methods of ACLs are refused in the service's own words, and operations are found by the owner alone.
    """
    operations = r"projects\.locations\.((models|endpoints)\.)?operations\.(get|list|wait)"
    if "AccessControls." in method or re.fullmatch(operations, method):
        return True
    match SERVICES[name]:
        case "storage":
            is_route = any(route.verb == verb and route.pattern.fullmatch(path) for route in ROUTES)
            return is_route or ACCESS.fullmatch(path) is not None
        case "pubsub":
            calls = [call for calls in pubsub_calls().values() for call in calls]
            return any(call.verb == verb and call.pattern.fullmatch(path) for call in calls)
        case "iam":
            return OF_IAM.fullmatch(method) is not None
        case service:
            *_, kind, last = ["", *method.split(".")]
            is_nested = service == "vertex" and kind == "operations" and method.count(".") > 3
            return not is_nested and f"{service}.{kind}.{last.replace('patch', 'update')}" in REQUIRED


def unserved(name: str) -> list[str]:
    rows = []
    for method, route in ROUTES_OF[name].items():
        verb, _, template = route.partition(" ")
        path = filled(template)
        if not is_served(name, method, verb, path):
            rows.append(f"{verb} {path}")
    return rows


@pytest.mark.parametrize("name", SERVICES)
def test_every_unserved_method_is_refused_in_one_form(services: Services, name: str) -> None:
    """A body is sent where clients send one: a service that did not read it would break the connection."""
    with httpx.Client(base_url=services.urls[SERVICES[name]], timeout=60) as client:
        for call in unserved(name):
            verb, _, path = call.partition(" ")
            answer = client.request(verb, path, json={} if verb in ("POST", "PUT", "PATCH") else None)
            error = answer.json()["error"]
            assert (answer.status_code, error["code"], error["status"]) == (400, 400, "UNIMPLEMENTED"), call
            assert error["message"].startswith(f"The local stack does not serve {call}: "), call
