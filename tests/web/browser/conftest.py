"""A real Chromium, and a stack with runs of every kind behind the console.

Without Chromium the tests are left out; with TRAINMASTER_TEST_BROWSER=1 they fail instead.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect, sync_playwright

from tests.e2e.project import running_project

from .sample import PROJECT_ID, Sample, filled, options

DEADLINE_MS = 30_000
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_POPUPS = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup")
"""Without these, no process for the address bar's popups starts with each window: two thirds of a window's cost."""
KEPT_OFF = (
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "HttpsUpgrades",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
)
"""Those of playwright's own list that count here; Chromium takes only the last list."""
SWITCHES = (
    "--no-sandbox",  # needs privileges that containers lack; the pages are this project's
    "--disable-features=" + ",".join(NO_POPUPS + KEPT_OFF),
)
expect.set_options(timeout=DEADLINE_MS)


@dataclass
class Seen:
    """What a window did that no page of the console may do."""

    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Window:
    """A window of the browser, and what it did."""

    page: Page
    seen: Seen
    console: str
    """The console's address, which ends with a slash."""

    def open(self, path: str) -> Page:
        """The page at the path."""
        self.page.goto(self.console + path.lstrip("/"), wait_until="domcontentloaded")
        return self.page


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Closed after the last test here: playwright keeps an event loop running in this thread, and other tests start theirs."""
    if CHROMIUM is None:
        reason = "Chromium is not installed. On Debian: apt-get install chromium"
        if os.environ.get("TRAINMASTER_TEST_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def sample(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sample]:
    folder = tmp_path_factory.mktemp("browser")
    with running_project(folder / "state", *options(folder), project=PROJECT_ID) as project:
        yield filled(project)


@contextmanager
def window_of(
    browser: Browser,
    console: str,
    *,
    width: int = 1280,
    height: int = 800,
    dark: bool = False,
    scripts: bool = True,
) -> Iterator[Window]:
    """A window without cookies of others; requests to other hosts are noted, and not sent."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
        reduced_motion="reduce",
        accept_downloads=True,
    )
    context.set_default_timeout(DEADLINE_MS)
    seen, host = Seen(), urlsplit(console).netloc

    def pass_on(route: Route, request: Request) -> None:
        if urlsplit(request.url).netloc == host or request.url.startswith(("data:", "blob:")):
            route.continue_()
        else:
            seen.foreign.append(request.url)
            route.abort()

    context.route("**/*", pass_on)
    page = context.new_page()
    page.on(
        "console",
        lambda message: (
            seen.complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    try:
        yield Window(page=page, seen=seen, console=console)
    finally:
        context.close()


@pytest.fixture
def window(browser: Browser, sample: Sample) -> Iterator[Window]:
    """A window of usual size; at its end it has neither complained nor called another host."""
    with window_of(browser, console_of(sample)) as window:
        yield window
        assert window.seen == Seen()


def console_of(sample: Sample) -> str:
    """The address of the console of the project's stack."""
    return sample.project.env["TRAINMASTER_CONSOLE"]
