"""The pages of models: reigns, verdicts with metrics, lineage, the copy's files, and rolling back."""

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import Client as Browser

from tests.client.answering import answering, served_functions
from tests.client.rule_documents import example
from tests.client.runs.rows import row, write_row
from tests.client.served import PROJECT, Served, run_record, served_once
from tests.core.shipped import assert_valid
from tests.web.consoles import console_of, form

WRITABLE = True
A, B, C = "a-20260301t120000-148ce5abfd", "b-20260301t121100-6024327c9f", "c-20260301t122200-a781e6ad62"
FILES = {"files": [{"path": "saved_model.pb", "size_bytes": 1536, "generation": 7, "crc32c": "AAAAAA=="}]}


def champion(**changes: Any) -> dict[str, Any]:  # Any: a JSON document
    """The example: b follows a, and c was not better."""
    document: dict[str, Any] = example("champion.v1.promoted")
    return document | changes


@served_once
def served(served: Served) -> None:
    listing = json.dumps(FILES)
    files_uri = f"gs://{PROJECT}-ledger/model_files/b.json"
    served.write("ledger", "model_files/b.json", FILES)
    found = champion()
    found["current"]["lineage"] |= {
        "files_uri": files_uri,
        "files_sha256": hashlib.sha256(listing.encode()).hexdigest(),
        "rule_id": "nightly",
        "firing": 3,
    }
    served.write("ledger", "champions/cassava-resnet50.json", found)
    served.write("ledger", "champions/vision/leaves.json", champion(model_name="leaves", team="vision"))
    served.write("ledger", "champions/damaged.json", {"schema": "champion.v1"})
    for run_id, accuracy in ((B, 0.8), (C, 0.75)):
        document = run_record(run_id=run_id)
        document["model"]["metrics"] = {"accuracy": accuracy, "loss": 0.25}
        document["source"] |= {"firing_values": {"data.count": "161", "data.newest_uri": "gs://data/9.jpg"}}
        served.write("ledger", f"runs/{run_id}.json", document)
    write_row(served, row(1, model_name="cassava-resnet50"))
    write_row(served, row(2, model_name="other"))


def test_the_list_has_each_champion_with_its_metric_and_the_latest_verdict(browser: Browser) -> None:
    page = browser.get("/models").text
    rows = {each.partition('"')[0]: each for each in page.split('<tr id="model-')[1:]}
    assert set(rows) == {"cassava-resnet50", "vision/leaves", "other"}
    assert ('href="/runs?model=other"' in rows["other"], 'href="/runs/run-2"' in rows["other"]) == (
        True,
        True,
    )
    assert f'href="/runs/{B}"' in rows["cassava-resnet50"]
    assert "accuracy 0.8" in rows["cassava-resnet50"]
    assert "not better by 0.01" in rows["cassava-resnet50"]
    for place in (rows["cassava-resnet50"], browser.get("/models/cassava-resnet50").text):
        assert "version 2, alias champion" in place
    assert 'href="/models/vision/leaves"' in rows["vision/leaves"]
    assert "The champion of &#39;damaged&#39; is damaged" in page


def test_the_documents_are_those_that_the_command_prints(browser: Browser, served: Served) -> None:
    def printed(*words: str) -> Any:  # Any: a JSON document
        return json.loads(served.trainmaster(*words, "-o", "json").out)

    assert browser.get("/api/v1/champions").json() == printed("champions", "ls")
    models = browser.get("/api/v1/models").json()
    assert models == printed("models")
    assert_valid(models, "model_list.v1")
    assert [(each["name"], each["runs"]) for each in models["models"]] == [
        ("cassava-resnet50", 1), ("other", 1), ("vision/leaves", 0),
    ]  # fmt: skip
    for name in ("cassava-resnet50", "vision/leaves"):
        found = browser.get(f"/api/v1/champions/{name}").json()
        assert_valid(found, "champion.v1")
        assert found == printed("champions", "show", name)
    explained = browser.get("/api/v1/champions/cassava-resnet50/-/explanation").json()
    assert explained == printed("why", "cassava-resnet50")
    assert browser.get("/api/v1/champions/vision/leaves/-/explanation").json()["champion"]["run_id"] == B


def test_every_reign_has_its_time(browser: Browser) -> None:
    page = browser.get("/models/cassava-resnet50").text
    first = page.partition('<tr id="reign-1">')[2].partition("</tr>")[0]
    assert "2026-03-01 12:11" in first
    assert "2026-03-01 12:22" in first
    assert "11m" in first, "how long it lasted"
    second = page.partition('<tr id="reign-2">')[2].partition("</tr>")[0]
    assert "state-champion" in second
    assert page.index("reign-2") < page.index("reign-1")


def test_each_verdict_has_its_reason_and_its_value(browser: Browser) -> None:
    page = browser.get("/models/cassava-resnet50").text
    c = page.partition(f'<tr id="challenger-{C}">')[2].partition("</tr>")[0]
    assert "not promoted" in c
    assert "accuracy 0.75 is not better by 0.01 than the champion&#39;s 0.8" in c
    assert ">0.75</td>" in c


def test_the_lineage_leads_back_to_the_last_data_object(browser: Browser) -> None:
    page = browser.get("/models/cassava-resnet50").text
    steps = page.partition('<ol class="steps">')[2].partition("</ol>")[0]
    for step in (
        f'<a href="/runs/{B}">',
        "gs://models/cassava-resnet50/b-20260301t121100-6024327c9f/model/",
        "gs://inbox/requests/b.json#12",
        '<a href="/rules/nightly">nightly, firing 3</a>',
        "161 objects since the firing before",
        "the last one: gs://data/9.jpg",
    ):
        assert step in steps
    assert "<code>trainmaster why cassava-resnet50</code>" in page


def test_the_copy_lists_its_files_and_how_to_download_them(browser: Browser) -> None:
    page = browser.get("/models/cassava-resnet50").text.partition('id="copy"')[2]
    assert "saved_model.pb" in page
    assert "1,536" in page
    assert "crc32c AAAAAA==" in page
    assert "1.5 KiB in all" in page
    assert "<code>trainmaster download champion:cassava-resnet50</code>" in page
    assert "does not exist any more" in browser.get("/models/vision/leaves").text.partition('id="copy"')[2]


@pytest.mark.parametrize("name", ["nothing", "team/nothing", "a/b/c/d", "x%00", "-/rollback", "m" * 3000])
def test_an_unknown_model_has_a_page_that_says_so(browser: Browser, name: str) -> None:
    page = browser.get(f"/models/{name}")
    assert page.status_code == 404
    assert "has no champion" in page.text


def test_a_rollback_says_which_champion_returns(browser: Browser) -> None:
    page = browser.get("/models/cassava-resnet50/-/rollback").text
    assert f"{A} becomes champion again, with accuracy 0.7" in page
    assert f"{B}, with accuracy 0.8, is champion no longer" in page
    assert "<code>trainmaster champions rollback cassava-resnet50</code>" in page
    refused = browser.get("/models/cassava-resnet50/-/rollback", params={"to_run": C}).text
    assert f"The champion stays: {C} was never champion." in refused
    assert "Roll back</button>" not in refused
    assert f"/-/rollback?to_run={A}" in browser.get("/models/vision/leaves").text


def test_a_console_that_only_reads_shows_the_command_instead(served: Served) -> None:
    with console_of(served.clients) as browser:
        page = browser.get("/models/cassava-resnet50").text
    assert "/-/rollback" not in page
    assert "<code>trainmaster champions rollback cassava-resnet50</code>" in page


def test_a_rollback_gives_the_order_and_shows_the_restored_champion(tmp_path: Path) -> None:
    with (
        served_functions(tmp_path) as functions,
        console_of(functions.served.clients, writable=True) as browser,
    ):
        functions.served.write("ledger", "champions/cassava-resnet50.json", champion())
        assert "number 2" in browser.get("/models/cassava-resnet50").text

        def carried_out(order_id: str) -> None:
            document = champion()
            since = datetime.now(UTC) - timedelta(seconds=1)
            again = document["history"][0] | {
                "number": 3, "cause": "rollback", "order_id": order_id, "since": since.isoformat(),
            }  # fmt: skip
            restored = document | {"current": again, "history": [*document["history"], again]}
            functions.served.write("ledger", "champions/cassava-resnet50.json", restored)

        with answering(functions, {"state": "succeeded"}, before=carried_out):
            done = browser.post("/models/cassava-resnet50/-/rollback", data=form(to_run=A))
        assert (done.status_code, done.headers["location"]) == (303, "/models/cassava-resnet50"), done.text
        assert functions.orders == [{"rollback": {"model_name": "cassava-resnet50", "to_run": A}}]
        assert "number 3" in browser.get("/models/cassava-resnet50").text, "read again after the change"
        again = browser.post("/api/v1/models/cassava-resnet50/-/rollback", json=form(to_run=A))
    assert again.status_code == 422
    assert "is already the champion" in again.json()["error"]["message"]


@pytest.mark.parametrize(
    ("decision", "order"), [("approve", {"reject": False}), ("reject", {"reject": True})]
)
def test_a_challenger_that_waits_is_decided_by_a_button(
    tmp_path: Path, decision: str, order: dict[str, bool]
) -> None:
    waiting = example("champion.v1.pending")
    waiting["pending"] |= {"expires_at": "2999-01-01T00:00:00Z"}
    address = "/models/cassava-resnet50"
    with (
        served_functions(tmp_path) as functions,
        console_of(functions.served.clients, writable=True) as browser,
    ):
        functions.served.write("ledger", "champions/cassava-resnet50.json", waiting)
        page = browser.get(address).text
        assert f"{C} waits for approval until 2999-01-01" in page
        assert f"{address}/-/approve" in page
        proposal = browser.get(f"{address}/-/approve").text
        assert f"<code>trainmaster champions approve cassava-resnet50 {C}</code>" in proposal
        with answering(functions, {"state": "succeeded"}):
            done = browser.post(f"{address}/-/approve", data=form(run=C, decision=decision))
        assert (done.status_code, done.headers["location"]) == (303, address), done.text
        assert functions.orders == [{"approve": {"model_name": "cassava-resnet50", "run": C, **order}}]
