"""A study in a real browser: its charts, on the live page and in the file that needs no network."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.client.study.jobs import RUN, Jobs, served_jobs, trial, tuning_job
from tests.fixtures import fixture_of
from tests.web.consoles import console_of

from .conftest import Seen, Window, window_of

pytestmark = [pytest.mark.slow(seconds=20), pytest.mark.timeout(300)]

LAYOUT = (Path(__file__).parent / "layout.js").read_text()
TRIALS = 24


jobs = fixture_of(served_jobs)


@pytest.fixture
def live(browser: Browser, jobs: Jobs) -> Iterator[Window]:
    jobs.document = tuning_job(*(trial(n, n / 100) for n in range(1, TRIALS + 1)))
    with console_of(jobs.served.clients) as console, window_of(browser, f"{console.base_url}/") as window:
        window.open(f"runs/{RUN}/study")
        expect(window.page.locator("#parallel canvas")).to_be_visible()
        yield window
        assert window.seen == Seen()


def rows(page: Page) -> int:
    return page.locator("#trials tbody tr:visible").count()


def brush_best_half(page: Page) -> None:
    """Drag along the upper half of the last axis, which is that of the result."""
    plot = page.locator("#parallel .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    px = page.evaluate("Math.round(parseFloat(getComputedStyle(document.documentElement).fontSize) * 0.8)")
    x, top, bottom = box["x"] + box["width"] - 6 * px, box["y"] + 3 * px, box["y"] + box["height"] - 20
    page.mouse.move(x, top - 2)
    page.mouse.down()
    for part in (0.2, 0.4, 0.5):
        page.mouse.move(x, top + part * (bottom - top))
    page.mouse.up()


def test_a_brush_selects_trials_in_the_table_and_new_trials_join_it(live: Window, jobs: Jobs) -> None:
    page = live.page
    brush_best_half(page)
    expect(page.locator("#brushed")).to_have_text(re.compile(r"^Selected: 1[0-3] trials\.$"))
    selected = rows(page)
    assert 10 <= selected <= 13
    jobs.document["trials"].append(trial(TRIALS + 1, TRIALS / 100))
    expect(page.locator(f"#trial-{TRIALS + 1}")).to_be_visible()
    expect(page.locator("#brushed")).to_have_text(f"Selected: {selected + 1} trials.")
    assert rows(page) == selected + 1


def test_the_keyboard_goes_from_point_to_point_and_says_the_values(live: Window) -> None:
    curves = live.page.locator("#curves .plot")
    curves.focus()
    for _ in range(2):
        live.page.keyboard.press("ArrowRight")
    expect(live.page.locator("#curves output")).to_have_text(re.compile(r"^step 1: trial 24 0\.12, "))
    live.page.locator("#parallel .plot").focus()
    live.page.keyboard.press("ArrowRight")
    expect(live.page.locator("#parallel output")).to_have_text(
        re.compile(r"^trial 1: rate 0\.01, layers 1, ")
    )


def test_a_chart_is_saved_as_png_in_both_themes(live: Window) -> None:
    pictures = []
    for _ in range(2):
        with live.page.expect_download() as saved:
            live.page.locator("#curves button").click()
        pictures.append(saved.value.path().read_bytes())
        live.page.locator("#theme").click()
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pictures[0] != pictures[1]


@pytest.mark.parametrize(("width", "height"), [(360, 740), (3840, 2160)])
def test_the_file_opens_without_a_network_and_draws(
    browser: Browser, jobs: Jobs, width: int, height: int
) -> None:
    jobs.document = tuning_job(*(trial(n, n / 100) for n in range(1, TRIALS + 1)))
    folder = jobs.served.folder
    assert jobs.served.trainmaster("study", RUN, "--html", "study.html").status == 0
    with window_of(browser, f"{folder.as_uri()}/", width=width, height=height) as window:
        page = window.open("study.html")
        for chart in ("curves", "parallel", "importance"):
            expect(page.locator(f"#{chart} canvas")).to_be_visible()
        assert page.evaluate(LAYOUT) == []
        with page.expect_download() as saved:
            page.get_by_text("Save as CSV").click()
        assert saved.value.path().read_text().startswith("trial,state,rate,layers,")
        assert rows(page) == TRIALS
        assert window.seen == Seen()
