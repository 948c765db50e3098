"""Try a request: its faults in their places, its plan, and its submission."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from httpx import Client as Browser

from tests.client.recording import service
from tests.client.served import ROOT, Served, served_context
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from tests.web.consoles import form
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES
from trainmaster.web.pages.attempt import EXAMPLES

WRITABLE = True
OBJECT = "requests/horses-small.yaml"
"""A file that is called request.yaml has the model's name in the inbox."""
SMALL = (ROOT / "examples/small.yaml").read_text()
FAULTY = SMALL.replace("machine: n1-standard-4", "machine: n1-standard-5").replace(
    "scheduling:", "shceduling:"
)
HOSTILE = "<script>alert('x')</script>"
SCRIPT = "model_name: starter\nscript: {file: train.py}\ncluster:\n  chief: {machine: n1-standard-4}\n"


served = fixture_of(served_context, publishes=True)


def answer(browser: Browser, text: str, path: str = "/try/check", **fields: str) -> str:
    """What the page says beside the text."""
    page = browser.post(path, data={"text": text, **fields})
    assert page.status_code == 200
    return page.text.partition('<div id="checked"')[2]


def test_every_fault_is_marked_in_its_place_with_its_repair(browser: Browser) -> None:
    said = answer(browser, FAULTY.replace("\n", "\r\n"))  # as a browser sends it
    line = 1 + FAULTY[: FAULTY.index("n1-standard-5")].count("\n")
    assert "<b>2 faults</b>" in said
    assert f'data-line="{line}" data-column="20" data-length="13" data-level="error"' in said
    assert "  chief: {machine: n1-standard-5}\n                   ^^^^^^^^^^^^^" in said
    assert "did you mean &#39;scheduling&#39;?" in said
    assert 'id="plan"' not in said


def test_a_sound_request_shows_its_job_and_cost(browser: Browser) -> None:
    said = answer(browser, SMALL)
    assert "customJobs in us-central1 on n1-standard-4" in said
    assert "cost about 0." in said
    assert 'formaction="/try/submit"' in said
    assert "trainmaster submit request.yaml" in said


def test_the_plan_says_what_would_happen_first(browser: Browser) -> None:
    assert "<dt>Would</dt><dd>start at once" in answer(browser, SMALL, "/try")
    assert "<dt>Would</dt>" not in answer(browser, SMALL)


def test_the_first_example_trains_without_data_and_packages(tmp_path: Path) -> None:
    file, _ = next(iter(EXAMPLES.values()))
    request = yaml.safe_load((ROOT / file).read_text())
    python, *rest = request["command"]
    assert python == "python"
    env = {"TRAINMASTER_GCS_ROOT": str(tmp_path), "AIP_MODEL_DIR": "gs://models/hello/model/"}
    command = [sys.executable, "-I", "-S", *rest]  # the standard library alone
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1])["epoch"] == 20
    assert json.loads((tmp_path / "models/hello/model/model.json").read_text())["slope"] == pytest.approx(3)


def test_an_example_says_what_it_needs_before_it_can_succeed(browser: Browser, served: Served) -> None:
    needs = f"from gs://{served.clients.context.project}-data/tfds, and needs TensorFlow"
    assert needs in browser.get("/try?example=small").text
    assert 'id="needs"' not in browser.get("/try?example=hello").text


def test_a_rule_is_checked_and_says_how_to_apply_it(browser: Browser) -> None:
    said = answer(browser, (ROOT / EXAMPLES["rule"][0]).read_text())
    assert "This is a retraining rule. Apply it: trainmaster rules apply rule.yaml" in said
    assert 'formaction="/try/submit"' not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x" * (MAX_REQUEST_BYTES + 10), f"more than {MAX_REQUEST_BYTES} bytes"),
        (f"model_name: {HOSTILE}\n", "&lt;script&gt;"),
    ],
)
def test_any_text_gets_its_faults_as_text(browser: Browser, text: str, said: str) -> None:
    page = answer(browser, text)
    assert said in page
    assert HOSTILE not in page


def test_the_text_stays_in_the_form_and_is_text(browser: Browser) -> None:
    page = browser.post("/try", data={"text": f"</textarea>{HOSTILE}", "file": f'a"{HOSTILE}.yaml'}).text
    assert HOSTILE not in page
    assert "&lt;/textarea&gt;&lt;script&gt;" in page


def test_a_line_that_may_hold_a_secret_is_not_quoted(browser: Browser) -> None:
    said = answer(browser, f"{SMALL}env:\n  API_KEY: hunter2-hunter2-hunter2\n")
    assert "hunter2" not in said
    assert "The line is not shown: it may hold a secret." in said


def test_a_script_of_this_machine_is_neither_packed_nor_submitted(browser: Browser, served: Served) -> None:
    said = answer(browser, SCRIPT, "/try")
    assert "names a script of your machine" in said
    assert 'formaction="/try/submit"' not in said
    refused = browser.post("/try/submit", data=form(text=SCRIPT))
    assert refused.status_code == 422
    assert "run: trainmaster submit FILE" in refused.text
    assert not list(served.clients.storage.list_blobs(served.clients.context.data_bucket))


def test_submitting_uploads_the_text_and_goes_to_its_run(browser: Browser, served: Served) -> None:
    read: list[bytes] = []
    with service(served, read, OBJECT):
        done = browser.post("/try/submit", data=form(text=SMALL.replace("\n", "\r\n"), file="request.yaml"))
    assert done.status_code == 303
    assert done.headers["location"].startswith("/runs/horses-small-20")
    assert read == [SMALL.encode()]


@pytest.mark.parametrize(("text", "said"), [(FAULTY, "unknown key"), ("text", "a request must be a mapping")])
def test_a_faulty_request_is_not_submitted(browser: Browser, served: Served, text: str, said: str) -> None:
    refused = browser.post("/api/v1/try/submit", json=form(text=text, file="faulty.yaml"))
    assert refused.status_code == 422
    assert said in refused.json()["error"]["message"]
    bucket = served.clients.storage.bucket(served.clients.context.inbox_bucket)
    assert bucket.get_blob("requests/faulty.yaml") is None


def test_what_the_service_refuses_is_shown(browser: Browser, served: Served) -> None:
    bucket = served.clients.storage.bucket(served.clients.context.inbox_bucket)
    with service(served, [], OBJECT, state="rejected", problems=["the cap of today is reached"]):
        refused = browser.post("/try/submit", data=form(text=SMALL, file="request.yaml"))
    assert (refused.status_code, bucket.get_blob(OBJECT) is None) == (422, False)
    assert "the cap of today is reached" in refused.text


def test_a_page_from_elsewhere_may_not_even_check(browser: Browser) -> None:
    foreign = {"origin": "http://example.com", "sec-fetch-site": "cross-site"}
    assert browser.post("/try/check", data={"text": SMALL}, headers=foreign).status_code == 403


def test_the_documents_are_those_that_the_commands_print(
    browser: Browser, served: Served, tmp_path: Path
) -> None:
    (tmp_path / "request.yaml").write_text(FAULTY)
    found = browser.post("/api/v1/check", json={"text": FAULTY, "file": "request.yaml"}).json()
    printed = served.trainmaster("check", str(tmp_path / "request.yaml"), "-o", "json").out
    (expected,) = json.loads(printed)
    assert found == [expected | {"file": "request.yaml"}]
    plan = browser.post("/api/v1/plan", json={"text": SMALL, "file": "request.yaml"}).json()
    assert_valid(plan, "plan.v1")
    assert browser.post("/api/v1/plan", json={"text": FAULTY}).status_code == 422
    assert browser.get("/api/v1/check").status_code == 405


@pytest.mark.parametrize("path", ["/api/v1/check", "/api/v1/plan"])
@pytest.mark.parametrize(
    "body", [{"content": "notjson"}, {"json": {"file": "a.yaml"}}, {"data": {"txt": "a"}}, {}]
)
def test_a_body_without_the_text_is_answered_with_400_and_what_is_expected(
    browser: Browser, path: str, body: dict[str, Any]
) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"} if "content" in body else {}
    refused = browser.post(path, headers=headers, **body)
    assert refused.status_code == 400
    assert "Expected a form or a JSON object with text" in refused.json()["error"]["message"]
