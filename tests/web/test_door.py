"""A console for a team: nothing is answered without Identity-Aware Proxy's assertion, and the policy says who may act."""

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.client.answering import answering, answering_rule, served_functions
from tests.client.rule_documents import example, write_rules
from tests.client.served import Served, deployment, run_record, served_context
from tests.web.consoles import TOKEN, browser_on, form
from tests.web.routes import action_paths, api_paths, filled, page_paths
from trainmaster.client.errors import ClientRefused
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT
from trainmaster.orchestrator.core.runs.sender import ACCOUNT_KEY
from trainmaster.resources import ROOT
from trainmaster.web.iap import ASSERTION, KEYS_KEPT_S, KEYS_MAX_BYTES, KEYS_PAUSE_S, IapDoor
from trainmaster.web.people import rights_text
from trainmaster.web.source import ConsoleSource
from trainstack.http import in_thread, serving
from trainstack.iam.iap import KEYS_PATH, IapSigner

AUDIENCE = "/projects/123/locations/us-central1/services/console"
ADA, BOB, DOT, EVE = "ada@example.com", "bob@example.org", "dot@example.com", "eve@elsewhere.example"
POLICY = {
    "teams": {"vision": {}, "nlp": {}},
    "console": {
        "people": {f"user:{ADA}": ["vision"], f"user:{DOT}": ["vision", "nlp"], "domain:example.org": ["*"]}
    },
}
CANCEL, CANCEL_NLP = "/runs/of-vision/cancel", "/runs/of-nlp/cancel"


@dataclass
class Keys:
    """The server of the keys: what it answers, and how often it was asked."""

    content: bytes
    reads: int = 0
    now: float = 0.0

    async def answer(self, _: Request) -> Response:
        self.reads += 1
        return Response(self.content)


@dataclass(frozen=True, kw_only=True)
class Team:
    """A console behind the door, over real storage and Pub/Sub."""

    browser: httpx.Client
    signer: IapSigner
    keys: Keys

    def header(self, person: str = ADA) -> dict[str, str]:
        return {ASSERTION: self.signer.assertion(self.signer.claims(person, AUDIENCE))}

    def post(self, path: str, person: str, **fields: str) -> httpx.Response:
        return self.browser.post(path, data=form(**fields), headers=self.header(person))


@contextmanager
def team_console(served: Served, policy: Mapping[str, object]) -> Iterator[Team]:
    signer = IapSigner()
    keys = Keys(json.dumps(dict(signer.public_keys)).encode())
    published = deployment()
    served.write("ledger", DEPLOYMENT_OBJECT, {**published, "policy": {**published["policy"], **policy}})
    with in_thread(lambda: serving(Starlette(routes=[Route(KEYS_PATH, keys.answer)]))) as keys_url:
        door = IapDoor(AUDIENCE, f"{keys_url}{KEYS_PATH}", clock=lambda: keys.now)
        source = ConsoleSource(lambda: served.clients.context, writable=False, door=door)
        with browser_on(source) as browser:
            yield Team(browser=browser, signer=signer, keys=keys)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with served_context(tmp_path_factory.mktemp("team")) as served:
        for name in ("vision", "nlp", "none"):
            run = run_record("succeeded", run_id=f"of-{name}", state="running")
            run["source"] |= {"team": name} if name != "none" else {}
            served.write("ledger", f"runs/of-{name}.json", run)
        with team_console(served, POLICY) as found:
            yield found


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


def test_the_command_says_what_the_person_may_change(tmp_path: Path) -> None:
    with served_context(tmp_path, publishes=True) as served:
        said = [rights_text(served.clients.context, ADA)]
        served.write(
            "ledger", DEPLOYMENT_OBJECT, {**deployment(), "policy": {**deployment()["policy"], **POLICY}}
        )
        said += [rights_text(served.clients.context, person) for person in (ADA, BOB, DOT, EVE)]
        served.write("ledger", DEPLOYMENT_OBJECT, {**deployment(), "policy": {"console": {"people": ["a"]}}})
        with pytest.raises(ClientRefused, match="people"):
            rights_text(served.clients.context, ADA)
    rights = [text.partition(" change what is of: ")[2].partition(" (console.people")[0] for text in said]
    assert rights == ["no team", "vision", "*", "nlp, vision", "no team"]


def with_claims(**changes: object) -> Callable[[Team], str]:
    return lambda team: team.signer.assertion({**team.signer.claims(ADA, AUDIENCE), **changes})


def with_header(**header: object) -> Callable[[Team], str]:
    """The assertion with this header, and its own signature."""
    first = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    return lambda team: ".".join([first, *with_claims()(team).split(".")[1:]])


def of_another_key(team: Team) -> str:
    other = IapSigner()
    other.key_id = team.signer.key_id
    return other.assertion(team.signer.claims(ADA, AUDIENCE))


WRONG: Mapping[str, tuple[Callable[[Team], str], str]] = {
    "audience": (with_claims(aud=f"{AUDIENCE}s"), "aud: expected"),
    "issuer": (with_claims(iss="https://accounts.google.com"), "iss: expected"),
    "expired": (with_claims(exp=int(time.time()) - 40), "has expired"),
    "tomorrow": (with_claims(iat=int(time.time()) + 86400), "malformed"),
    "no person": (with_claims(email=None), "email: expected an address"),
    "signature": (of_another_key, "its signature is wrong"),
    "key": (lambda team: IapSigner().assertion(team.signer.claims(ADA, AUDIENCE)), "none of its keys"),
    "no key": (with_header(alg="ES256"), "kid: 'None'"),
    "no algorithm": (with_header(alg="none"), "alg: expected ES256, found 'none'"),
    "algorithm": (with_header(alg="HS256"), "alg: expected ES256, found 'HS256'"),
    "unsigned": (lambda team: with_claims()(team).rpartition(".")[0] + ".", "its signature is wrong"),
    "nested": (lambda _: f"{base64.urlsafe_b64encode(b'[' * 9000).decode()}.e30.x", "malformed"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_assertion_is_refused_with_its_reason_and_nothing_is_done(team: Team, what: str) -> None:
    make, reason = WRONG[what]
    for method in ("GET", "POST"):
        answer = team.browser.request(method, CANCEL, data=form(), headers={ASSERTION: make(team)})
        assert reason in refusal(answer)


def test_a_header_that_is_repeated_or_too_long_is_refused(team: Team) -> None:
    good = team.header()[ASSERTION]
    for values in ([good, good], [good, ""]):
        assert "found 2" in refusal(team.browser.get("/", headers=[(ASSERTION, each) for each in values]))
    assert refusal(team.browser.get("/", headers={ASSERTION: "x" * 20_000}))


def test_a_person_whom_the_policy_does_not_name_changes_nothing(team: Team) -> None:
    for path in action_paths():
        for address in (filled(path, "of-vision"), f"/api/v1{filled(path, 'of-vision')}"):
            answer = team.post(address, EVE)
            assert (answer.status_code, f"{EVE} may only read here" in answer.text) == (403, True), path


def test_another_teams_run_and_what_belongs_to_no_team_are_refused(team: Team) -> None:
    assert f"{ADA} may not act for the team nlp" in team.post(CANCEL_NLP, ADA).text
    assert f"{ADA} may not act for what belongs to no team" in team.post("/runs/of-none/cancel", ADA).text


def test_a_teams_console_leaves_dead_letters_to_the_command(team: Team) -> None:
    for path in ("/dead-letters", "/dead-letters/list", "/overview/dead-letters", "/api/v1/dead-letters"):
        answer = team.browser.get(path, headers=team.header(BOB))
        assert (answer.status_code, "trainmaster dead-letters ls" in answer.text) == (403, True), path
    assert "shows no dead letters" in team.post("/dead-letters/replay", BOB, ids="all").text


def test_a_person_of_several_teams_chooses_one_for_a_request(team: Team) -> None:
    text = (ROOT / "examples" / "hello.yaml").read_text()
    for person in (DOT, BOB):
        page = team.browser.get("/try", headers=team.header(person)).text
        assert all(f"<option>{each}</option>" in page for each in ("nlp", "vision"))
        undecided = team.post("/try", person, text=text).text
        assert "Choose the team for which you send it: nlp, vision." in undecided
        chosen = team.post("/try", person, text=text, team="nlp").text
        assert ("Choose the team" in chosen, "<option selected>nlp</option>" in chosen) == (False, True)
    assert "<select" not in team.browser.get("/try", headers=team.header(ADA)).text
    for name in ("nlp", "none"):
        other = team.post("/try/submit", ADA, text=text, team=name)
        assert (other.status_code, f"may not act for the team {name}" in other.text) == (403, True)


@pytest.mark.slow
def test_every_order_and_a_paused_rule_name_the_person(tmp_path: Path) -> None:
    people = {"console": {"people": {"domain:example.org": ["*"]}}}
    with served_functions(tmp_path) as functions, team_console(functions.served, people) as team:
        served, refused = functions.served, {"state": "rejected", "problems": ["not today"]}
        write_rules(served)
        served.write("ledger", "champions/cassava-resnet50.json", example("champion.v1.promoted"))
        waiting = example("champion.v1.pending")
        waiting["pending"] |= {"expires_at": "2999-01-01T00:00:00Z"}
        served.write("ledger", "champions/waits.json", {**waiting, "model_name": "waits"})
        for path in ("/rules/weekly/fire", "/models/cassava-resnet50/-/rollback", "/models/waits/-/approve"):
            with answering(functions, refused):
                answer = team.post(path, BOB, decision="approve")
            assert (answer.status_code, "not today" in answer.text) == (422, True), answer.text
        assert [next(iter(each)) for each in functions.orders] == ["fire", "rollback", "approve"]
        assert functions.senders == [BOB, BOB, BOB]

        bucket = served.clients.storage.bucket(served.clients.context.inbox_bucket)
        bucket.blob("rules/weekly.yaml").upload_from_string(b"when: [{manual: {}}]\n")
        status = {**example("rule_status.v1.accepted"), "state": "refused", "reason": "not today"}
        with answering_rule(served, "rules/weekly.yaml", status):
            paused = team.post("/rules/weekly/pause", BOB)
        assert (paused.status_code, "not today" in paused.text) == (422, True), paused.text
        assert bucket.get_blob("rules/weekly.yaml").metadata[ACCOUNT_KEY] == BOB


def test_only_the_consoles_own_pages_by_whatever_name_change_something(team: Team) -> None:
    own = "console-123.us-central1.run.app"
    named = {**team.header(), "host": own, "x-forwarded-proto": "https"}
    assert team.browser.get("/rules", headers=named).status_code == 200
    for origin, why in (
        (f"https://{own}", "may not act for the team nlp"),
        (f"http://{own}", "Only the console's own pages"),
        ("https://evil.example", "Only the console's own pages"),
    ):
        answer = team.browser.post(CANCEL_NLP, data=form(), headers={**named, "origin": origin})
        assert (answer.status_code, why in answer.text) == (403, True)
    assert "lacks the token" in team.browser.post(CANCEL, headers=team.header()).text


def test_keys_are_read_once_until_they_are_old_or_a_new_one_signs(team: Team) -> None:
    keys, before = team.keys, team.keys.content

    def status(signer: IapSigner = team.signer) -> int:
        header = {ASSERTION: signer.assertion(signer.claims(ADA, AUDIENCE))}
        return team.browser.get("/static/app.css", headers=header).status_code

    assert status() == 200
    reads, new = keys.reads, IapSigner()
    keys.now += KEYS_PAUSE_S + 1
    keys.content = json.dumps({**team.signer.public_keys, **new.public_keys}).encode()
    assert [status(), status(new), status(IapSigner()), status(IapSigner())] == [200, 200, 401, 401]
    assert keys.reads == reads + 1
    keys.now += KEYS_KEPT_S
    for keys.content in (b"[]", b"{", b" " * (KEYS_MAX_BYTES + 1)):
        keys.now += KEYS_PAUSE_S + 1
        assert status() == 503
    keys.content = before
    assert status() == 503  # not asked again at once
    keys.now += KEYS_PAUSE_S + 1
    assert status() == 200
