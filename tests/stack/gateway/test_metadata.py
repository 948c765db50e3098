"""The metadata server answers as Compute Engine's does, for as long as its job runs."""

from collections.abc import Iterator

import httpx
import pytest

from .conftest import ACCOUNT, PROJECT, Replica

NUMBER = "123456789012"
ACCOUNTS = "instance/service-accounts"


@pytest.fixture(scope="module")
def metadata(replica: Replica) -> Iterator[httpx.Client]:
    root = f"http://{replica.identity.variables['GCE_METADATA_HOST']}/computeMetadata/v1/"
    with httpx.Client(base_url=root, headers={"Metadata-Flavor": "Google"}, timeout=60) as client:
        yield client


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("", "instance/\nproject/\nuniverse/\n"),
        ("project/project-id", PROJECT),
        ("project/numeric-project-id", NUMBER),
        ("instance/zone", f"projects/{NUMBER}/zones/us-central1-a"),
        ("instance/region", f"projects/{NUMBER}/regions/us-central1"),
        (f"{ACCOUNTS}/", f"default/\n{ACCOUNT}/\n"),
        (f"{ACCOUNTS}/default/", "aliases\nemail\nscopes\ntoken\n"),
        (f"{ACCOUNTS}/default/email", ACCOUNT),
        (f"{ACCOUNTS}/{ACCOUNT}/email", ACCOUNT),
        (f"{ACCOUNTS}/default/scopes", "https://www.googleapis.com/auth/cloud-platform\n"),
        ("universe/universe-domain", "googleapis.com"),
    ],
)
def test_a_key_is_a_text_and_a_directory_a_list(metadata: httpx.Client, key: str, text: str) -> None:
    answer = metadata.get(key)
    assert (answer.status_code, answer.text) == (200, text)
    assert answer.headers["metadata-flavor"] == "Google"


def test_a_directory_is_read_whole_without_its_tokens(metadata: httpx.Client) -> None:
    account = {
        "aliases": ["default"],
        "email": ACCOUNT,
        "scopes": ["https://www.googleapis.com/auth/cloud-platform"],
    }
    assert metadata.get(f"{ACCOUNTS}/default/?recursive=true").json() == account
    assert metadata.get("?recursive=true").json() == {
        "instance": {
            "region": f"projects/{NUMBER}/regions/us-central1",
            "serviceAccounts": {"default": account, ACCOUNT: account},
            "zone": f"projects/{NUMBER}/zones/us-central1-a",
        },
        "project": {"numericProjectId": int(NUMBER), "projectId": PROJECT},
        "universe": {"universeDomain": "googleapis.com"},
    }


def test_the_token_is_the_replicas_own(replica: Replica, metadata: httpx.Client) -> None:
    token = metadata.get(f"{ACCOUNTS}/default/token").json()
    assert token == {"access_token": replica.identity.token, "expires_in": 3600, "token_type": "Bearer"}


@pytest.mark.parametrize(
    "key", ["instance/nothing", "instance/zone/more", f"{ACCOUNTS}/other@p/token", f"{ACCOUNTS}/default/identity"]
)  # fmt: skip
def test_an_unknown_key_is_not_found(metadata: httpx.Client, key: str) -> None:
    assert metadata.get(key).status_code == 404


@pytest.mark.parametrize("key", ["project/project-id", f"{ACCOUNTS}/default/token"])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Metadata-Flavor": "other"},
        {"Metadata-Flavor": "Google", "X-Forwarded-For": "10.0.0.1"},
    ],
)
def test_without_its_header_or_through_another_server_a_request_is_refused(
    metadata: httpx.Client, key: str, headers: dict[str, str]
) -> None:
    answer = httpx.get(metadata.base_url.join(key), headers=headers, timeout=60)
    assert answer.status_code == 403
    assert "access_token" not in answer.text
