"""The console answers only this machine's own browser, and changes something only for its own pages."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
import requests

from tests.web.consoles import TOKEN
from tests.web.routes import action_paths, api_paths, filled, page_paths
from trainmaster.client.context import Context, NoContext
from trainmaster.web.app import make_app
from trainmaster.web.forms import BODY_MAX, FIELDS_MAX
from trainmaster.web.source import ConsoleSource

HERE = "http://127.0.0.1:8123"
COOKIE = "trainmaster_console_8123"
ACTIONS = sorted(filled(path, "some-id") for path in action_paths())
PATHS = ["/", "/static/app.css", "/api/v1/runs", "/api/v1/openapi.json", "/runs", "/nothing", *ACTIONS]


def nothing_runs() -> Context:
    raise NoContext("No local stack is running.")


def stopped() -> Context:
    raise requests.ConnectionError("Connection aborted.", ConnectionResetError(104, "reset by peer"))


def broken() -> Context:
    raise ZeroDivisionError


@dataclass(kw_only=True)
class Browser:
    """Sends requests to a console, and keeps its cookies. It follows no redirection."""

    app: Any  # Any: an ASGI application, which Starlette and httpx describe differently
    headers: Mapping[str, str]
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:  # Any: httpx defines them
        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url=HERE, headers=self.headers, cookies=self.cookies
            ) as client:
                answer = await client.request(method, path, **more)
                self.cookies = client.cookies
                return answer

        return asyncio.run(sent())

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self.request("POST", path, **more)


def browser(
    *,
    writable: bool = True,
    is_secret: bool = False,
    headers: Mapping[str, str] | None = None,
    choose: Callable[[], Context] = nothing_runs,
) -> Browser:
    """A browser on a console without services: a request that passes every check gets 422 or 503."""
    source = ConsoleSource(choose, writable=writable)
    return Browser(app=make_app(source, token=TOKEN, is_secret=is_secret), headers=headers or {})


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1", "169.254.169.254", "127.0.0.1:80@evil.example"]
)  # fmt: skip
def test_a_foreign_host_is_refused_everywhere(path: str, host: str) -> None:
    answer = browser().get(path, headers={"host": host})
    assert answer.status_code == 403
    assert "The console answers only to" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8123"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": HERE, "sec-fetch-site": "cross-site"},
    ],
)
def test_a_change_from_a_foreign_page_is_refused_even_with_the_token(
    path: str, headers: dict[str, str]
) -> None:
    for address in (path, f"/api/v1{path}"):
        answer = browser().post(address, data={"token": TOKEN}, headers=headers)
        assert answer.status_code == 403
        assert "Only the console's own pages" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ACTIONS)
@pytest.mark.parametrize("given", [{}, {"token": ""}, {"token": TOKEN[:-1]}, {"token": "\ud7ff\u202e"}])
def test_a_change_without_the_token_is_refused(path: str, given: dict[str, str]) -> None:
    page = browser().post(path, data=given)
    assert (page.status_code, "lacks the token of this session" in page.text) == (403, True)
    document = browser().post(f"/api/v1{path}", json=given)
    assert document.status_code == 403
    message = document.json()["error"]["message"]
    assert ("lacks the token" in message, "form" in message) == (True, False)
    assert "Authorization: Bearer TOKEN" in message


@pytest.mark.parametrize("path", ACTIONS)
def test_a_form_from_before_the_console_was_started_again_leads_back_to_the_form(path: str) -> None:
    page = browser().post(path, data={"token": "of-an-earlier-session"}).text
    assert f'<a class="button" href="{path}">Back to the form</a>' in page
    assert "--write" not in page


@pytest.mark.parametrize("path", ["/api/v1", "/api/v1/"])
def test_the_root_of_the_api_lists_its_paths(path: str) -> None:
    document = browser().get(path).json()
    assert document["description"] == "/api/v1/openapi.json"
    assert document["paths"]["/api/v1/runs/{run_id}/again"] == ["POST"]
    assert document["paths"]["/api/v1/runs"] == ["GET"]


def test_the_cookie_alone_changes_nothing() -> None:
    for path in ACTIONS:
        answer = browser(is_secret=True, headers={"cookie": f"{COOKIE}={TOKEN}"}).post(path)
        assert answer.status_code == 403


@pytest.mark.parametrize("path", ACTIONS)
def test_a_change_from_the_own_page_or_a_program_with_the_token_passes_the_checks(path: str) -> None:
    own = {"origin": HERE, "sec-fetch-site": "same-origin"}
    for answer in (
        browser().post(path, data={"token": TOKEN}, headers=own),
        browser().post(path, headers={"authorization": f"Bearer {TOKEN}"}),
        browser().post(f"/api/v1{path}", headers={"authorization": f"Bearer {TOKEN}"}, json={}),
    ):
        assert answer.status_code in {422, 503}, answer.text


@pytest.mark.parametrize("path", ACTIONS)
def test_a_console_that_only_reads_refuses_every_change_and_has_no_token(path: str) -> None:
    reading = browser(writable=False)
    answer = reading.post(path, data={"token": TOKEN})
    assert (answer.status_code, "This console only reads" in answer.text) == (403, True)
    assert reading.post(f"/api/v1{path}", json={"token": TOKEN}).status_code == 403
    assert TOKEN not in reading.get(path).text


def test_a_secret_console_shows_nothing_without_its_key() -> None:
    secret = browser(is_secret=True)
    pages = [filled(path, "some-id") for path in (*page_paths(), *(f"/api/v1{path}" for path in api_paths()))]
    for path in (*pages, "/api/v1/openapi.json", "/nothing", *ACTIONS):
        for given in ({}, {"key": TOKEN[:-1]}):
            answer = secret.get(path, params=given)
            assert (answer.status_code, TOKEN in answer.text) == (403, False), path
        wrong = {"authorization": f"Bearer {TOKEN}x", "cookie": f"{COOKIE}={TOKEN}x"}
        assert secret.get(path, headers=wrong).status_code == 403
    other_port = {"cookie": f"trainmaster_console_9={TOKEN}"}
    assert secret.get("/", headers=other_port).status_code == 403
    assert secret.get("/static/app.css").status_code == 200


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        (f"/?key={TOKEN}", "/"),
        (f"/runs?state=failed&key={TOKEN}&state=running&label=a%3Db%26c", "/runs?state=failed&state=running&label=a%3Db%26c"),
        (f"/runs/a%3Fb%25?key={TOKEN}", "/runs/a%3Fb%25"),
        (f"//evil.example/runs?key={TOKEN}", "/evil.example/runs"),
    ],
)  # fmt: skip
def test_the_key_becomes_a_cookie_of_this_port_and_leaves_the_address(asked: str, target: str) -> None:
    secret = browser(is_secret=True)
    answer = secret.get(f"{HERE}{asked}")
    assert (answer.status_code, answer.headers["location"]) == (303, target)
    name, *rest = (part.strip().lower() for part in answer.headers["set-cookie"].split(";"))
    assert name == f"{COOKIE}={TOKEN}".lower()
    assert {"httponly", "samesite=strict", "path=/"} <= set(rest)
    assert secret.get("/").status_code == 503  # the client keeps the cookie; nothing runs behind this console
    assert secret.request("HEAD", f"{HERE}{asked}").status_code == 303


def test_a_program_reads_a_secret_console_with_the_key_in_a_header() -> None:
    secret = browser(is_secret=True, headers={"authorization": f"bearer {TOKEN}"})
    assert secret.get("/api/v1/openapi.json").status_code == 200


@pytest.mark.parametrize("path", ACTIONS[:1])
@pytest.mark.parametrize(
    ("content", "kind", "problem"),
    [
        (b"a=" + b"x" * BODY_MAX, "application/x-www-form-urlencoded", "has more than"),
        (b'{"a": "' + b"x" * BODY_MAX + b'"}', "application/json", "has more than"),
        (b"a=1&" * (FIELDS_MAX + 1), "application/x-www-form-urlencoded", "not a form"),
        (b"\xff\xfe", "application/x-www-form-urlencoded", "not a form"),
        (b"token=x", "text/plain", "Expected a body of type"),
        (b"token=x", "multipart/form-data; boundary=x", "Expected a body of type"),
        (b"{", "application/json", "not JSON"),
        (b"[" * 100_000, "application/json", "not JSON"),
        (b'{"a": "\\ud800"}', "application/json", "not JSON"),
        (b"9" * 5000, "application/json; charset=utf-8", "not JSON"),
        (b'["a"]', "application/json", "Expected a JSON object of texts"),
        (b'{"a": {"b": 1}}', "application/json", "Expected a JSON object of texts"),
        (b'{"a": 1.5}', "application/json", "Expected a JSON object of texts"),
    ],
)
def test_a_body_that_is_too_large_or_no_form_is_refused(
    path: str, content: bytes, kind: str, problem: str
) -> None:
    headers = {"content-type": kind, "authorization": f"Bearer {TOKEN}"}
    page = browser().post(path, content=content, headers=headers)
    status = 413 if len(content) > BODY_MAX else 422
    assert (page.status_code, problem in page.text) == (status, True), page.text
    document = browser().post(f"/api/v1{path}", content=content, headers=headers)
    assert (document.status_code, problem in document.json()["error"]["message"]) == (status, True)


def test_every_answer_forbids_scripts_frames_and_caches_of_others() -> None:
    client, failing = browser(), browser(choose=broken)
    answers = {
        200: client.get("/static/app.css"),
        303: client.get(f"/?key={TOKEN}"),
        403: client.get("/", headers={"host": "evil.example"}),
        404: client.get("/nothing"),
        405: client.request("PUT", "/runs"),
        422: client.post(ACTIONS[0], content=b"x"),
        500: failing.get("/runs"),
        503: client.get("/"),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == ("public, max-age=3600" if status == 200 else "no-store")


@pytest.mark.parametrize("choose", [stopped, nothing_runs])
def test_a_lost_stack_is_reported_and_keeps_an_open_page(choose: Callable[[], Context]) -> None:
    page = browser(choose=choose).get("/runs/some-id")
    assert page.status_code == 503
    assert 'data-fault="lost"' in page.text
    assert "trainmaster up" in page.text
    assert "ConnectionResetError" not in page.text
    assert 'data-fault=""' in browser(choose=choose).get("/nothing").text


def test_an_error_of_the_console_shows_none_of_its_text() -> None:
    page, document = browser(choose=broken).get("/runs"), browser(choose=broken).get("/api/v1/runs")
    for answer in (page, document):
        assert (answer.status_code, "The console could not answer" in answer.text) == (500, True)
        assert "ZeroDivision" not in answer.text


@pytest.mark.parametrize("path", ["/", "/runs", "/static/app.css", "/api/v1/openapi.json"])
def test_head_is_get_without_the_content(path: str) -> None:
    got = browser().get(path)
    head = browser().request("HEAD", path, headers={"accept": "text/event-stream"})
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-length"] == got.headers["content-length"]


def test_an_unknown_path_names_itself_as_text() -> None:
    answer = browser().get("/<script>alert(1)</script>")
    assert answer.status_code == 404
    assert "Nothing is at /&lt;script&gt;alert(1)&lt;/script&gt;." in answer.text
    document = browser().get("/api/v1/nothing").json()
    assert document["error"] == {"status": 404, "message": "Nothing is at /api/v1/nothing."}
