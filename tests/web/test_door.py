"""A console for a team: nothing is answered without Identity-Aware Proxy's assertion, and the policy says who may act."""

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.client.answering import Functions, served_functions
from tests.client.served import deployment, run_record
from tests.web.consoles import TOKEN, form
from tests.web.routes import action_paths, api_paths, filled, page_paths
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT
from trainmaster.web.app import make_app
from trainmaster.web.iap import ASSERTION, KEYS_KEPT_S, KEYS_MAX_BYTES, KEYS_PAUSE_S, IapDoor
from trainmaster.web.source import ConsoleSource
from trainstack.http import in_thread, serving
from trainstack.iam.iap import KEYS_PATH, IapSigner

AUDIENCE = "/projects/123/locations/us-central1/services/console"
ADA, BOB, EVE = "ada@example.com", "bob@example.org", "eve@elsewhere.example"
POLICY = {
    "teams": {"vision": {}, "nlp": {}},
    "console": {"people": {f"user:{ADA}": ["vision"], "domain:example.org": ["*"]}},
}
CANCEL, CANCEL_NLP = "/runs/of-vision/cancel", "/runs/of-nlp/cancel"


@dataclass
class Keys:
    """The server of the keys: what it answers, and how often it was asked."""

    content: bytes
    status: int = 200
    reads: int = 0
    now: float = 0.0

    async def answer(self, _: Request) -> Response:
        self.reads += 1
        return Response(self.content, self.status, media_type="application/json")


@dataclass(frozen=True, kw_only=True)
class Team:
    """A console behind the door, over real storage and Pub/Sub."""

    functions: Functions
    browser: httpx.Client
    signer: IapSigner
    keys: Keys

    def claims(self, person: str = ADA) -> dict[str, Any]:  # Any: a JSON object
        return self.signer.claims(person, AUDIENCE)

    def header(self, person: str = ADA) -> dict[str, str]:
        return {ASSERTION: self.signer.assertion(self.claims(person))}

    def post(self, path: str, person: str, **fields: str) -> httpx.Response:
        return self.browser.post(path, data=form(**fields), headers=self.header(person))


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    signer = IapSigner()
    keys = Keys(json.dumps(dict(signer.public_keys)).encode())
    with (
        served_functions(tmp_path_factory.mktemp("team")) as functions,
        in_thread(lambda: serving(Starlette(routes=[Route(KEYS_PATH, keys.answer)]))) as keys_url,
    ):
        served, published = functions.served, deployment()
        served.write("ledger", DEPLOYMENT_OBJECT, {**published, "policy": {**published["policy"], **POLICY}})
        for name in ("vision", "nlp"):
            run = run_record("succeeded", run_id=f"of-{name}", state="running")
            run["source"]["team"] = name
            served.write("ledger", f"runs/of-{name}.json", run)
        source = ConsoleSource(lambda: served.clients.context, writable=False)
        door = IapDoor(AUDIENCE, f"{keys_url}{KEYS_PATH}", clock=lambda: keys.now)
        app = make_app(source, token=TOKEN, is_secret=False, door=door)
        with in_thread(lambda: serving(app)) as url, httpx.Client(base_url=url, timeout=60) as browser:
            yield Team(functions=functions, browser=browser, signer=signer, keys=keys)
        source.reconnect()


def refusal(answer: httpx.Response) -> str:
    assert answer.status_code == 401, answer.text
    return str(answer.json()["error"]["message"])


def test_every_address_needs_the_assertion(team: Team) -> None:
    paths = [*page_paths(), *(f"/api/v1{path}" for path in api_paths()), *action_paths()]
    for path in (*paths, "/static/app.css", "/api/v1/openapi.json", "/nothing", KEYS_PATH):
        for method in ("GET", "POST", "HEAD", "PUT"):
            answer = team.browser.request(method, filled(path, "of-vision"), params={"key": TOKEN})
            assert answer.status_code == 401, (method, path)
    unsigned = {"x-goog-authenticated-user-email": f"accounts.google.com:{BOB}"}
    assert "found 0" in refusal(team.browser.get("/", headers=unsigned))


def test_a_signed_request_shows_the_page_and_who_asks(team: Team) -> None:
    for person, may_act in ((ADA, True), (BOB, True), (EVE, False)):
        page = team.browser.get("/rules", headers=team.header(person))
        assert (page.status_code, person in page.text) == (200, True)
        assert ("read only" in page.text) is not may_act


def segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def rewritten(assertion: str, header: Mapping[str, object]) -> str:
    """The assertion with this header and the signature of its own."""
    return ".".join([segment(header), *assertion.split(".")[1:]])


def by_public_key(team: Team, claims: Mapping[str, object]) -> str:
    """HS256 with the public key as the secret, which a verifier may confuse."""
    (key_id, pem), = team.signer.public_keys.items()  # fmt: skip
    text = f"{segment({'alg': 'HS256', 'kid': key_id})}.{segment(claims)}"
    signature = hmac.digest(pem.encode(), text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def with_claims(**changes: object) -> Callable[[Team], str]:
    return lambda team: team.signer.assertion({**team.claims(), **changes})


def of_another_key(team: Team) -> str:
    other = IapSigner()
    other.key_id = team.signer.key_id
    return other.assertion(team.claims())


def of_an_unknown_key(team: Team) -> str:
    return IapSigner().assertion(team.claims())


WRONG: Mapping[str, tuple[Callable[[Team], str], str]] = {
    "audience": (with_claims(aud="/projects/123/locations/us-central1/services/other"), "aud: expected"),
    "audiences": (with_claims(aud=[AUDIENCE, "another"]), "aud: expected"),
    "issuer": (with_claims(iss="https://accounts.google.com"), "iss: expected"),
    "expired": (with_claims(exp=int(time.time()) - 40), "has expired"),
    "of tomorrow": (with_claims(iat=int(time.time()) + 86400), "malformed"),
    "times in words": (with_claims(exp="tomorrow"), "malformed"),
    "nobody": (with_claims(email=None), "email: expected an address"),
    "another key": (of_another_key, "its signature is wrong"),
    "an unknown key": (of_an_unknown_key, "is none of its keys"),
    "no algorithm": (
        lambda team: rewritten(with_claims()(team), {"alg": "none", "kid": team.signer.key_id}),
        "alg: expected ES256, found 'none'",
    ),
    "no signature": (lambda team: with_claims()(team).rpartition(".")[0] + ".", "its signature is wrong"),
    "HS256": (lambda team: by_public_key(team, team.claims()), "alg: expected ES256, found 'HS256'"),
    "no key": (lambda team: rewritten(with_claims()(team), {"alg": "ES256"}), "kid: 'None'"),
    "a list of keys": (lambda team: rewritten(with_claims()(team), {"alg": "ES256", "kid": ["a"]}), "kid: "),
    "another person": (
        lambda team: ".".join(
            [(parts := with_claims()(team).split("."))[0], segment(team.claims(BOB)), parts[2]]
        ),
        "its signature is wrong",
    ),
    "no assertion": (lambda _: "x", "malformed"),
    "an empty one": (lambda _: "", "malformed"),
    "nested": (lambda _: f"{base64.urlsafe_b64encode(b'[' * 9000).decode()}.e30.x", "malformed"),
    "a header that is a list": (lambda _: f"{segment([])}.e30.x", "malformed"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_assertion_is_refused_with_its_reason_and_nothing_is_done(team: Team, what: str) -> None:
    make, reason = WRONG[what]
    headers = {ASSERTION: make(team)}
    for answer in (
        team.browser.get("/", headers=headers),
        team.browser.post(CANCEL, data=form(), headers=headers),
    ):
        assert reason in refusal(answer)
    assert team.functions.orders == []


def test_a_header_that_is_repeated_or_too_long_is_refused(team: Team) -> None:
    good = team.header()[ASSERTION]
    for values in ([good, good], [good, ""], ["x", good]):
        assert "found 2" in refusal(team.browser.get("/", headers=[(ASSERTION, each) for each in values]))
    assert refusal(team.browser.get("/", headers={ASSERTION: "x" * 20_000}))


def test_a_person_whom_the_policy_does_not_name_changes_nothing(team: Team) -> None:
    for path in action_paths():
        for address in (filled(path, "of-vision"), f"/api/v1{filled(path, 'of-vision')}"):
            answer = team.post(address, EVE)
            assert (answer.status_code, f"{EVE} may only read here" in answer.text) == (403, True), path


def test_another_teams_run_and_what_belongs_to_no_team_are_refused(team: Team) -> None:
    assert f"{ADA} may not act for the team nlp" in team.post(CANCEL_NLP, ADA).text
    letters = team.post("/dead-letters/replay", ADA, ids="all")
    assert (letters.status_code, "what belongs to no team" in letters.text) == (403, True)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://127.0.0.1"])
def test_a_change_from_a_foreign_page_is_refused_in_the_name_of_whoever_is_signed_in(
    team: Team, origin: str
) -> None:
    answer = team.browser.post(CANCEL, data=form(), headers={**team.header(), "origin": origin})
    assert (answer.status_code, "Only the console's own pages" in answer.text) == (403, True)
    no_token = team.browser.post(CANCEL, headers=team.header())
    assert (no_token.status_code, "lacks the token" in no_token.text) == (403, True)


def test_a_console_on_cloud_run_answers_to_its_own_name(team: Team) -> None:
    own = {"host": "console-123.us-central1.run.app", "x-forwarded-proto": "https"}
    page = team.browser.get("/", headers={**team.header(), **own})
    assert page.status_code == 200
    refused = team.browser.post(
        CANCEL_NLP,
        data=form(),
        headers={**team.header(), **own, "origin": "https://console-123.us-central1.run.app"},
    )
    assert "may not act for the team nlp" in refused.text


def test_keys_are_read_once_until_they_are_old_or_a_new_one_signs(team: Team) -> None:
    keys, header = team.keys, team.header()
    team.browser.get("/static/app.css", headers=header)
    reads, before = keys.reads, keys.content
    for _ in range(3):
        assert team.browser.get("/static/app.css", headers=header).status_code == 200
    assert keys.reads == reads
    keys.now += KEYS_PAUSE_S + 1
    new = IapSigner()
    keys.content = json.dumps({**team.signer.public_keys, **new.public_keys}).encode()
    signed = {ASSERTION: new.assertion(team.claims())}
    assert team.browser.get("/static/app.css", headers=signed).status_code == 200
    unknown = {ASSERTION: IapSigner().assertion(team.claims())}
    for _ in range(3):
        assert team.browser.get("/", headers=unknown).status_code == 401
    assert keys.reads == reads + 1
    keys.now += KEYS_KEPT_S + 1
    for status, content in ((500, before), (200, b"[]"), (200, b"{"), (200, b" " * (KEYS_MAX_BYTES + 1))):
        keys.status, keys.content = status, content
        keys.now += KEYS_PAUSE_S + 1
        answer = team.browser.get("/", headers=header)
        assert (answer.status_code, "keys" in answer.json()["error"]["message"]) == (503, True)
    keys.status, keys.content = 200, before
    assert team.browser.get("/", headers=header).status_code == 503  # not asked again at once
    keys.now += KEYS_PAUSE_S + 1
    assert team.browser.get("/", headers=header).status_code == 200
