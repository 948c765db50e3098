"""The page of all fault messages: docs/reference/faults.md."""

import re
from collections.abc import Iterator, Mapping

from tests.repo.faults.sites import ROOT, Site, schema_problems, sites

PAGE = ROOT / "docs" / "reference" / "faults.md"
HEAD = """\
# Fault messages

Every message about a request, a rule, an order, the policy or the price table, with an example from the tests.
A message has the form `path: problem; found …; allowed: …; repair`; parts that do not apply are left out.
`path` is a JSONPath in the document as it was written, and `$` is the whole document.

`python -m tests.repo.faults` writes this page: do not edit it.
"""


def expected() -> dict[str, list[str]]:
    """By source file, a pattern for each problem that it can state."""
    found: dict[str, list[str]] = {}
    for site in sites():
        found.setdefault(site.path, []).extend(_new(site, found.get(site.path, [])))
    for path, texts in schema_problems().items():
        found[path] = [re.escape(text) for text in texts]
    return found


def rendered(examples: Mapping[str, Mapping[str, str]]) -> str:
    """The page with these examples, by source file and pattern."""
    sections = [HEAD]
    for path, patterns in expected().items():
        texts = dict.fromkeys(examples.get(path, {}).get(pattern, "") for pattern in patterns)
        lines = [f"- {_quoted(text)}" for text in texts if text]
        if lines:
            sections.append("\n".join([f"## `{path}`", "", *lines, ""]))
    return "\n".join(sections)


def messages(page: str) -> dict[str, list[str]]:
    """The messages of a page by source file."""
    found: dict[str, list[str]] = {}
    path = ""
    for line in page.splitlines():
        if line.startswith("## `"):
            path = line.removeprefix("## `").removesuffix("`")
            found[path] = []
        elif line.startswith("- ") and path:
            found[path].append(line.removeprefix("- ").strip("`").strip())
    return found


def _new(site: Site, known: list[str]) -> Iterator[str]:
    return (pattern for pattern in site.problems if pattern not in known)


def _quoted(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"
