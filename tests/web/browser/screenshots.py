"""Takes the pictures of every page for the documents, light and dark, at three widths.

python -m tests.web.browser.screenshots [FOLDER]

Starts a stack of its own with one run of each kind; takes about a minute, and needs Chromium.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.e2e.project import running_project

from .conftest import CHROMIUM, console_of, folder_of_pictures, window_of
from .places import places
from .sample import PROJECT_ID, filled, options

WIDTHS = {360: 740, 1280: 800, 3840: 2160}
SETTLED_MS = 1500
"""For charts to be drawn and for the parts that are loaded after the first paint."""


def main(folder: Path) -> int:
    """Write `NAME-WIDTH-THEME.png` into the folder."""
    if CHROMIUM is None:
        sys.stderr.write("Chromium is not installed. On Debian: apt-get install chromium\n")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        state = Path(work) / "state"
        with running_project(state, *options(Path(work)), project=PROJECT_ID) as project:
            sample = filled(project)
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            for width, height in WIDTHS.items():
                for theme in ("light", "dark"):
                    with window_of(
                        browser, console_of(sample), width=width, height=height, dark=theme == "dark"
                    ) as window:
                        for name, path in places(sample).items():
                            page = window.open(path)
                            page.wait_for_timeout(SETTLED_MS)
                            page.screenshot(
                                path=folder / f"{name}-{width}-{theme}.png", full_page=width < max(WIDTHS)
                            )
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else folder_of_pictures()))
