"""The principal of a request, and refusals for the token that it shows or lacks."""

import contextlib
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
GUESSED = [("authorization", "Bearer guessed")]
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


def unauthenticated(answer: httpx.Response) -> bool:
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    # Cloud Storage has no status in its refusals of anonymous callers
    assert answer.json()["error"].get("status", "UNAUTHENTICATED") == "UNAUTHENTICATED"
    return answer.status_code == 401


@every_service
def test_without_a_token_this_machines_requests_are_the_local_users(
    replica: Replica, service: str, direct: httpx.Client
) -> None:
    assert call(replica, service, {}, direct).status_code == 200


@every_service
@pytest.mark.parametrize("header", ["Bearer guessed", "Bearer", "Basic dTpw", "é"])
def test_an_invalid_token_is_refused(
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


def test_an_upload_session_needs_no_token_and_opens_nothing_else(
    replica: Replica, through: httpx.Client
) -> None:
    authority, root = bearer(replica.identity.token), "https://storage.googleapis.com"
    through.post(f"{root}/storage/v1/b?project={PROJECT}", headers=authority, json={"name": "sessions"})
    begun = through.post(
        f"{root}/upload/storage/v1/b/sessions/o?uploadType=resumable&name=a", headers=authority, json={}
    )
    assert through.put(begun.headers["location"], content=b"x").status_code == 200
    assert unauthenticated(through.get(f"{root}/storage/v1/b/sessions/o/a?upload_id=1"))
    assert "<Code>AccessDenied</Code>" in through.get(f"{root}/sessions/a?upload_id=1").text


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


UNARY: dict[str, tuple[str, bytes]] = {
    "vertex": (
        "google.cloud.aiplatform.v1.JobService/ListCustomJobs",
        ListCustomJobsRequest.serialize(ListCustomJobsRequest(parent=f"{HERE}/locations/us-central1")),
    ),
    "logging": (
        "google.logging.v2.ConfigServiceV2/ListSinks",
        ListSinksRequest.serialize(ListSinksRequest(parent=HERE)),
    ),
    "pubsub": (
        "google.pubsub.v1.Publisher/ListTopics",
        types.ListTopicsRequest.serialize(types.ListTopicsRequest(project=HERE)),
    ),
}


@pytest.mark.parametrize("service", UNARY)
def test_grpc_calls_with_an_invalid_token_are_refused_and_without_one_in_front_of_rest(
    replica: Replica, service: str
) -> None:
    method, request = UNARY[service]
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port(replica, service)}") as channel:
        ask = channel.unary_unary(f"/{method}")
        ask(request, metadata=[("authorization", f"Bearer {replica.identity.token}")], timeout=60)
        for metadata in (GUESSED,) if service == "pubsub" else (GUESSED, []):
            with pytest.raises(grpc.RpcError) as refused:
                ask(request, metadata=metadata, timeout=60)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_pubsub_over_grpc_needs_no_token_and_refuses_streams_with_an_invalid_one(replica: Replica) -> None:
    method, request = UNARY["pubsub"]
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port(replica, 'pubsub')}") as channel:
        channel.unary_unary(f"/{method}")(request, timeout=60)
        pull = channel.stream_stream("/google.pubsub.v1.Subscriber/StreamingPull")
        with pytest.raises(grpc.RpcError) as refused:
            next(pull(iter([b""]), metadata=GUESSED, timeout=60))
        assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED
