"""A team's console on a running stack: who may act by the policy does, in their own name, and no one else."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from trainstack.http import in_thread, serving
from trainstack.iam.iap import ASSERTION, KEYS_PATH, IapSigner

from .project import ROOT, Project, eventually, request, running_project, stop

pytestmark = [pytest.mark.slow(seconds=30), pytest.mark.timeout(300)]
AUDIENCE = "/projects/123/locations/us-central1/services/console"
ADA, BOB, EVE = "ada@example.com", "bob@example.com", "eve@example.com"
POLICY = f"""
teams: {{vision: {{}}, nlp: {{}}}}
console: {{people: {{"user:{ADA}": [vision], "user:{BOB}": [nlp]}}}}
"""
SIGNER = IapSigner()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("team-console")
    policy = folder / "policy.yaml"
    policy.write_text((ROOT / "functions" / "policy.yaml").read_text() + POLICY)
    arguments = ("--policy", str(policy), "--tick-s", "1")
    with running_project(folder / "state", *arguments, project="e2e-console") as project:
        yield project


@contextmanager
def console(stack: Project, *words: str, **variables: str) -> Iterator[str]:
    """The address of `trainmaster web` with these options."""
    command = [sys.executable, "-m", "trainmaster", "web", "--context", f"local:{stack.state}", *words]
    log = stack.state.with_name("console.out")
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**os.environ, **variables}, stdout=output, stderr=output
        )
    try:
        found = eventually(lambda: re.search(r"http://[\d.]+:(\d+)/", log.read_text()), "its address")
        yield f"http://127.0.0.1:{found[1]}"
    finally:
        stop(process)


@pytest.fixture(scope="module")
def team(stack: Project) -> Iterator[httpx.Client]:
    """A browser on the console as it runs in the cloud: it gets Identity-Aware Proxy's keys from a URL."""
    keys = Starlette(routes=[Route(KEYS_PATH, lambda _: JSONResponse(dict(SIGNER.public_keys)))])
    with (
        in_thread(lambda: serving(keys)) as url,
        console(stack, "--iap-audience", AUDIENCE, TRAINMASTER_IAP_KEYS_URL=f"{url}{KEYS_PATH}") as address,
        httpx.Client(base_url=address, timeout=60) as browser,
    ):
        yield browser


def signed(person: str, audience: str = AUDIENCE) -> dict[str, str]:
    return {ASSERTION: SIGNER.assertion(SIGNER.claims(person, audience))}


def form(browser: httpx.Client, path: str, person: str, **fields: str) -> httpx.Response:
    """What the person's browser gets for the form at this address: with the token in its page, if it shows one."""
    page = browser.get(path, headers=signed(person)).text
    token = re.search(r'name="token" value="([^"]*)"', page)
    data = {"token": token[1] if token else "", **fields}
    return browser.post(path, data=data, headers=signed(person))


def running(stack: Project, team: str) -> str:
    """A run of the team that ends only when it is cancelled."""
    name = f"requests/{team}/waits.json"
    stack.upload(name, request(stack.id, f"--wait-for=gs://{stack.id}-data/{team}/never"))

    def runs() -> str | None:
        status = stack.status(name)
        return str(status["run_id"]) if status and status["state"] == "running" else None

    return stack.eventually(runs, f"the run of {team}")


def test_a_person_acts_for_their_team_in_their_own_name(stack: Project, team: httpx.Client) -> None:
    run_id, other = running(stack, "vision"), running(stack, "nlp")
    assert team.get(f"/runs/{run_id}").status_code == 401
    assert team.get(f"/runs/{run_id}", headers=signed(ADA, f"{AUDIENCE}s")).status_code == 401
    for person in (ADA, EVE):
        page = team.get(f"/runs/{other}", headers=signed(person))
        assert (page.status_code, other in page.text) == (200, True)

    path = f"/runs/{run_id}/cancel"
    for person, why in ((EVE, "may only read here"), (BOB, "may not act for the team vision")):
        refused = form(team, path, person)
        assert (refused.status_code, f"{person} {why}" in refused.text) == (403, True), refused.text
    assert stack.record(run_id)["state"] == "running"

    done = form(team, path, ADA)
    assert (done.status_code, done.headers["location"]) == (303, f"/runs/{run_id}")
    record = stack.eventually(lambda: ended(stack, run_id), "the run is cancelled")
    assert (record["state"], record["cancel_requested_by"]) == (
        "cancelled",
        {"name": ADA, "by": "credentials"},
    )
    assert f"by {ADA}" in team.get(f"/runs/{run_id}", headers=signed(BOB)).text

    again = form(team, f"/runs/{run_id}/again", ADA)
    text = request(stack.id, model_name="pasted")
    submitted = form(team, "/try/submit", BOB, text=text)
    for answer, person, name in ((again, ADA, "vision"), (submitted, BOB, "nlp")):
        assert answer.status_code == 303, answer.text
        source = stack.record(answer.headers["location"].rpartition("/")[2])["source"]
        assert (source["team"], source["sent_by"]) == (name, {"name": person, "by": "credentials"})
    assert stack.record(other)["state"] == "running"


def ended(stack: Project, run_id: str) -> dict[str, object] | None:
    record = stack.record(run_id)
    return record if record["state"] == "cancelled" else None


def test_the_stand_in_signs_for_a_person_who_tries_it(stack: Project) -> None:
    with console(stack, "--as", ADA) as address, httpx.Client(base_url=address, timeout=60) as browser:
        page = browser.get("/", headers={ASSERTION: "forged", "x-goog-authenticated-user-email": EVE})
        assert (page.status_code, ADA in page.text, "read only" in page.text) == (200, True, False)
        assert next(iter(browser.get(KEYS_PATH).json().values())).startswith("-----BEGIN PUBLIC KEY-----")
        rebound = browser.get("/try", headers={"host": "evil.example"})
        assert (rebound.status_code, "found Host 'evil.example'" in rebound.text) == (403, True)


@pytest.mark.parametrize(("audience", "person"), [("console", "ada"), ("", "")])
def test_options_that_make_no_door_are_refused_together(stack: Project, audience: str, person: str) -> None:
    words = ["--context", f"local:{stack.state}", "--iap-audience", audience, "--as", person, "--write"]
    command = [sys.executable, "-m", "trainmaster", "web", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 4)
    assert f"found {audience!r}." in done.stderr
