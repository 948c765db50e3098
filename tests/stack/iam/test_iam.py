"""Permissions asked for over the wire: what the deployment's table grants, and what a test took away."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import httpx
import pytest
from google.api_core.exceptions import Forbidden
from google.cloud.storage import Client
from google.oauth2.credentials import Credentials

from tests.stack.services import DEPLOY
from trainmaster.cli.stack.product import read_topology
from trainmaster.orchestrator.core.deployment_names import account_email as deployed_email
from trainstack.http import in_thread, serving
from trainstack.iam import Grants, application
from trainstack.iam.principals import LOCAL_USER, Principal, Tokens, TooManyTokensError
from trainstack.stack.access import account_email, grants_of
from trainstack.stack.topology import Topology
from trainstack.transcoding import iam_calls
from trainstack.transcoding.grpc_server import LazyGrpcServer

from .conftest import LEDGER, PROJECT, REGION, Served, email

TICK = email("tm-on-tick")
SCOPE = ["https://www.googleapis.com/auth/cloud-platform"]


@pytest.fixture(scope="module")
def topology() -> Topology:
    return read_topology(DEPLOY / "topology.yaml", project=PROJECT, region=REGION)


@pytest.fixture
def iam(served: Served) -> Iterator[httpx.Client]:
    """Everything is granted as the table says, whatever the test before took away."""
    with httpx.Client(base_url=served.urls["iam"], timeout=60) as client:
        yield client
    served.grants.restore()


def token(iam: httpx.Client, email: str = TICK) -> dict[str, str]:
    answer = iam.post(
        f"/v1/projects/-/serviceAccounts/{email}:generateAccessToken",
        json={"scope": SCOPE, "lifetime": "300s"},
    )
    assert answer.status_code == 200, answer.text
    return {"Authorization": f"Bearer {answer.json()['accessToken']}"}


def held(
    iam: httpx.Client, resource: str, *permissions: str, headers: dict[str, str] | None = None
) -> list[str]:
    version = "v2" if "/services/" in resource else "v1"
    answer = iam.post(
        f"/{version}/{resource}:testIamPermissions",
        json={"permissions": list(permissions)},
        headers=headers or {},
    )
    assert answer.status_code == 200, answer.text
    found: list[str] = answer.json().get("permissions", [])
    return found


def test_credentials_are_made_by_grpc_as_by_rest(served: Served) -> None:
    methods = iam_calls.services()["google.iam.credentials.v1.IAMCredentials"]
    owner = f"Bearer {served.tokens.issue(LOCAL_USER)}"
    fields: list[dict[str, Any]] = [{"scope": SCOPE}, {"payload": b"x"}]

    async def called() -> list[Any]:
        server = LazyGrpcServer(base_url=served.urls["iam"], services=iam_calls.services)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{await server.port()}") as channel:
            answers = [
                await channel.unary_unary(
                    f"/google.iam.credentials.v1.IAMCredentials/{method.name}",
                    request_serializer=method.request.SerializeToString,
                    response_deserializer=method.response.FromString,
                )(
                    method.request(name=f"projects/-/serviceAccounts/{TICK}", **more),
                    metadata=[("authorization", owner)],
                )
                for method, more in zip(methods, fields, strict=True)
            ]
        await server.stop()
        return answers

    made, signed = asyncio.run(called())
    assert served.tokens.principal_of(made.access_token) == Principal(kind="account", name=TICK, email=TICK)
    assert served.tokens.keys.is_signature(TICK, b"x", signed.signed_blob)


@pytest.mark.parametrize("prefix", ["", "stage-"])
@pytest.mark.parametrize("name", ["trainer", "on-request-published", "trainer-recommendations-eu"])
def test_accounts_have_the_names_that_the_deployment_gives_them(
    prefix: str, name: str, topology: Topology
) -> None:
    local = replace(topology, prefix=prefix)
    assert account_email(name, local) == deployed_email(name, PROJECT, prefix)


def test_the_owner_may_do_everything(iam: httpx.Client) -> None:
    permissions = ["logging.sinks.delete", "storage.buckets.delete"]
    assert held(iam, f"projects/{PROJECT}", *permissions) == permissions


def test_a_permission_that_is_misspelt_is_granted_to_no_one(iam: httpx.Client) -> None:
    body = {"permissions": ["storage.buckets.delete", "storage.bucket.delete", "foo.bar"]}
    answer = iam.post(f"/v1/projects/{PROJECT}:testIamPermissions", json=body)
    assert answer.status_code == 400
    assert "['storage.bucket.delete', 'foo.bar']" in answer.json()["error"]["message"]


def test_service_accounts_are_those_with_grants_and_others_do_not_exist(iam: httpx.Client) -> None:
    listed = iam.get(f"/v1/projects/{PROJECT}/serviceAccounts").json()["accounts"]
    assert TICK in [account["email"] for account in listed]
    account = iam.get(f"/v1/projects/-/serviceAccounts/{TICK}").json()
    assert account in listed
    absent = f"/v1/projects/{PROJECT}/serviceAccounts/absent@{PROJECT}.iam.gserviceaccount.com"
    answers = [
        iam.get(absent),
        iam.post(f"{absent}:getIamPolicy"),
        iam.post(f"{absent}:testIamPermissions", json={"permissions": ["iam.serviceAccounts.actAs"]}),
    ]
    assert [answer.status_code for answer in answers] == [404] * 3


def test_an_account_has_what_its_grants_give_and_no_more(iam: httpx.Client) -> None:
    headers = token(iam)
    asked = ("aiplatform.customJobs.create", "logging.sinks.delete")
    assert held(iam, f"projects/{PROJECT}", *asked, headers=headers) == ["aiplatform.customJobs.create"]
    notices, requests = (f"projects/{PROJECT}/topics/trainmaster-{each}" for each in ("notices", "requests"))
    assert held(iam, notices, "pubsub.topics.publish", headers=headers) == ["pubsub.topics.publish"]
    assert held(iam, requests, "pubsub.topics.publish", headers=headers) == []
    trainer = f"projects/{PROJECT}/serviceAccounts/tm-trainer@{PROJECT}.iam.gserviceaccount.com"
    assert held(iam, trainer, "iam.serviceAccounts.actAs", headers=headers) == ["iam.serviceAccounts.actAs"]


def test_a_resource_that_a_smaller_topology_lacks_has_no_bindings(topology: Topology) -> None:
    alerts = topology.topic_name("alerts")
    assert grants_of(topology, DEPLOY / "permissions.yaml").policy(alerts).get("bindings")
    topics = {role: topic for role, topic in topology.topics.items() if role != "alerts"}
    smaller = grants_of(replace(topology, topics=topics), DEPLOY / "permissions.yaml")
    assert "bindings" not in smaller.policy(alerts)
    assert smaller.policy(topology.topic_name("notices")).get("bindings")


def test_a_grant_on_an_unknown_kind_of_thing_is_not_taken_for_one_on_the_project(
    topology: Topology, tmp_path: Path
) -> None:
    table = (DEPLOY / "permissions.yaml").read_text()
    (tmp_path / "permissions.yaml").write_text(
        table.replace("thing: {topic: alerts}", "thing: {queue: alerts}")
    )
    with pytest.raises(ValueError, match="queue 'alerts'"):
        grants_of(topology, tmp_path / "permissions.yaml")


def test_policies_show_the_bindings_of_a_resource(iam: httpx.Client) -> None:
    topic = f"projects/{PROJECT}/topics/trainmaster-job-logs"
    (binding,) = iam.get(f"/v1/{topic}:getIamPolicy").json()["bindings"]
    assert binding["role"] == "roles/pubsub.publisher"
    assert [each.split("@")[1] for each in binding["members"]] == ["gcp-sa-logging.iam.gserviceaccount.com"]
    project = iam.post(f"/v1/projects/{PROJECT}:getIamPolicy").json()
    roles = {each["role"] for each in project["bindings"]}
    assert f"projects/{PROJECT}/roles/trainmaster_jobs" in roles
    run = iam.get(f"/v2/projects/{PROJECT}/locations/{REGION}/services/on-tick:getIamPolicy").json()
    assert [each["role"] for each in run["bindings"]] == ["roles/run.invoker"]


def test_a_grant_that_is_taken_away_is_gone_until_it_is_restored(iam: httpx.Client) -> None:
    project, headers = f"projects/{PROJECT}", token(iam)
    jobs = ("aiplatform.customJobs.create",)
    taken = {"grants": [{"member": f"serviceAccount:{TICK}", "role": "*/trainmaster_*", "resource": "*"}]}
    assert iam.post("/emulator/v1/taken-grants", json=taken).json()["grants"] == taken["grants"]
    assert held(iam, project, *jobs, headers=headers) == []
    assert TICK not in iam.post(f"/v1/{project}:getIamPolicy").text
    other = token(iam, f"tm-on-alert@{PROJECT}.iam.gserviceaccount.com")
    assert held(iam, project, *jobs, headers=other) == [*jobs]
    assert iam.delete("/emulator/v1/taken-grants").json() == {"grants": [], "permissions": []}
    assert held(iam, project, *jobs, headers=headers) == [*jobs]


def test_a_permission_taken_from_the_owner_is_refused(iam: httpx.Client) -> None:
    iam.post(
        "/emulator/v1/taken-grants",
        json={"permissions": [{"permission": "*.get*", "resource": f"projects/{PROJECT}*"}]},
    )
    path = f"/v1/projects/-/serviceAccounts/{TICK}:generateAccessToken"
    refused = [
        iam.post(path, json={"scope": SCOPE}),
        iam.post(f"/v1/projects/{PROJECT}:getIamPolicy"),
        iam.get(f"/v1/projects/{PROJECT}/topics/t:getIamPolicy"),
    ]
    assert [answer.status_code for answer in refused] == [403] * 3
    assert {answer.json()["error"]["status"] for answer in refused} == {"PERMISSION_DENIED"}


def test_buckets_are_asked_about_with_the_official_client(iam: httpx.Client, served: Served) -> None:
    bearer = token(iam)["Authorization"].removeprefix("Bearer ")
    client = Client(
        project=PROJECT,
        credentials=Credentials(bearer),
        client_options={"api_endpoint": served.urls["storage"]},
    )
    with contextlib.closing(client):
        bucket = client.bucket(LEDGER)
        asked = ["storage.objects.create", "storage.buckets.delete"]
        assert bucket.test_iam_permissions(asked) == ["storage.objects.create"]
        with pytest.raises(Forbidden, match=r"does not have storage\.buckets\.getIamPolicy access"):
            bucket.get_iam_policy()
    path = f"/storage/v1/b/{LEDGER}/iam"
    roles = {binding["role"] for binding in served.call("GET", "storage", path).json()["bindings"]}
    assert roles == {f"roles/storage.object{name}" for name in ("User", "Creator", "Viewer")}
    owned = served.call("GET", "storage", f"{path}/testPermissions?permissions=storage.buckets.delete")
    assert owned.json()["permissions"] == ["storage.buckets.delete"]
    unknown = served.call("GET", "storage", f"{path}/testPermissions?permissions=foo.bar")
    assert unknown.status_code == 400
    assert "foo.bar" in unknown.json()["error"]["message"]


def test_a_project_has_a_number(iam: httpx.Client) -> None:
    found = iam.get(f"/v1/projects/{PROJECT}").json()
    assert found["projectId"] == PROJECT
    assert len(found["projectNumber"]) == 12
    assert iam.get("/v1/projects/other").status_code == 403


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (f"/v1/projects/{PROJECT}:testIamPermissions", b"[]", 400),
        (f"/v1/projects/{PROJECT}:testIamPermissions", b'{"permissions": [1]}', 400),
        (f"/v1/projects/{PROJECT}:testIamPermissions", b'{"permissions": ["storage.*"]}', 400),
        (f"/v1/projects/-/serviceAccounts/{TICK}:generateAccessToken", b"{}", 400),
        (
            f"/v1/projects/-/serviceAccounts/{TICK}:generateAccessToken",
            b'{"scope":["s"],"lifetime":"9h"}',
            400,
        ),
        ("/v1/projects/-/serviceAccounts/nobody:generateAccessToken", b'{"scope":["s"]}', 403),
        (f"/v1/projects/{PROJECT}:testIamPermissions", b'{"permissions": ["\\ud800"]}', 400),
        ("/emulator/v1/taken-grants", b'{"permissions": [{"permission": "\\udfff", "resource": "r"}]}', 400),
        (f"/v1/projects/-/serviceAccounts/{TICK}:generateAccessToken", b'{"scope": ["\\ud800"]}', 400),
        ("/emulator/v1/taken-grants", b'{"grants": {}}', 400),
        ("/emulator/v1/taken-grants", b'{"grants": [{"member": 1}]}', 400),
        ("/emulator/v1/taken-grants", b"{}", 400),
    ],
)
def test_an_invalid_request_is_refused(iam: httpx.Client, path: str, body: bytes, status: int) -> None:
    answer = iam.post(path, content=body)
    assert answer.status_code == status, answer.text
    error: dict[str, Any] = answer.json()["error"]
    assert error["code"] == status


def test_a_token_of_the_stack_is_its_own_refresh_token_and_no_other_is_known(grants: Grants) -> None:
    tokens = Tokens()
    known = tokens.issue(Principal(kind="account", name=TICK, email=TICK))
    with in_thread(lambda: serving(application(grants, tokens))) as url:
        good, bad, none = (
            httpx.post(f"{url}/token", data={"grant_type": "refresh_token", **fields}, timeout=60)
            for fields in ({"refresh_token": known}, {"refresh_token": "of an account"}, {})
        )
    assert good.json()["access_token"] == known
    assert [(each.status_code, each.json()["error"]) for each in (bad, none)] == [(400, "invalid_grant")] * 2


def test_tokens_with_a_lifetime_are_bounded_and_expired_ones_make_room() -> None:
    tokens, account = Tokens(max_expiring=2), Principal(kind="account", name=TICK, email=TICK)
    good, _ = tokens.issue(account, lifetime_s=3600), tokens.issue(account, lifetime_s=0)
    tokens.issue(account, lifetime_s=3600)
    with pytest.raises(TooManyTokensError, match="all 2 allowed tokens"):
        tokens.issue(account, lifetime_s=3600)
    assert tokens.principal_of(tokens.issue(account)) == account  # a replica's is not counted
    tokens.revoke(good)
    tokens.issue(account, lifetime_s=3600)


def test_too_many_access_tokens_are_refused_until_one_expires(grants: Grants) -> None:
    with (
        in_thread(lambda: serving(application(grants, Tokens(max_expiring=1)))) as url,
        httpx.Client(base_url=url, timeout=60) as client,
    ):
        token(client)
        refused = client.post(
            f"/v1/projects/-/serviceAccounts/{TICK}:generateAccessToken", json={"scope": SCOPE}
        )
    assert refused.status_code == 429
    assert refused.json()["error"]["status"] == "RESOURCE_EXHAUSTED"
