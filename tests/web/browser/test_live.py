"""Pages follow what happens, in every window, also when the stack dies and comes back."""

import os
import re
import signal
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.project import running_project
from tests.e2e.topologies import quick_topology

from .conftest import Seen, Window, console_of, window_of
from .sample import Sample, drop, request

pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.timeout(600)]


def test_an_upload_appears_on_the_overview_of_two_windows_without_a_reload(
    browser: Browser, window: Window, sample: Sample
) -> None:
    with window_of(browser, console_of(sample)) as second:
        pages = [window.open("/"), second.open("/")]
        for page in pages:
            expect(page.locator("#link-state")).to_have_text("live")
            page.evaluate("() => { window.notReloaded = true; }")
        drop(sample.project, "appears", request(model_name="appears"))
        for page in pages:
            expect(page.locator("main")).to_contain_text(re.compile("appears-"))
            expect(page.locator("main")).to_contain_text(re.compile("succeeded"))
            assert page.evaluate("() => window.notReloaded") is True
        assert second.seen == Seen()


def test_a_part_that_is_loaded_later_does_not_change_the_title_of_the_page(window: Window) -> None:
    page = window.open("/")
    expect(page.locator("#lately-found")).to_be_visible()
    expect(page.locator("#dead-letters b")).not_to_have_text("–")
    expect(page).to_have_title("Overview – Trainmaster")


def test_a_lost_connection_is_reported_and_restored(window: Window) -> None:
    page = window.open("/runs")
    expect(page.locator("#link-state")).to_have_text("live")
    page.context.set_offline(True)
    page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("#link-state")).to_contain_text("connection lost")
    page.context.set_offline(False)
    expect(page.locator("#link-state")).to_have_text("live")
    window.seen.complaints.clear()  # Chromium itself reports the failed request


def test_a_wrong_filter_takes_the_place_of_the_list_until_it_is_right(window: Window) -> None:
    page = window.open("/runs")
    rows, said = page.locator("#found tbody tr"), page.locator("#found .notice")
    expect(rows).not_to_have_count(0)
    page.locator("#filter-since").fill("soon")
    expect(said).to_contain_text("since: expected")
    expect(rows).to_have_count(0)
    page.locator("#filter-since").fill("7d")
    expect(said).to_have_count(0)
    expect(rows).not_to_have_count(0)
    window.seen.complaints.clear()  # Chromium itself reports the status 400


def test_ages_grow_while_a_page_stays_open(window: Window) -> None:
    page = window.open("/runs")
    first = page.locator("main time").first
    before = first.inner_text()
    deadline = time.monotonic() + 70
    while first.inner_text() == before and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    assert first.inner_text() != before


def test_a_page_recovers_when_its_stack_dies_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    state, project_id = tmp_path / "state", "browser-restart"
    topology = quick_topology(tmp_path, timeout_s=60)
    words = ("--topology", str(topology), "--tick-s", "5", "--console", "write")
    with running_project(state, *words, project=project_id) as project:
        console = project.env["TRAINMASTER_CONSOLE"]
        with window_of(browser, console) as window:
            page = window.open("/runs")
            expect(page.locator("#link-state")).to_have_text("live")
            os.kill(project.process.pid, signal.SIGKILL)
            expect(page.locator("#link-state")).to_contain_text("connection lost")
            with running_project(state, *words, project=project_id) as again:
                assert again.env["TRAINMASTER_CONSOLE"] == console
                expect(page.locator("#link-state")).to_have_text("live")
                drop(again, "after", "model_name: after")
                expect(page.locator("main")).to_contain_text("after-")
