"""Cancelling a run and running it again from its page, on real storage and Pub/Sub servers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
import yaml

from tests.client.answering import Functions, answering, served_functions
from tests.client.recording import service
from tests.client.served import PROJECT, no_jobs, run_record
from tests.web.consoles import console_of, form
from trainmaster.client.clients import Clients
from trainstack import logging

Browser = httpx.Client
TEXT = f"""# as its user wrote it
model_name: cassava
image: us-central1-docker.pkg.dev/{PROJECT}/trainmaster/trainer:latest
cluster:
  chief: {{machine: n1-standard-4}}
scheduling: {{timeout_s: 3600}}
"""
FILLED_IN = json.dumps(yaml.safe_load(TEXT))
"""As the ledger has the request of a rule's run."""
AGAIN = "requests/again/cassava.yaml"


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Functions]:
    folder = tmp_path_factory.mktemp("actions")
    with (
        served_functions(folder) as functions,
        logging.serve(folder / "logging") as url,
        no_jobs() as vertex_url,
    ):
        local = replace(functions.served.clients.context, logging_host=url, vertex_host=vertex_url)
        with Clients(local) as clients:
            yield Functions(replace(functions.served, clients=clients), functions.host)


@pytest.fixture(scope="module")
def browser(functions: Functions) -> Iterator[Browser]:
    with console_of(functions.served.clients, writable=True) as browser:
        yield browser


def write_run(functions: Functions, run_id: str, text: str = TEXT, **changes: object) -> None:
    document = run_record("succeeded", run_id=run_id, **changes)
    name = f"submitted/{run_id}/text.json"
    document["request"]["original"]["uri"] = f"gs://{PROJECT}-ledger/{name}"
    functions.served.write("ledger", name, {"text": text})
    functions.served.write("ledger", f"runs/{run_id}.json", document)


def write_running(functions: Functions, run_id: str) -> None:
    history = run_record("succeeded")["history"][:3]
    write_run(functions, run_id, state="running", history=history)


def test_cancel_shows_its_effects_and_gives_the_order_when_it_is_confirmed(
    functions: Functions, browser: Browser
) -> None:
    write_running(functions, "runs-on")
    assert 'href="/runs/runs-on/cancel"' in browser.get("/runs/runs-on").text
    page = browser.get("/runs/runs-on/cancel").text
    assert "Cancel the run runs-on?" in page
    assert "is cancelled." in page
    assert "trainmaster cancel runs-on" in page
    assert functions.orders == []
    with answering(functions, {"state": "succeeded"}):
        done = browser.post("/runs/runs-on/cancel", data=form())
    assert (done.status_code, done.headers["location"]) == (303, "/runs/runs-on")
    assert functions.orders == [{"cancel": {"run": "runs-on"}}]


def test_a_run_that_has_ended_is_not_cancelled(functions: Functions, browser: Browser) -> None:
    write_run(functions, "is-over")
    assert "The run has already ended: succeeded." in browser.get("/runs/is-over/cancel").text
    assert 'id="cancel"' not in browser.get("/runs/is-over").text
    refused = browser.post("/api/v1/runs/is-over/cancel", json=form())
    assert refused.status_code == 422
    assert "has already ended" in refused.json()["error"]["message"]


def test_run_again_uploads_the_same_text_beside_the_users_files(
    functions: Functions, browser: Browser
) -> None:
    write_run(functions, "repeat")
    page = browser.get("/runs/repeat/again").text
    assert f"The same text is uploaded as gs://{PROJECT}-inbox/{AGAIN}" in page
    assert "<code>trainmaster again repeat</code>" in page
    for _ in range(2):
        with service(functions.served, [], AGAIN):
            done = browser.post("/runs/repeat/again", data=form())
        assert done.status_code == 303, done.text
        assert done.headers["location"].startswith("/runs/cassava-")
    uploaded = functions.served.clients.storage.bucket(f"{PROJECT}-inbox").blob(AGAIN)
    assert uploaded.download_as_bytes().decode() == TEXT


def test_the_command_that_the_page_shows_does_the_same(functions: Functions) -> None:
    write_run(functions, "repeat")
    with service(functions.served, [], AGAIN):
        done = functions.served.trainmaster("again", "repeat")
    assert (done.status, done.out.startswith("cassava-")) == (0, True), done.err
    assert f"Sent to gs://{PROJECT}-inbox/{AGAIN}" in done.err
    uploaded = functions.served.clients.storage.bucket(f"{PROJECT}-inbox").blob(AGAIN)
    assert uploaded.download_as_bytes().decode() == TEXT


def of_rule() -> dict[str, Any]:  # Any: a JSON document
    source = run_record("succeeded")["source"] | {"rule_id": "weekly", "firing": 3, "condition": "schedule"}
    return {key: value for key, value in source.items() if key != "object_name"}


def test_a_run_of_a_rule_is_repeated_with_the_request_that_the_rule_filled_in(functions: Functions) -> None:
    write_run(functions, "fired", text=FILLED_IN, source=of_rule())
    name = "requests/again/cassava-resnet50.json"
    with service(functions.served, [], name):
        done = functions.served.trainmaster("again", "fired")
    assert done.status == 0, done.err
    uploaded = functions.served.clients.storage.bucket(f"{PROJECT}-inbox").blob(name)
    assert uploaded.download_as_bytes().decode() == FILLED_IN
    assert functions.served.trainmaster("again", "unknown").status == 3


def test_the_services_refusal_of_another_run_is_shown(functions: Functions, browser: Browser) -> None:
    write_run(functions, "capped")
    with service(functions.served, [], AGAIN, state="rejected", problems=["the cap is <b>reached</b>"]):
        refused = browser.post("/runs/capped/again", data=form())
    assert refused.status_code == 422
    assert "the cap is &lt;b&gt;reached&lt;/b&gt;" in refused.text


def test_what_the_deployment_would_refuse_now_is_not_uploaded(functions: Functions, browser: Browser) -> None:
    write_run(functions, "outdated", text=TEXT.replace("n1-standard-4", "no-such-machine"))
    page = browser.get("/runs/outdated/again").text
    assert "The deployment would refuse this request now." in page
    assert "no-such-machine" in page
    assert "<button" not in page.partition('class="proposal"')[2].partition("</form>")[0]
    assert browser.post("/runs/outdated/again", data=form()).status_code == 422
