"""The pages of the site: those of docs/ in the order of its index, and what they link to, below repository/."""

import os
import re
import shutil
from pathlib import Path, PurePosixPath

DOCS, INDEX = "docs/", "README.md"
Sections = dict[str, list[tuple[str, str, str]]]
"""By heading of the index, the pages linked there: title, path on the site, and what the index says about it."""
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[(?P<title>[^]]*)\]\((?!https?:)(?P<path>[^)#\s]+)")
# Python-Markdown starts a list only after an empty line, GitHub also right below a paragraph.
_LIST_BELOW_TEXT = re.compile(r"^((?![-*] |[|#>]|\d+\. )\S.*\n)(?=(?:[-*]|\d+\.) )", re.MULTILINE)
_MINOR = re.compile("decisions/|maintainers/|repository/|reference/(verbs/|fidelity)|explanation/trainer")
_LOW = "---\nsearch: {boost: 0.2}\n---\n\n"  # the search puts them below the pages that say how


def copy_pages(root: Path, target: Path) -> None:
    """Write every file of docs/, and every file that a page links to, however indirectly, into an empty folder.

    Links lead to the copies. A linked folder becomes a page that lists its files, unless it has a README.md.
    """
    waiting = [path.relative_to(root).as_posix() for path in (root / DOCS).rglob("*") if path.is_file()]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        copy = target / place_of(path)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            text = (root / path).read_text() if (root / path).exists() else _list_files((root / path).parent)
            copy.write_text(_for_the_site(root, path, text))
            waiting += links_of(root, path, text).keys() - seen
            seen.update(waiting)
        else:
            shutil.copyfile(root / path, copy)


def place_of(path: str) -> str:
    """Where the site has a file of the repository; both are paths from their root."""
    return path.removeprefix(DOCS) if path.startswith(DOCS) else f"repository/{path}"


def links_of(root: Path, page: str, text: str) -> dict[str, str]:
    """Each file of the repository that a page links to, in the page's order, with the link's title."""
    return {_target(root, page, found): found["title"] for found in _LINK.finditer(_FENCE.sub("", text))}


def read_sections(root: Path) -> Sections:
    """The sections of the index, in its order."""
    parts = re.split(r"^## (.+)\n", (root / DOCS / INDEX).read_text(), flags=re.MULTILINE)
    return {
        heading: [
            (title, place_of(path), re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.strip("| ").split(" | ")[-1]))
            for line in text.splitlines()
            for path, title in links_of(root, f"{DOCS}{INDEX}", line).items()
        ]
        for heading, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def llms_txt(sections: Sections, summary: str) -> str:
    """The sections with links to the pages' Markdown, as https://llmstxt.org describes it, read 2026-11."""
    lines = ["# Trainmaster", "", f"> {summary}"]
    for heading, pages in sections.items():
        lines += ["", f"## {heading}", "", *(f"- [{title}]({path}): {said}" for title, path, said in pages)]
    return "\n".join([*lines, ""])


def _target(root: Path, page: str, link: "re.Match[str]") -> str:
    path = os.path.normpath(PurePosixPath(page).parent / link["path"])
    return f"{path}/{INDEX}" if (root / path).is_dir() else path


def _list_files(folder: Path) -> str:
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    names = sorted(name for name in files if not name.endswith(".pyc"))
    return "\n".join([f"# Files of {folder.name}", "", *(f"- [{name}]({name})" for name in names), ""])


def _for_the_site(root: Path, page: str, text: str) -> str:
    place = place_of(page)

    def link(found: "re.Match[str]") -> str:
        path = os.path.relpath(place_of(_target(root, page, found)), PurePosixPath(place).parent)
        return f"[{found['title']}]({path}"

    parts = _FENCE.split(text)  # the fences are at the odd places
    # Words after a fence's language, as of `yaml faulty`, are for our tests.
    parts[1::2] = [re.sub(r"\A(```\w+) .*", r"\1", fence) for fence in parts[1::2]]
    parts[::2] = [_LIST_BELOW_TEXT.sub(r"\1\n", _LINK.sub(link, part)) for part in parts[::2]]
    return _LOW * bool(_MINOR.match(place)) + "".join(parts)
