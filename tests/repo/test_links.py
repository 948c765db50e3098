"""Every link, anchor and page that the repository names exists.

Anchors are compared with headings as GitHub turns them into ids:
https://docs.github.com/en/get-started/writing-on-github/getting-started-with-writing-and-formatting-on-github/basic-writing-and-formatting-syntax#section-links
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from .files import ROOT, project_files

FILES = list(project_files())
PAGES = [path for path in FILES if path.endswith(".md")]
INDEXES = [
    ROOT / "docs" / name
    for name in ("README.md", "decisions/README.md", "maintainers/README.md", "reference/command.md")
]
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)(?:#(?P<anchor>[^)]*))?\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
NAMED_PAGE = re.compile(r"(?<![\w./-])docs/[\w-]+(?:/[\w-]+)*\.md")


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The ids of a page's headings; a heading that repeats gets -1, -2 and so on."""
    seen: Counter[str] = Counter()
    ids = set()
    for heading in HEADING.findall(prose(page)):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        ids.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return ids


def broken(page: Path) -> Iterator[str]:
    for link in LINK.finditer(prose(page)):
        target = page.parent / link["path"] if link["path"] else page
        found = target.exists() and (not link["anchor"] or link["anchor"] in anchors(target))
        if not found:
            yield link[0]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading_that_exist(page: str) -> None:
    assert list(broken(ROOT / page)) == []


def test_a_missing_file_and_a_missing_heading_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One `two`\n[a](page.md#one-two) [b](#one-two) [c](#three) [d](none.md)\n")
    assert list(broken(page)) == ["](#three)", "](none.md)"]


def test_every_page_of_docs_that_a_file_names_exists() -> None:
    missing = {
        f"{path} names {named}"
        for path in FILES
        if path != "tests/repo/test_wording.py"  # its examples name a page that does not exist
        and (ROOT / path).suffix in {".md", ".py", ".tf", ".yaml", ".json", ".toml", ".cfg", ""}
        and (ROOT / path).is_file()
        for named in NAMED_PAGE.findall((ROOT / path).read_text(errors="replace"))
        if not (ROOT / named).is_file()
    }
    assert missing == set()


def test_the_indexes_of_the_documentation_link_to_every_page() -> None:
    linked = {
        (index.parent / link["path"]).resolve() for index in INDEXES for link in LINK.finditer(prose(index))
    }
    assert {ROOT / page for page in PAGES if page.startswith("docs/")} - linked - set(INDEXES) == set()


def test_every_picture_of_the_documentation_is_shown_by_a_page() -> None:
    shown = {
        (ROOT / page).parent / link["path"] for page in PAGES for link in LINK.finditer(prose(ROOT / page))
    }
    pictures = set((ROOT / "docs" / "pictures").iterdir())
    assert pictures - {path.resolve() for path in shown} == set()
