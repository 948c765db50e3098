"""Scheduling of test files: those that share a stack follow each other on one worker, so that no second one starts it too."""

import re
from pathlib import Path

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

_ROOT = Path(__file__).resolve().parents[1]
_E2E, _VERBS, _BROWSER = "tests/e2e/", "tests/e2e/verbs/", "tests/web/browser/"
_SHARES = re.compile(
    r"^def test_\w+\([^)]*\b(project: Project|stack: Project|trainmaster: Trainmaster)\b", re.MULTILINE
)
_HAS_ITS_OWN = re.compile(r"^def (project|stack)\(", re.MULTILINE)


class StackScheduling(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives one worker all tests of a file, and all files that use the stack of tests/e2e, of its verbs, or of the browser."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid.partition("::")[0])


def scope_of(file: str) -> str:
    """The name that the files of one stack have in common; another file's is its path."""
    if file.startswith(_BROWSER):
        return _BROWSER
    if not file.startswith(_E2E):
        return file
    text = (_ROOT / file).read_text()
    if _HAS_ITS_OWN.search(text) or not _SHARES.search(text):
        return file
    return _VERBS if file.startswith(_VERBS) else _E2E
