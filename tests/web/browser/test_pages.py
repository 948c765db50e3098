"""Every page, in a real browser: complete, quiet, readable at every width, in both themes, and without scripts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from .conftest import Seen, Window, console_of, window_of
from .places import NAMES, places
from .sample import Sample

pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.timeout(600)]

HERE = Path(__file__).parent
AXE = HERE / "vendor" / "axe.min.js"
LAYOUT = (HERE / "layout.js").read_text()
SIZES = {"phone": (360, 740), "laptop": (1280, 800), "4K": (3840, 2160)}
SERIOUS = ("serious", "critical")
FAULT = "main > .notice.bad[role=alert] > pre"
"""Only on the page that says why another could not be shown."""
WORDS = 40
"""Letters that every page has at least, beside its heading and command."""


@pytest.fixture(scope="module", params=NAMES)
def opened(request: pytest.FixtureRequest, browser: Browser, sample: Sample) -> Iterator[Window]:
    """Each page in turn, in one window for all tests of it."""
    with window_of(browser, console_of(sample)) as window:
        page = window.open(places(sample)[request.param])
        page.wait_for_load_state("load")
        yield window


def test_a_page_opens_without_a_complaint_or_a_request_to_another_host(opened: Window) -> None:
    assert opened.page.locator("main h1").inner_text()
    assert opened.page.locator(FAULT).count() == 0
    assert opened.seen == Seen()


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_cut_off_or_overlaps(opened: Window, size: str) -> None:
    width, height = SIZES[size]
    opened.page.set_viewport_size({"width": width, "height": height})
    assert opened.page.evaluate(LAYOUT) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened: Window, theme: str) -> None:
    page = opened.page
    page.set_viewport_size({"width": 1280, "height": 800})
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.evaluate(AXE.read_text())  # not as a script element, which the pages' policy refuses
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    serious = [
        f"{each['id']}: {node['target']} {node['failureSummary']}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
    assert serious == [], json.dumps(serious, indent=1)


def test_a_page_is_readable_without_scripts(browser: Browser, sample: Sample) -> None:
    with window_of(browser, console_of(sample), scripts=False) as window:
        for path in places(sample).values():
            page = window.open(path)
            heading, text = page.locator("main h1").inner_text(), page.locator("main").inner_text()
            assert heading
            assert page.locator(FAULT).count() == 0, path
            assert len(text) > len(heading) + WORDS, path
        assert window.seen == Seen()
