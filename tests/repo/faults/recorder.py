"""A plugin of pytest that records an example of each fault which the tests make: `pytest -p tests.repo.faults.recorder`.

Tests of generated values are left out: their examples differ from run to run.
"""

import json
import os
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.repo.faults.sites import ROOT, Site, schema_problems, sites
from trainmaster.orchestrator.core.documents.faults import Fault

OUTPUT = "TRAINMASTER_FAULTS_OUTPUT"
FRAMES_MAX = 12

_examples: dict[str, dict[str, str]] = defaultdict(dict)
_by_file: dict[str, list[Site]] = defaultdict(list)


def pytest_configure() -> None:
    for site in sites():
        _by_file[str(ROOT / site.path)].append(site)
    stated = {text: path for path, texts in schema_problems().items() for text in texts}
    original = Fault.__post_init__

    def recorded(self: Fault, at: Any, value: object, among: Any) -> None:  # Any: as in the dataclass
        original(self, at, value, among)
        if self.problem in stated:
            _keep(stated[self.problem], re.escape(self.problem), str(self))
        for site in _sites_on_the_stack():
            for pattern in site.problems:
                if re.fullmatch(pattern, self.problem):
                    _keep(site.path, pattern, str(self))

    setattr(Fault, "__post_init__", recorded)  # noqa: B010  # for this process alone; no assignment is typed


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [
        item for item in items if not getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    ]


def pytest_unconfigure() -> None:
    Path(os.environ[OUTPUT]).write_text(json.dumps(_examples))


def _keep(path: str, pattern: str, text: str) -> None:
    """Of several examples the shortest, and of these the first by its letters: the same in every run."""
    known = _examples[path].get(pattern, text)
    _examples[path][pattern] = min(known, text, key=lambda each: (len(each), each))


def _sites_on_the_stack() -> list[Site]:
    found = []
    frame = sys._getframe(2)  # the fault's own constructor
    for _ in range(FRAMES_MAX):
        line = frame.f_lineno
        found += [
            site
            for site in _by_file.get(frame.f_code.co_filename, ())
            if site.first_line <= line <= site.last_line
        ]
        if frame.f_back is None:
            break
        frame = frame.f_back
    return found
