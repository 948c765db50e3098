"""The pages of rules: how much of each condition is met, why a rule does not fire, where its file is faulty."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from httpx import Client as Browser

from tests.client.answering import answering, answering_rule, served_functions
from tests.client.rule_documents import example, write_rules
from tests.client.runs.rows import row, write_row
from tests.client.served import Served, run_record, served_context, served_once
from tests.contract.retraining import RuleWorld
from tests.contract.world import LEDGER
from tests.web.consoles import console_of, form
from trainmaster.orchestrator.core.names import status_object

WRITABLE = True
HOSTILE = '"><script>alert(1)</script>\u202e'
FAULTY = b"""when:
  - schedule: {cron: 0 3 * *}
  - manual: {}
request:
  model_name: "<script>alert(1)</script>"
"""
WEEKLY = b"# every Monday\nwhen: [{manual: {}}]\n"


@served_once
def served(served: Served) -> None:
    write_rules(served)
    refuse(served, "rules/faulty.yaml", FAULTY)
    refuse(served, "rules/empty.yaml", b"# nothing\n")
    refuse(served, f"rules/{HOSTILE}.yaml", FAULTY)


def refuse(served: Served, name: str, content: bytes) -> None:
    """Drop the file, with the status that the service gives it."""
    world = RuleWorld()
    world.drop_rule(content, name)
    blob = served.clients.storage.bucket(served.clients.context.inbox_bucket).blob(name)
    blob.upload_from_string(content)
    status = json.loads(world.objects.read(LEDGER, status_object(name), max_bytes=10**6).content)
    assert status["state"] == "refused"
    served.write("ledger", f"status/{name}.json", {**status, "generation": int(blob.generation)})


def test_the_list_shows_how_much_of_each_condition_is_met_and_why_a_rule_does_not_fire(
    browser: Browser,
) -> None:
    page = browser.get("/rules").text
    rows = {each.partition('href="/rules/')[2].partition('"')[0]: each for each in page.split("<tr id=")}
    assert "12 of 100 files" in rows["cassava.new-data"]
    assert '<progress max="100" value="12"' in rows["cassava.new-data"]
    assert 'href="/runs/cassava-new-data-20260304t121000-b2f9947b9f"' in rows["cassava.new-data"]
    assert "held back: its cooldown lasts until 13:00" in rows["weekly"]
    assert "<time datetime=" in rows["weekly"].partition('data-label="Next"')[2], "its next scheduled time"
    assert "Any of:" in rows["weekly"]
    assert "Any of:" not in rows["cassava.new-data"]
    assert "3 faults" in rows["bad"]
    assert "unanswered" in rows["new"]


def test_the_documents_are_those_that_the_command_prints(browser: Browser, served: Served) -> None:
    def printed(*words: str) -> Any:  # Any: a JSON document
        return json.loads(served.trainmaster("rules", *words, "-o", "json").out)

    assert browser.get("/api/v1/rules").json() == printed("ls")
    assert browser.get("/api/v1/rules/weekly").json() == printed("show", "weekly")


def test_a_refused_file_is_shown_with_its_faults_at_their_lines(browser: Browser) -> None:
    page = browser.get("/rules/faulty").text
    line = page.partition('<li id="line-2" class="bad">')[2].partition("</li>")[0]
    assert "schedule: {cron: 0 3 * *}" in line
    assert "$.when[0].schedule.cron: " in line
    assert '<li id="line-3"><code>  - manual: {}</code></li>' in page
    empty = browser.get("/rules/empty").text
    assert "a rule must be a mapping" in empty.partition('id="standing"')[0], (
        "a fault without a line is above"
    )


def test_a_file_that_is_newer_than_its_status_has_no_marks(served: Served, browser: Browser) -> None:
    refuse(served, "rules/newer.yaml", FAULTY)
    served.clients.storage.bucket(served.clients.context.inbox_bucket).blob(
        "rules/newer.yaml"
    ).upload_from_string(b"when: []\n")
    page = browser.get("/rules/newer").text
    assert "This version is newer than the one that was checked." in page
    assert '<li id="line-1"><code>when: []</code></li>' in page


def test_firings_link_to_their_runs(browser: Browser, served: Served) -> None:
    firing = "cassava-new-data-20260304t121000-b2f9947b9f"
    for number, run_id in enumerate([firing, "cassava-other-20260304t121000-b2f9947b9f"]):
        started = row(number, model_name="cassava-resnet50")
        write_row(served, replace(started, run_id=run_id, source="rule"))
    page = browser.get("/rules/cassava.new-data").text
    assert f'href="/runs/{firing}"' in page
    assert "cassava-other" not in page


def test_nothing_of_a_rule_is_markup(browser: Browser) -> None:
    address = f"/rules/-?file={quote(f'rules/{HOSTILE}.yaml', safe='')}"
    listed, page = browser.get("/rules").text, browser.get(address)
    assert page.status_code == 200
    assert f'href="{address}"'.replace("&", "&amp;") in listed
    for html in (listed, page.text):
        assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in page.text
    assert "\u202e" not in listed
    assert page.text.count("\u202e") == 2, "only in the command, which must be exact, and in its copy"
    assert "/fire" not in page.text, "a file without an id cannot be changed here"


@pytest.mark.parametrize("rule", ["nothing", "x%20y", "a" * 5000, "%00"])
def test_an_unknown_rule_has_a_page_that_says_so(browser: Browser, rule: str) -> None:
    page = browser.get(f"/rules/{rule}")
    assert page.status_code == 404
    assert "No " in page.text


def test_a_proposal_says_what_happens_and_the_command(browser: Browser) -> None:
    page = browser.get("/rules/weekly/fire").text
    assert "It starts a run of the model cassava-resnet50" in page
    assert "at most 6 firings in 24 hours" in page
    assert "<code>trainmaster rules fire weekly</code>" in page
    assert "accepts no orders to fire" in browser.get("/rules/cassava.new-data/fire").text
    assert "is not accepted" in browser.get("/rules/bad/pause").text
    assert "weekly is not paused." in browser.get("/rules/weekly/resume").text


def test_a_rule_without_the_button_fire_says_why(browser: Browser) -> None:
    for page in ("/rules", "/rules/cassava.new-data"):
        assert "cassava.new-data accepts no orders to fire: add `manual: {}`" in browser.get(page).text
    assert "accepts no orders" not in browser.get("/rules/weekly").text


def test_a_paused_rule_is_not_fired(tmp_path: Path) -> None:
    """The service would carry out the order, and start nothing."""
    with served_context(tmp_path) as served, console_of(served.clients, writable=True) as browser:
        write_rules(served)
        book = json.loads(bytes(ledger(served).blob("rules/book.json").download_as_bytes()))
        book["rules"][1]["document"]["enabled"] = False
        served.write("ledger", "rules/book.json", book)
        fired = browser.post("/rules/weekly/fire", data=form())
        assert fired.status_code == 422
        assert "Resume it: trainmaster rules resume weekly" in fired.text
        page = browser.get("/rules/weekly").text
    assert "it is paused" in page
    assert "/rules/weekly/resume" in page
    assert "/rules/weekly/fire" not in page


def ledger(served: Served) -> Any:  # Any: the client is untyped
    return served.clients.storage.bucket(served.clients.context.ledger_bucket)


def test_firing_gives_the_order_and_goes_to_the_run(tmp_path: Path) -> None:
    with (
        served_functions(tmp_path) as functions,
        console_of(functions.served.clients, writable=True) as browser,
    ):
        write_rules(functions.served)
        run_id = run_record()["run_id"]

        def started(order_id: str) -> None:
            source = {**run_record()["source"], "event_id": order_id}
            functions.served.write("ledger", f"runs/{run_id}.json", run_record(source=source))
            last = {"number": 1, "run_id": run_id, "condition": "manual", "at": "2026-03-04T12:10:00.000000Z"}
            state = {**example("rule_state.v1.firing"), "rule_id": "weekly", "last": last}
            functions.served.write("ledger", "rule-state/weekly.json", state)

        with answering(functions, {"state": "succeeded"}, before=started):
            done = browser.post("/rules/weekly/fire", data=form())
        assert (done.status_code, done.headers["location"]) == (303, f"/runs/{run_id}"), done.text
        assert functions.orders == [{"fire": {"rule": "weekly"}}]
        with answering(functions, {"state": "held", "reason": "its cooldown lasts"}):
            held = browser.post("/api/v1/rules/weekly/fire", json=form())
    assert held.status_code == 422
    assert "its cooldown lasts" in held.json()["error"]["message"]


def test_pausing_changes_the_file_and_shows_the_answer(tmp_path: Path) -> None:
    with served_context(tmp_path) as served, console_of(served.clients, writable=True) as browser:
        write_rules(served)
        bucket = served.clients.storage.bucket(served.clients.context.inbox_bucket)
        bucket.blob("rules/weekly.yaml").upload_from_string(WEEKLY)
        disabled = example("rule_status.v1.accepted") | {"state": "disabled"}
        with answering_rule(served, "rules/weekly.yaml", disabled):
            done: httpx.Response = browser.post("/api/v1/rules/weekly/pause", json=form())
        assert done.json() == {
            "message": "weekly is paused.",
            "page": "/rules/weekly",
            "rule_id": "weekly",
            "state": "disabled",
        }
        assert bucket.blob("rules/weekly.yaml").download_as_bytes() == WEEKLY + b"enabled: false\n"
