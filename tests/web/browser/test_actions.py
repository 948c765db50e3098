"""Changes that a person makes on a page happen, and are on record: a submission, a cancellation, a rollback, a replay."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from .conftest import Window
from .sample import Sample, request

pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.timeout(600)]


def test_a_request_typed_on_the_page_becomes_a_model_on_record(window: Window, sample: Sample) -> None:
    page = window.open("/try")
    page.get_by_label("Request as YAML or JSON").fill(request("--steps=4", model_name="typed"))
    page.get_by_role("button", name="Submit: start a run of typed").click()
    page.wait_for_url(re.compile(r"/runs/[^/?]+$"))
    expect(page.locator("main")).to_contain_text("succeeded")
    expect(page.locator("main")).to_contain_text("weights.json")
    run_id = page.url.rpartition("/")[2]
    assert sample.project.finished_record(run_id)["model"]["uri"]


def test_wrong_input_is_marked_as_it_is_typed_and_cannot_be_submitted(window: Window) -> None:
    page = window.open("/try")
    page.get_by_label("Request as YAML or JSON").fill(
        request().replace("machine:", "machin:") + "typo: <script>alert(1)</script>\n"
    )
    faults = page.locator("#checked .faults")
    expect(faults).to_contain_text("unknown key 'machin'")
    expect(faults).to_contain_text("line 6, column 5")
    expect(faults).to_contain_text("typo")
    expect(page.get_by_role("button", name=re.compile("^Submit"))).to_have_count(0)


def test_a_file_dropped_on_the_text_or_chosen_replaces_it(window: Window, tmp_path: Path) -> None:
    page = window.open("/try")
    text = page.get_by_label("Request as YAML or JSON")
    transfer = page.evaluate_handle(
        """text => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([text], "request.yaml"));
            return transfer;
        }""",
        request(model_name="dropped"),
    )
    text.dispatch_event("drop", {"dataTransfer": transfer})
    expect(text).to_have_value(request(model_name="dropped"))
    expect(page.get_by_role("button", name="Submit: start a run of dropped")).to_be_visible()
    chosen = tmp_path / "request.yaml"
    chosen.write_text(request(model_name="chosen"))
    page.get_by_label("Choose a file").set_input_files(chosen)
    expect(page.get_by_role("button", name="Submit: start a run of chosen")).to_be_visible()
