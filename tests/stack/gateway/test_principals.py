"""Which requests name a principal, and which are refused for the token that they show or lack."""

import contextlib
import ssl
from collections.abc import Iterator

import grpc
import httpx
import pytest
from google.cloud.aiplatform_v1.types import ListCustomJobsRequest
from google.cloud.logging_v2.types import ListSinksRequest
from google.pubsub_v1 import types

from trainstack.iam.principals import Principal

from .conftest import ACCOUNT, PROJECT, Replica, bearer, grpc_port

HERE = f"projects/{PROJECT}"
CALLS = {
    "storage": ("GET", "storage.googleapis.com", f"/storage/v1/b?project={PROJECT}"),
    "logging": ("GET", "logging.googleapis.com", f"/v2/{HERE}/sinks"),
    "vertex": (
        "GET",
        "us-central1-aiplatform.googleapis.com",
        f"/v1/{HERE}/locations/us-central1/customJobs",
    ),
    "iam": ("GET", "cloudresourcemanager.googleapis.com", f"/v1/{HERE}"),
    "pubsub": ("GET", "pubsub.googleapis.com", f"/v1/{HERE}/topics"),
}
every_service = pytest.mark.parametrize("service", CALLS)


def call(replica: Replica, service: str, headers: dict[str, str], client: httpx.Client) -> httpx.Response:
    """One call of the service, at its own port."""
    verb, _, path = CALLS[service]
    url = f"http://127.0.0.1:{replica.gateway.backends[service].http}{path}"
    return client.request(verb, url, headers=headers)


@pytest.fixture(scope="module")
def direct() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def through(replica: Replica) -> Iterator[httpx.Client]:
    """A client whose every request goes through the gateway."""
    trusting = ssl.create_default_context(cafile=replica.identity.variables["SSL_CERT_FILE"])
    proxy = replica.identity.variables["https_proxy"]
    with httpx.Client(proxy=proxy, verify=trusting, trust_env=False, timeout=60) as client:
        yield client


def unauthenticated(answer: httpx.Response) -> bool:
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert answer.json()["error"]["status"] == "UNAUTHENTICATED"
    return answer.status_code == 401


@every_service
def test_without_a_token_this_machines_requests_are_the_local_users(
    replica: Replica, service: str, direct: httpx.Client
) -> None:
    assert call(replica, service, {}, direct).status_code == 200


@every_service
@pytest.mark.parametrize("header", ["Bearer guessed", "Bearer", "Basic dTpw", "é"])
def test_a_token_that_is_none_is_refused(
    replica: Replica, service: str, header: str, direct: httpx.Client
) -> None:
    assert unauthenticated(call(replica, service, {"Authorization": header.encode()}, direct))  # type: ignore[dict-item]


@every_service
def test_a_token_is_good_until_its_job_has_ended(
    replica: Replica, service: str, direct: httpx.Client
) -> None:
    token = replica.tokens.issue(Principal(kind="replica", name="2/workerpool0-0", email=ACCOUNT))
    assert call(replica, service, bearer(token), direct).status_code == 200
    replica.tokens.revoke(token)
    assert unauthenticated(call(replica, service, bearer(token), direct))


@every_service
def test_through_the_gateway_every_request_needs_a_token(
    replica: Replica, service: str, through: httpx.Client
) -> None:
    verb, host, path = CALLS[service]
    assert unauthenticated(through.request(verb, f"https://{host}{path}"))
    assert (
        through.request(verb, f"https://{host}{path}", headers=bearer(replica.identity.token)).status_code
        == 200
    )


def test_an_upload_is_read_to_its_end_before_it_is_refused(replica: Replica, direct: httpx.Client) -> None:
    url = f"http://127.0.0.1:{replica.gateway.backends['storage'].http}/upload/storage/v1/b/b/o?uploadType=media&name=a"
    answer = direct.post(url, content=b"x" * (32 << 20), headers=bearer("guessed"))
    assert unauthenticated(answer)


def test_an_endless_upload_without_good_credentials_is_not_read_on(
    replica: Replica, direct: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainstack.iam.authentication.DRAINED_MAX_BYTES", 1 << 20)
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while sent < 1 << 30:
            sent += 1 << 20
            yield b"x" * (1 << 20)

    url = f"http://127.0.0.1:{replica.gateway.backends['storage'].http}/upload/storage/v1/b/b/o?uploadType=media&name=a"
    with contextlib.suppress(httpx.TransportError):  # the answer, or the connection that is cut
        direct.post(url, content=endless(), headers=bearer("guessed"))
    assert sent < 1 << 28


@pytest.mark.parametrize("service", ["vertex", "logging"])
def test_grpc_in_front_of_rest_needs_a_token_too(replica: Replica, service: str) -> None:
    method, request = {
        "vertex": (
            "google.cloud.aiplatform.v1.JobService/ListCustomJobs",
            ListCustomJobsRequest.serialize(ListCustomJobsRequest(parent=f"{HERE}/locations/us-central1")),
        ),
        "logging": (
            "google.logging.v2.ConfigServiceV2/ListSinks",
            ListSinksRequest.serialize(ListSinksRequest(parent=HERE)),
        ),
    }[service]
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port(replica, service)}") as channel:
        ask = channel.unary_unary(f"/{method}")
        ask(request, metadata=[("authorization", f"Bearer {replica.identity.token}")], timeout=60)
        for metadata in ([], [("authorization", "Bearer guessed")]):
            with pytest.raises(grpc.RpcError) as refused:
                ask(request, metadata=metadata, timeout=60)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_pubsub_over_grpc_knows_its_callers(replica: Replica) -> None:
    request = types.ListTopicsRequest(project=HERE)
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port(replica, 'pubsub')}") as channel:
        ask = channel.unary_unary(
            "/google.pubsub.v1.Publisher/ListTopics",
            request_serializer=types.ListTopicsRequest.serialize,
            response_deserializer=types.ListTopicsResponse.deserialize,
        )
        pull = channel.stream_stream(
            "/google.pubsub.v1.Subscriber/StreamingPull",
            request_serializer=types.StreamingPullRequest.serialize,
            response_deserializer=types.StreamingPullResponse.deserialize,
        )
        guessed = [("authorization", "Bearer guessed")]
        ask(request, timeout=60)
        ask(request, metadata=[("authorization", f"Bearer {replica.identity.token}")], timeout=60)
        with pytest.raises(grpc.RpcError) as refused:
            ask(request, metadata=guessed, timeout=60)
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as refused:
            next(pull(iter([types.StreamingPullRequest()]), metadata=guessed, timeout=60))
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_permissions_are_those_of_the_principals_account(replica: Replica, direct: httpx.Client) -> None:
    storage = f"http://127.0.0.1:{replica.gateway.backends['storage'].http}/storage/v1/b"
    direct.post(f"{storage}?project={PROJECT}", json={"name": "principals-bucket"}).raise_for_status()
    asked = (
        f"{storage}/principals-bucket/iam/testPermissions?permissions=storage.objects.create&permissions=a.b"
    )
    own = direct.get(asked, headers=bearer(replica.identity.token)).json()
    assert own["permissions"] == ["storage.objects.create"]
    other = replica.tokens.issue(Principal(kind="replica", name="3/workerpool0-0", email="other@p"))
    assert direct.get(asked, headers=bearer(other)).json()["permissions"] == []
    assert direct.get(asked).json()["permissions"] == ["storage.objects.create", "a.b"]
