"""A page in a browser on this machine reaches neither the gateway, nor a metadata server, nor a service."""

import httpx
import pytest

from trainstack.loopback import foreign

from .conftest import Replica

SERVICES = ["storage", "logging", "vertex", "iam", "pubsub"]
CROSS_SITE = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
OWN_PAGE = {"Host": "127.0.0.1:80", "Origin": "http://127.0.0.1:80"}


def address(replica: Replica, name: str) -> str:
    if name == "metadata":
        return f"http://{replica.identity.variables['GCE_METADATA_HOST']}"
    if name == "gateway":
        return f"http://127.0.0.1:{replica.gateway.port}"
    return f"http://127.0.0.1:{replica.gateway.backends[name].http}"


@pytest.mark.parametrize(
    ("verb", "headers", "is_foreign"),
    [
        ("GET", {"Host": "evil.example"}, True),  # DNS rebinding: same origin to the browser, so no Origin
        ("POST", {"Host": "evil.example:80"}, True),
        ("GET", {"Host": "storage.googleapis.com.evil.example"}, True),
        *(("GET", {"Host": host}, True) for host in ("127.0.0.1.evil.example:80", "10.0.0.1", "", "[::1")),
        *(("GET", {"Host": host}, False) for host in ("localhost:1234", "127.0.0.1", "[::1]:80")),
        ("POST", {"Origin": "https://evil.example"}, True),
        ("POST", {"Origin": "http://localhost.evil.example"}, True),
        ("GET", {"Origin": "https://evil.example"}, True),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, True),  # an image, a script
        (
            "POST",
            {**CROSS_SITE, "Content-Type": "text/plain"},
            True,
        ),  # fetch(…, {mode: "no-cors"}), or a form
        ("POST", {"Origin": "null"}, True),  # a sandboxed frame
        ("POST", {"Origin": "http://localhost:3000"}, True),  # a page of another port
        ("DELETE", {"Origin": "http://127.0.0.1:3000"}, True),
        ("POST", {"Sec-Fetch-Site": "same-site", "Content-Type": "text/plain"}, True),
        ("GET", {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}, False),
        *(("POST", {**OWN_PAGE, "Sec-Fetch-Site": site}, False) for site in ("same-origin", "none")),
    ],
)
def test_a_foreign_page_is_recognized_by_its_headers(
    verb: str, headers: dict[str, str], is_foreign: bool
) -> None:
    assert bool(foreign(verb, headers.items())) is is_foreign


@pytest.mark.parametrize("name", [*SERVICES, "metadata"])
def test_a_foreign_page_is_refused_everywhere(replica: Replica, name: str) -> None:
    assert httpx.post(address(replica, name), headers=CROSS_SITE, content=b"{}").status_code == 403


def test_a_container_answers_to_its_name_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_HOSTS", "Stack, ,stack.example")
    origin = ("Origin", "http://stack:8080")
    assert not foreign("POST", [("Host", "stack:8080"), origin])
    assert not foreign("GET", [("Host", "STACK.example")])
    assert foreign("GET", [("Host", "page.example")])
    assert foreign("GET", [("Host", "")])
    assert foreign("POST", [("Host", "stack:8081"), origin])


@pytest.mark.parametrize("name", [*SERVICES, "metadata", "gateway"])
def test_no_page_may_send_headers_of_its_own_or_read_an_answer(replica: Replica, name: str) -> None:
    """So a page can show neither `Metadata-Flavor` nor a token: a browser asks first, and is not allowed."""
    headers = {
        "Origin": "http://localhost:3000",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization, metadata-flavor",
    }
    answer = httpx.options(address(replica, name), headers=headers)
    assert not answer.is_success
    assert not [name for name in answer.headers if name.startswith("access-control-")]
