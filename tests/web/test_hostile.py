"""Users' texts stay text on every page: no element, attribute or address comes from them."""

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser
from itertools import cycle
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.cli.runs.records import run_of
from tests.client.logged import Logged
from tests.client.rule_documents import example
from tests.client.runs.rows import row, write_row
from tests.client.served import no_jobs, run_record, served_context
from tests.core.fuzz.mutation import TEXTS as ALL_TEXTS
from tests.core.fuzz.mutation import places
from tests.web.consoles import console_of
from tests.web.routes import filled
from trainmaster.client.clients import Clients
from trainmaster.orchestrator.core.names import WAITING_PREFIX
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.web.openapi import description
from trainmaster.web.pages import SUBJECTS
from trainstack import logging

MARKUP = """'"><script>alert(1)</script><img src=x onerror=alert(1)></td></main><a href="javascript:alert(1)">{{7*7}}&lt;"""
TEXTS = [each for each in ALL_TEXTS if each.isprintable() or each.encode(errors="replace").decode() == each]
"""Of the fuzzers' texts those that UTF-8 can carry: no service stores others."""
RUN_ID = "hostile-20260304t120000-0123456789"
OF_PUBSUB = {"/dead-letters/list", "/overview/dead-letters", "/dead-letters"}
"""This context lacks Pub/Sub; tests/web/test_dead_letters.py has hostile letters."""
GET_PATHS = [
    route.path
    for subject in SUBJECTS
    for route in subject.pages
    if not route.takes_form and route.path not in OF_PUBSUB
]
DOCUMENTS = [
    route
    for subject in SUBJECTS
    for route in subject.api
    if route.schema and not route.takes_form and route.path not in OF_PUBSUB
]
PARAMS = {"/runs/compare": {"run": [RUN_ID, "trains"]}}
QUERY = [
    "text",
    "model",
    "label",
    "state",
    "limit",
    "before",
    "since",
    "q",
    "search",
    "sort",
    "rows",
    "team",
    "yaml",
    "rule",
    "from",
]


class Checked(HTMLParser):
    """Raises AssertionError at the first element or attribute that no template has."""

    FORBIDDEN = frozenset({"iframe", "object", "embed", "base", "style", "frame", "applet"})
    ADDRESSES = frozenset(
        {"href", "src", "action", "formaction", "hx-get", "hx-post", "data", "poster", "srcset"}
    )

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert tag not in self.FORBIDDEN, self.getpos()
        for name, value in attrs:
            assert not name.startswith("on"), (tag, attrs)
            assert name != "style", (tag, attrs)
            if name in self.ADDRESSES:
                address = value or ""
                assert address == "" or address[0] in "/#?", (tag, attrs)
                assert not address.startswith(("//", "/\\")), (tag, attrs)
        if tag == "script":
            assert str(found.get("src", "")).startswith("/static/") or found.get("type") == "application/json"

    def handle_endtag(self, tag: str) -> None:
        assert tag not in self.FORBIDDEN


def check(html: str) -> None:
    checker = Checked()
    checker.feed(html)
    checker.close()
    assert html.count("<main") == html.count("</main>") <= 1


def hostile_record() -> dict[str, Any]:
    """A record in which every text that its parser does not refuse has markup, and something else that is hard to show."""
    document = run_record("failed", run_id=RUN_ID)
    texts = cycle(TEXTS)
    for place in places(document):
        changed = copy.deepcopy(document)
        holder: Any = changed
        for part in place[:-1]:
            holder = holder[part]
        if not place or not isinstance(holder[place[-1]], str):
            continue
        holder[place[-1]] = MARKUP + next(texts)
        with suppress(Exception):  # the parser's refusal, of whatever kind
            if run_of(changed).record.run_id == RUN_ID:
                document = changed
    return document


def hostile_champion() -> dict[str, Any]:
    document: dict[str, Any] = {**example("champion.v1.promoted"), "model_name": "trains"}
    document["current"]["lineage"] |= {"job_name": f"projects/{MARKUP}", "dataset": MARKUP}
    document["considered"][-1] |= {"reason": MARKUP}
    document["current"]["contest"]["metric"] = MARKUP
    return document


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("hostile")
    with (
        served_context(folder) as served,
        logging.serve(folder / "logging") as url,
        no_jobs() as vertex_url,
    ):
        log = Logged(served, url)
        log.record("trains", job_id="1")
        for number, each in enumerate([MARKUP, *TEXTS, "x" * 200_000]):
            log.write("1", number, MARKUP[:60], textPayload=each)
            log.write("1", number, "workerpool0-0", textPayload=MARKUP + each)
        served.write("ledger", f"runs/{RUN_ID}.json", hostile_record())
        served.write("ledger", "champions/trains.json", hostile_champion())
        served.write("ledger", f"{WAITING_PREFIX}{MARKUP}", {})
        served.write("ledger", "rules/book.json", {"rules": MARKUP})
        for number, state in enumerate(RunState):
            write_row(
                served, row(number, state=state, reason=MARKUP, model_name=MARKUP, labels={"owner": MARKUP})
            )
        bucket = served.clients.storage.bucket(served.clients.context.inbox_bucket)
        bucket.blob(f"rules/{quote(MARKUP, safe='')}.yaml").upload_from_string(MARKUP)
        context = replace(served.clients.context, logging_host=url, vertex_host=vertex_url)
        with Clients(context) as clients, console_of(clients, writable=True) as browser:
            yield browser


def test_most_texts_of_a_record_are_hostile_here() -> None:
    assert json.dumps(hostile_record()).count("<script>") > 10


@pytest.mark.parametrize("path", GET_PATHS)
def test_no_text_becomes_markup(browser: httpx.Client, path: str) -> None:
    for address in {filled(path, value) for value in (RUN_ID, "trains", quote(MARKUP, safe=""))}:
        answer = browser.get(address, params=PARAMS.get(path))
        assert answer.status_code in {200, 400, 404, 422}, answer.text[:3000]
        check(answer.text)


@pytest.mark.parametrize("path", GET_PATHS)
def test_no_query_becomes_markup(browser: httpx.Client, path: str) -> None:
    for text in (MARKUP, *(each[:200] for each in TEXTS[::7])):
        answer = browser.get(filled(path, "trains"), params={**dict.fromkeys(QUERY, text), "page": text})
        assert answer.status_code in {200, 400, 404, 422}, answer.text[:3000]
        check(answer.text)


@pytest.mark.parametrize("action", [each.path for subject in SUBJECTS for each in subject.actions])
def test_no_proposal_or_refusal_becomes_markup(browser: httpx.Client, action: str) -> None:
    for value in (RUN_ID, quote(MARKUP, safe="")):
        proposal = browser.get(filled(action, value), params={"text": MARKUP})
        check(proposal.text)
        refused = browser.post(filled(action, value), data={"token": MARKUP, "text": MARKUP})
        assert refused.status_code in {403, 404}  # the markup has slashes, which few paths take
        check(refused.text)


@pytest.mark.parametrize("route", DOCUMENTS, ids=lambda each: each.path)
def test_documents_have_the_form_that_the_description_promises(browser: httpx.Client, route: Any) -> None:
    schema = description(SUBJECTS)["components"]["schemas"][route.schema]
    found = 0
    for run_id in (RUN_ID, "trains"):
        answer = browser.get(f"/api/v1{filled(route.path, run_id)}")
        assert answer.headers["content-type"] == "application/json"
        if answer.status_code == 200:
            Draft202012Validator(schema).validate(answer.json())
            found += 1
        else:
            assert set(answer.json()["error"]) == {"status", "message"}
    assert found or "{" in route.path
