"""Takes pictures of every page, light and dark, at three widths, and renews those that the documents show.

python -m tests.web.browser.screenshots [FOLDER]

Without FOLDER, the pictures are in build/pictures, which git ignores.
Starts a separate stack with one run of each kind; takes two minutes, and needs Chromium.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from tests.e2e.project import running_project

from .conftest import CHROMIUM, SWITCHES, console_of, window_of
from .places import places
from .sample import PROJECT_ID, Sample, filled, options

SIZES = ((360, 740), (1280, 800), (3840, 2160))
FIRST, FIRST_HEIGHT = ("overview", SIZES[1]), 1100
"""The page whose upper part is the README's picture, `console-THEME.png`."""
ROOT = Path(__file__).resolve().parents[3]
SHOWN = ROOT / "docs" / "pictures"
SETTLED_MS = 2500
"""For charts to be drawn, and for the parts that are loaded after the first paint."""
COLOURS = 256
"""Of a picture: its file is a third as large as with all colours, and nothing visible is lost."""


def main(folder: Path) -> int:
    """Write `NAME-WIDTH-THEME.png` into the folder, and again into docs/pictures those that are there."""
    if CHROMIUM is None:
        sys.stderr.write("Chromium is not installed. On Debian: apt-get install chromium\n")
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    with (
        project_folder() as work,
        running_project(work / ".trainmaster", *options(work), project=PROJECT_ID) as project,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        sample = filled(project)
        for size, theme in product(SIZES, ("light", "dark")):
            take(browser, sample, folder, size, theme)
        browser.close()
    for shown in SHOWN.glob("*.png"):
        shutil.copyfile(folder / shown.name, shown)
    return 0


@contextmanager
def project_folder() -> Iterator[Path]:
    """A temporary folder whose name, which every page shows, is the same each time.

    Raises:
        FileExistsError: another run of this program uses it, or has left it.
    """
    folder = Path(tempfile.gettempdir()) / "flowers"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def take(browser: Browser, sample: Sample, folder: Path, size: tuple[int, int], theme: str) -> None:
    """The pictures of all pages at one size and in one theme. On the largest window, of what it shows at once."""
    width, height = size
    with window_of(browser, console_of(sample), width=width, height=height, dark=theme == "dark") as window:
        for name, path in places(sample).items():
            page = window.open(path)
            page.wait_for_timeout(SETTLED_MS)
            taken = Image.open(BytesIO(page.screenshot(full_page=size != SIZES[-1]))).convert("RGB")
            keep(taken, folder / f"{name}-{width}-{theme}.png")
            if (name, size) == FIRST:
                keep(taken.crop((0, 0, width, FIRST_HEIGHT)), folder / f"console-{theme}.png")


def keep(taken: Image.Image, path: Path) -> None:
    """Write the picture with few colours: half the most frequent ones, for backgrounds and text, half for small things."""
    # Any: Pillow gives colours of every mode one type; these are of RGB.
    counted: Any = taken.getcolors(taken.width * taken.height)
    frequent = [part for _, colour in sorted(counted)[-COLOURS // 2 :] for part in colour]
    rare = taken.quantize(COLOURS // 2, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette(frequent + rare)
    taken.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "pictures"))
