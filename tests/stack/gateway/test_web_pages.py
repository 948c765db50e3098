"""A page in a browser on this machine reaches neither the gateway, nor a metadata server, nor a service."""

import httpx
import pytest

from trainstack.loopback import foreign

from .conftest import Replica

SERVICES = ["storage", "logging", "vertex", "iam", "pubsub"]
CROSS_SITE = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}


def address(replica: Replica, name: str) -> str:
    if name == "metadata":
        return f"http://{replica.identity.variables['GCE_METADATA_HOST']}"
    if name == "gateway":
        return f"http://127.0.0.1:{replica.gateway.port}"
    return f"http://127.0.0.1:{replica.gateway.backends[name].http}"


@pytest.mark.parametrize("name", [*SERVICES, "metadata"])
@pytest.mark.parametrize(
    ("verb", "headers"),
    [
        ("GET", {"Host": "evil.example"}),  # DNS rebinding: same origin to the browser, so no Origin
        ("POST", {"Host": "evil.example:80"}),
        ("GET", {"Host": "storage.googleapis.com.evil.example"}),
        *(("GET", {"Host": host}) for host in ("127.0.0.1.evil.example:80", "10.0.0.1", "", "[::1")),
        *(
            ("POST", {"Origin": origin})
            for origin in ("https://evil.example", "http://localhost.evil.example")
        ),
        ("GET", {"Origin": "https://evil.example"}),
        ("GET", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}),  # an image, a script
        ("POST", {**CROSS_SITE, "Content-Type": "text/plain"}),  # fetch(…, {mode: "no-cors"}), or a form
        (
            "POST",
            {"Origin": "null", "Content-Type": "application/x-www-form-urlencoded"},
        ),  # a sandboxed frame
        ("POST", {"Origin": "http://localhost:3000", "Content-Type": "text/plain"}),  # a page of another port
        ("DELETE", {"Origin": "http://127.0.0.1:3000"}),
        ("POST", {"Sec-Fetch-Site": "same-site", "Content-Type": "text/plain"}),
    ],
)
def test_a_foreign_page_is_refused_everywhere(
    replica: Replica, name: str, verb: str, headers: dict[str, str]
) -> None:
    answer = httpx.request(
        verb, address(replica, name), headers=headers, content=b"{}" if verb == "POST" else None
    )
    assert answer.status_code == 403


def test_a_container_answers_to_its_name_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINMASTER_HOSTS", "Stack, ,stack.example")
    origin = ("Origin", "http://stack:8080")
    assert not foreign("POST", [("Host", "stack:8080"), origin])
    assert not foreign("GET", [("Host", "STACK.example")])
    assert foreign("GET", [("Host", "page.example")])
    assert foreign("GET", [("Host", "")])
    assert foreign("POST", [("Host", "stack:8081"), origin])


@pytest.mark.parametrize("name", [*SERVICES, "metadata", "gateway"])
@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:3000"])
def test_no_page_may_send_headers_of_its_own_or_read_an_answer(
    replica: Replica, name: str, origin: str
) -> None:
    """So a page can show neither `Metadata-Flavor` nor a token: a browser asks first, and is not allowed."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "authorization, metadata-flavor",
    }
    answer = httpx.options(address(replica, name), headers=headers)
    assert not answer.is_success
    assert not [name for name in answer.headers if name.startswith("access-control-")]
